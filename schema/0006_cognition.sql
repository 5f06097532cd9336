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

comment on column cognition.bundles.as_of is 'The past moment that the context was rebuilt for; null for the present.';
comment on column cognition.bundles.memory_ids is
'All memories whose text it contains: first the candidates by rank, then the parts that are always included, such as
identity lines.';
comment on column cognition.bundles.candidates is
'zlib of columns in the order of memory_ids: features, score, verdict, tokens, state, checksum of the text.';
comment on column cognition.bundles.trace is
'The inputs of the assembly: settings, the frame with its evidence, missing sources, timings.';

call runtime.isolate('cognition.bundles');
grant select, insert on cognition.bundles to newton_app;

-- Working memory of a session: a cache over memories. Evicting a memory does not change it.
create table cognition.working_set (
    agent_id uuid not null,
    session_id uuid not null,
    memory_id uuid not null,
    added_at timestamptz not null,
    accessed_at timestamptz not null,
    access_count integer not null default 1 check (access_count > 0),
    primary key (agent_id, session_id, memory_id),
    foreign key (agent_id, session_id) references dialogue.sessions (agent_id, session_id),
    -- a forgotten memory leaves every working set
    foreign key (agent_id, memory_id) references memory.memories (agent_id, memory_id) on delete cascade,
    check (accessed_at >= added_at)
);

create index working_set_memory_idx on cognition.working_set (agent_id, memory_id);
create index working_set_accessed_idx on cognition.working_set (agent_id, accessed_at);

comment on column cognition.working_set.added_at is 'When the memory entered the working set.';
comment on column cognition.working_set.access_count is 'How often it was said, shown or read in the session.';

call runtime.isolate('cognition.working_set');
grant select, insert, delete on cognition.working_set to newton_app;
grant update (accessed_at, access_count) on cognition.working_set to newton_app;

-- How often each profile rendered a working set, and how old the chosen items were; used to judge its recency decay.
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

comment on column cognition.profile_stats.total_age_hours is 'Sum of the ages of all chosen items.';

call runtime.isolate('cognition.profile_stats');
grant select, insert on cognition.profile_stats to newton_app;
grant update (context_count, item_count, token_count, total_age_hours, last_used_at) on cognition.profile_stats to newton_app;

-- Turns: the context that was sent with an input, how the context was made, and the position of the reply.
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

comment on column cognition.turns.bundle_id is 'Null after a memory that the context had considered was forgotten.';
comment on column cognition.turns.method is
'built from scratch; stood: an earlier context was reused; updated: new memories were added; evicted: items were removed.';
comment on column cognition.turns.reason is 'Why an earlier context was reused or not. Contains no user text.';
comment on column cognition.turns.answered_by is
'memory: the reply quotes the context; censor: it names the censor that blocked the input.';
comment on column cognition.turns.input_position is
'Position of the input in its session; reply_position is that of the reply.';

call runtime.isolate('cognition.turns');
grant select, insert on cognition.turns to newton_app;

