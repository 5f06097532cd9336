-- One assembled context with everything needed to explain it.
create table cognition.bundles (
    agent_id uuid not null references runtime.agents (agent_id),
    bundle_id uuid not null,
    session_id uuid,
    created_at timestamptz not null,
    as_of timestamptz,
    input text not null,
    frame text not null,
    profile text not null,
    budget integer not null check (budget > 0),
    tokens integer not null check (tokens between 0 and budget),
    text text not null,
    memory_ids uuid[] not null,
    candidates bytea not null,
    trace jsonb not null,
    primary key (agent_id, bundle_id),
    foreign key (agent_id, session_id) references dialogue.sessions (agent_id, session_id)
);

create index bundles_recent_idx on cognition.bundles (agent_id, created_at);
create index bundles_session_idx on cognition.bundles (agent_id, session_id, created_at, bundle_id);

comment on column cognition.bundles.as_of is 'The moment it was rebuilt for; null when it was made for the present.';
comment on column cognition.bundles.memory_ids is
'Whatever it holds words of: the candidates, best first, then what stands in it unasked, a line of the identity too.';
comment on column cognition.bundles.candidates is
'zlib of columns in the order of memory_ids: features, score, verdict, tokens, state, checksum of the words.';
comment on column cognition.bundles.trace is
'What the candidates were placed into, the frame with its evidence, the sources that were missing, the timings.';

call runtime.isolate('cognition.bundles');
grant select, insert on cognition.bundles to newton_app;

-- What a session has at hand: a cache over memories. A memory that leaves it is as it was.
create table cognition.working_set (
    agent_id uuid not null,
    session_id uuid not null,
    memory_id uuid not null,
    added_at timestamptz not null,
    accessed_at timestamptz not null,
    access_count integer not null default 1 check (access_count > 0),
    primary key (agent_id, session_id, memory_id),
    foreign key (agent_id, session_id) references dialogue.sessions (agent_id, session_id),
    -- what is forgotten is at hand no more
    foreign key (agent_id, memory_id) references memory.memories (agent_id, memory_id) on delete cascade,
    check (accessed_at >= added_at)
);

create index working_set_memory_idx on cognition.working_set (agent_id, memory_id);
create index working_set_accessed_idx on cognition.working_set (agent_id, accessed_at);

comment on column cognition.working_set.added_at is 'When it came into the set of this session.';
comment on column cognition.working_set.access_count is 'How often it was said, shown or read in the session.';

call runtime.isolate('cognition.working_set');
grant select, insert, delete on cognition.working_set to newton_app;
grant update (accessed_at, access_count) on cognition.working_set to newton_app;

-- How often each strategy made a context of a working set, and how old what it chose was: what its decay is judged by.
create table cognition.profile_stats (
    agent_id uuid not null references runtime.agents (agent_id),
    profile text not null check (profile <> ''),
    context_count integer not null check (context_count > 0),
    item_count bigint not null check (item_count >= 0),
    token_count bigint not null check (token_count >= 0),
    total_age_hours double precision not null check (total_age_hours >= 0),
    last_used_at timestamptz not null,
    primary key (agent_id, profile)
);

comment on column cognition.profile_stats.total_age_hours is 'The ages of all chosen items together.';

call runtime.isolate('cognition.profile_stats');
grant select, insert on cognition.profile_stats to newton_app;
grant update (context_count, item_count, token_count, total_age_hours, last_used_at) on cognition.profile_stats to newton_app;

-- One turn: which context was given with which line, how that context came about, and which line answered.
create table cognition.turns (
    agent_id uuid not null references runtime.agents (agent_id),
    turn_id uuid not null,
    session_id uuid not null,
    bundle_id uuid,
    created_at timestamptz not null,
    method text not null check (method in ('built', 'updated', 'evicted', 'stood')),
    reason text not null check (reason <> ''),
    answered_by text not null check (answered_by in ('model', 'memory', 'censor')),
    input_position integer not null,
    reply_position integer not null check (reply_position > input_position),
    primary key (agent_id, turn_id),
    foreign key (agent_id, bundle_id) references cognition.bundles (agent_id, bundle_id) on delete set null (bundle_id),
    foreign key (agent_id, session_id, input_position) references dialogue.messages (agent_id, session_id, position),
    foreign key (agent_id, session_id, reply_position) references dialogue.messages (agent_id, session_id, position)
);

create index turns_created_idx on cognition.turns (agent_id, created_at);
create index turns_bundle_idx on cognition.turns (agent_id, bundle_id);

comment on column cognition.turns.bundle_id is 'Null once a memory that the context had looked at was forgotten.';
comment on column cognition.turns.method is
'built from scratch; stood, as it was made for an earlier line; updated with what is new; evicted: made smaller.';
comment on column cognition.turns.reason is 'Why it stood, or did not; no words of anybody.';
comment on column cognition.turns.answered_by is 'memory: the reply only quotes the context; censor: it says what forbids it.';
comment on column cognition.turns.input_position is 'The position of the line that was answered in its session; of the reply: replied.';

call runtime.isolate('cognition.turns');
grant select, insert on cognition.turns to newton_app;

