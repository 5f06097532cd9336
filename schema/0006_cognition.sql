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
    foreign key (agent_id, bundle_id) references cognition.bundles (agent_id, bundle_id),
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

-- Corrections of the probability of an answer, fitted to what the replies to one agent used. The latest is in use.
create table cognition.answer_corrections (
    agent_id uuid not null references runtime.agents (agent_id),
    correction_id uuid not null,
    created_at timestamptz not null,
    removed_at timestamptz,
    model text not null check (model <> ''),
    slope double precision not null check (slope > 0),
    intercept double precision not null,
    contexts integer not null check (contexts > 0),
    items integer not null check (items > 0),
    used integer not null check (used between 0 and items),
    loss_before double precision not null check (loss_before >= 0),
    loss_after double precision not null check (loss_after >= 0),
    primary key (agent_id, correction_id),
    check (removed_at >= created_at)
);

create index answer_corrections_recent_idx on cognition.answer_corrections (agent_id, created_at);

comment on column cognition.answer_corrections.model is 'Fingerprint of the shipped model that it corrects.';
comment on column cognition.answer_corrections.slope is 'Of the log-odds; the intercept is added.';
comment on column cognition.answer_corrections.items is 'Items of contexts that replies judged; `used` of them were used.';
comment on column cognition.answer_corrections.loss_before is
'Mean log loss of the newer contexts, to which nothing was fitted; loss_after is that with the correction.';

call runtime.isolate('cognition.answer_corrections');
grant select, insert, update (removed_at) on cognition.answer_corrections to newton_app;

-- Texts of prompts that are stored nowhere else, such as a caller's system message or tool definitions; each once.
create table cognition.prompt_texts (
    agent_id uuid not null references runtime.agents (agent_id),
    text_id uuid not null,
    hash bytea not null check (length(hash) = 32),
    kind text not null,
    content text not null,
    is_exact boolean not null,
    session_id uuid,
    first_position integer,
    last_position integer,
    used_at timestamptz not null,
    primary key (agent_id, text_id),
    unique (agent_id, hash),
    foreign key (agent_id, session_id) references dialogue.sessions (agent_id, session_id),
    constraint prompt_texts_kind_check check (
        kind in ('edition', 'fixed', 'instructions', 'tools', 'options', 'cut', 'calls', 'parts', 'injected', 'own')
    ),
    check ((session_id is null) = (first_position is null) and (first_position is null) = (last_position is null))
);

create index prompt_texts_session_idx on cognition.prompt_texts (agent_id, session_id) where session_id is not null;

comment on column cognition.prompt_texts.text_id is 'Random, so that it says nothing about an erased text.';
comment on column cognition.prompt_texts.hash is 'SHA-256 of the content, the kind and the messages it was made from.';
comment on column cognition.prompt_texts.kind is
'edition: the messages before an input, as references. fixed: a constant of Newton. instructions, tools, options: of
the request of an API caller. cut, calls: a shortened message, or its tool calls. parts: a message with attachments.
injected: messages of another session. own: a text that the model wrote before it called a tool.';
comment on column cognition.prompt_texts.is_exact is
'False if a secret, or a character that PostgreSQL cannot store, was removed.';
comment on column cognition.prompt_texts.session_id is
'The session with the messages from first_position to last_position, if the text was made from them.';
comment on column cognition.prompt_texts.used_at is 'The last day on which it was sent; updated once a day.';

call runtime.isolate('cognition.prompt_texts');
grant select, insert, update (used_at) on cognition.prompt_texts to newton_app;

-- Prompts: what was sent to the model in a call of a turn, as references to stored texts.
create table cognition.prompts (
    agent_id uuid not null,
    prompt_id uuid not null,
    session_id uuid not null,
    input_position integer not null check (input_position >= 0),
    created_at timestamptz not null,
    edition_id uuid not null,
    view_last integer check (view_last >= 0),
    tail text not null,
    text_ids uuid[] not null,
    bundle_id uuid,
    stable_chars integer not null check (stable_chars >= 0),
    model text not null,
    max_tokens integer check (max_tokens > 0),
    part_tokens integer[] not null,
    finish text not null check (finish in ('stop', 'length', 'interrupted', 'failed')),
    error text check (error <> ''),
    salt bytea,
    hash bytea not null check (length(hash) = 32),
    primary key (agent_id, prompt_id),
    foreign key (agent_id, session_id) references dialogue.sessions (agent_id, session_id)
);

create index prompts_session_idx on cognition.prompts (agent_id, session_id, input_position);

comment on column cognition.prompts.prompt_id is
'Also the usage_id of the tokens that the call used; a failed call may have used none.';
comment on column cognition.prompts.edition_id is
'The text with the messages before the input. Prompts of one conversation share it while the conversation only grows.';
comment on column cognition.prompts.view_last is 'The last message of the log in the last range of the edition.';
comment on column cognition.prompts.tail is 'JSON: the input and the messages after it, as in an edition.';
comment on column cognition.prompts.text_ids is 'The texts to which edition and tail refer by index, from 0.';
comment on column cognition.prompts.bundle_id is
'The context. Retention keeps it as long as the record; a missing one contained a memory that was forgotten.';
comment on column cognition.prompts.stable_chars is
'Characters of the context that are in the system message; the others are before the input.';
comment on column cognition.prompts.part_tokens is
'Tokens of the system message, conversation, memories, input, tool work of the turn, and tool definitions.';
comment on column cognition.prompts.error is 'The code of the error if the call failed.';
comment on column cognition.prompts.salt is
'Random bytes before the request in its hash. Null after a text of the prompt was erased, so that the text cannot be
guessed from the hash.';
comment on column cognition.prompts.hash is 'SHA-256 of the salt and the exact request.';

call runtime.isolate('cognition.prompts');
grant select, insert on cognition.prompts to newton_app;
