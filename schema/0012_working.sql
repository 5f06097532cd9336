-- What a session has at hand: a cache over memories. A memory that leaves it is as it was.
create table cognition.working (
    agent_id uuid not null,
    session_id uuid not null,
    memory_id uuid not null,
    added_at timestamptz not null,
    accessed_at timestamptz not null,
    accesses integer not null default 1 check (accesses > 0),
    primary key (agent_id, session_id, memory_id),
    foreign key (agent_id, session_id) references dialogue.sessions (agent_id, session_id),
    -- what is forgotten is at hand no more
    foreign key (agent_id, memory_id) references memory.memories (agent_id, memory_id) on delete cascade,
    check (accessed_at >= added_at)
);

create index working_memory_idx on cognition.working (agent_id, memory_id);
create index working_accessed_idx on cognition.working (agent_id, accessed_at);

comment on column cognition.working.added_at is 'When it came into the set of this session.';
comment on column cognition.working.accesses is 'How often it was said, shown or read in the session.';

call runtime.isolate('cognition.working');
grant select, insert, delete on cognition.working to newton_app;
grant update (accessed_at, accesses) on cognition.working to newton_app;

-- How often each strategy made a context of a working set, and how old what it chose was: what its decay is judged by.
create table cognition.strategies (
    agent_id uuid not null references runtime.agents (agent_id),
    strategy text not null check (strategy <> ''),
    contexts integer not null check (contexts > 0),
    items bigint not null check (items >= 0),
    tokens bigint not null check (tokens >= 0),
    hours double precision not null check (hours >= 0),
    last_at timestamptz not null,
    primary key (agent_id, strategy)
);

comment on column cognition.strategies.hours is 'The ages of all chosen items together.';

call runtime.isolate('cognition.strategies');
grant select, insert on cognition.strategies to newton_app;
grant update (contexts, items, tokens, hours, last_at) on cognition.strategies to newton_app;
