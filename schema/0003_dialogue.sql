-- Conversations, word for word and append-only: the evidence that everything else points to.
create table dialogue.sessions (
    agent_id uuid not null references runtime.agents (agent_id),
    session_id uuid not null,
    ref text not null check (ref <> ''),
    created_at timestamptz not null,
    parent_id uuid,
    parent_position integer,
    primary key (agent_id, session_id),
    unique (agent_id, ref),
    foreign key (agent_id, parent_id) references dialogue.sessions (agent_id, session_id) deferrable,
    check ((parent_id is null) = (parent_position is null))
);

comment on column dialogue.sessions.parent_id is 'A branch goes on from its parent''s lines up to parent_position.';

call runtime.isolate('dialogue.sessions');
grant select, insert on dialogue.sessions to newton_app;

create table dialogue.messages (
    agent_id uuid not null,
    session_id uuid not null,
    position integer not null check (position >= 0),
    ref text not null check (ref <> ''),
    role text not null check (role in ('user', 'assistant', 'system', 'tool')),
    name text check (name <> ''),
    content text not null,
    calls jsonb check (jsonb_typeof(calls) = 'array'),
    answers text check (answers <> ''),
    aside boolean not null,
    tokens integer not null check (tokens > 0),
    said_at timestamptz not null,
    recorded_at timestamptz not null,
    primary key (agent_id, session_id, position),
    unique (agent_id, ref, session_id),  -- a range of places is never looked up by it
    foreign key (agent_id, session_id) references dialogue.sessions (agent_id, session_id),
    check (content <> '' or calls is not null),
    check (calls is null or role = 'assistant'),
    check (answers is null or role = 'tool')
);

-- not unique: an endpoint may number its calls from the beginning in each turn
create index messages_answers_idx on dialogue.messages (agent_id, session_id, answers) where answers is not null;
create index messages_calls_idx on dialogue.messages (agent_id, session_id, position) where calls is not null;

comment on column dialogue.messages.tokens is 'Of the content and the calls, counted once, when it was said.';
comment on column dialogue.messages.calls is 'What tools are called with it: {id, name, arguments} each.';
comment on column dialogue.messages.answers is 'The id of the call that a tool''s words answer.';
comment on column dialogue.messages.aside is 'Newton''s own words, because no model had any: sent to no model, and no memory.';
comment on column dialogue.messages.ref is 'The caller''s id of the line; a hash of the line when the caller gave none.';

comment on table dialogue.messages is 'A line becomes a memory of kind exchange with thread = session_id and place = position.';

call runtime.isolate('dialogue.messages');
grant select, insert on dialogue.messages to newton_app;

create table dialogue.artifacts (
    agent_id uuid not null,
    memory_id uuid not null,
    session_id uuid not null,
    type text not null check (type in ('summary', 'facts', 'tools')),
    chunk_index integer not null check (chunk_index >= 0),
    first_position integer check (first_position >= 0),
    last_position integer check (last_position >= first_position),
    source text check (source <> ''),
    made_at timestamptz not null,
    primary key (agent_id, memory_id),
    foreign key (agent_id, session_id) references dialogue.sessions (agent_id, session_id),
    foreign key (agent_id, memory_id) references memory.memories (agent_id, memory_id) on delete cascade,
    check ((first_position is null) = (last_position is null))
);

create index artifacts_session_idx on dialogue.artifacts (agent_id, session_id, type);

comment on table dialogue.artifacts is 'Its memory has thread = session_id; its place there counts the artifacts.';
comment on column dialogue.artifacts.chunk_index is 'Which piece it is of what was cut into several, from 0 on.';
comment on column dialogue.artifacts.first_position is 'The lines it was made of; null when it was made of none, as what the web said.';
comment on column dialogue.artifacts.source is 'The tool that put it out, or the address on the web.';

call runtime.isolate('dialogue.artifacts');
grant select, insert on dialogue.artifacts to newton_app;

-- What a model is shown of a conversation is its log, with entries in the place of what they tell shorter. The log stays
-- as it is, and dropping an entry brings back what stood there before it.
create table dialogue.entries (
    agent_id uuid not null,
    session_id uuid not null,
    entry_id uuid not null,
    kind text not null check (kind in ('mask', 'tools', 'turn', 'goals', 'merged', 'task')),
    first_position integer not null check (first_position >= 0),
    last_position integer not null,
    text text not null check (text <> ''),
    tokens integer not null check (tokens > 0),
    before integer not null,
    strategy text not null check (strategy <> ''),
    prompt text not null,
    model text check (model <> ''),
    made_at timestamptz not null,
    primary key (agent_id, session_id, entry_id),
    foreign key (agent_id, session_id) references dialogue.sessions (agent_id, session_id),
    check (last_position >= first_position),
    constraint an_entry_is_shorter check (tokens < before)
);

create index entries_place_idx
on dialogue.entries (agent_id, session_id, first_position, last_position desc, made_at desc, entry_id desc);

comment on column dialogue.entries.before is 'Tokens of what was shown there until then.';
comment on column dialogue.entries.prompt is 'The version of the prompt or of the rules that made it.';
comment on column dialogue.entries.model is 'Who wrote it; none when it was put together from the words themselves.';

call runtime.isolate('dialogue.entries');
grant select, insert on dialogue.entries to newton_app;

-- Entries that a person, or a program in their name, has dropped.
create table dialogue.restorations (
    agent_id uuid not null,
    session_id uuid not null,
    entry_id uuid not null,
    pinned boolean not null,
    at timestamptz not null,
    origin text not null check (origin <> ''),
    primary key (agent_id, session_id, entry_id),
    foreign key (agent_id, session_id, entry_id)
        references dialogue.entries (agent_id, session_id, entry_id) on delete cascade
);

comment on column dialogue.restorations.pinned is
    'What it covered is not told shorter again; false of an entry that went because it covered the one that was meant.';

call runtime.isolate('dialogue.restorations');
grant select, insert on dialogue.restorations to newton_app;

-- The lines of other sessions that a branch begins with: one row for each session it descends from.
create table dialogue.lineage (
    agent_id uuid not null,
    session_id uuid not null,
    ancestor_id uuid not null,
    first_position integer not null check (first_position >= 0),
    last_position integer not null,
    primary key (agent_id, session_id, ancestor_id),
    foreign key (agent_id, session_id) references dialogue.sessions (agent_id, session_id),
    foreign key (agent_id, ancestor_id) references dialogue.sessions (agent_id, session_id),
    check (last_position >= first_position)
);

call runtime.isolate('dialogue.lineage');
grant select, insert on dialogue.lineage to newton_app;

create table dialogue.checkpoints (
    agent_id uuid not null,
    session_id uuid not null,
    name text not null check (name <> ''),
    position integer not null check (position >= 0),
    at timestamptz not null,
    primary key (agent_id, session_id, name),
    foreign key (agent_id, session_id) references dialogue.sessions (agent_id, session_id)
);

call runtime.isolate('dialogue.checkpoints');
grant select, insert on dialogue.checkpoints to newton_app;

-- Lines of one session that are shown in another, behind a place there.
create table dialogue.injections (
    agent_id uuid not null,
    session_id uuid not null,
    injection_id uuid not null,
    place integer not null check (place >= 0),
    other_id uuid not null,
    first_position integer not null,
    last_position integer not null,
    tokens integer not null check (tokens > 0),
    at timestamptz not null,
    primary key (agent_id, session_id, injection_id),
    foreign key (agent_id, session_id) references dialogue.sessions (agent_id, session_id),
    foreign key (agent_id, other_id) references dialogue.sessions (agent_id, session_id),
    check (last_position >= first_position)
);

call runtime.isolate('dialogue.injections');
grant select, insert on dialogue.injections to newton_app;

-- Injections that a person, or a program in their name, has taken out again.
create table dialogue.ejections (
    agent_id uuid not null,
    session_id uuid not null,
    injection_id uuid not null,
    at timestamptz not null,
    origin text not null check (origin <> ''),
    primary key (agent_id, session_id, injection_id),
    foreign key (agent_id, session_id, injection_id)
        references dialogue.injections (agent_id, session_id, injection_id)
);

call runtime.isolate('dialogue.ejections');
grant select, insert on dialogue.ejections to newton_app;

-- Who alone may do something with a session right now, until when at the latest by the clock of the database: one whose
-- process was killed is waited for no longer.
create table dialogue.leases (
    agent_id uuid not null,
    session_id uuid not null,
    right_to text not null check (right_to in ('turn', 'compaction')),
    holder uuid not null,
    until timestamptz not null,
    primary key (agent_id, session_id, right_to),
    foreign key (agent_id, session_id) references dialogue.sessions (agent_id, session_id)
);

call runtime.isolate('dialogue.leases');
grant select, insert, update (holder, until) on dialogue.leases to newton_app;

-- How each run of a strategy went.
create table dialogue.compactions (
    agent_id uuid not null,
    session_id uuid not null,
    compaction_id uuid not null,
    strategy text not null check (strategy <> ''),
    at timestamptz not null,
    duration_ms real not null check (duration_ms >= 0),
    tokens_before integer not null,
    tokens_after integer not null,
    error text check (error <> ''),
    primary key (agent_id, session_id, compaction_id),
    foreign key (agent_id, session_id) references dialogue.sessions (agent_id, session_id)
);

call runtime.isolate('dialogue.compactions');
grant select, insert on dialogue.compactions to newton_app;

-- What a session is at: goals within goals. The active ones of a session stand one in the other, and the innermost is the
-- current one; so each has at most one active child, and a session at most one active root.
create table dialogue.tasks (
    agent_id uuid not null,
    session_id uuid not null,
    task_id uuid not null,
    number integer not null check (number > 0),
    parent_id uuid,
    instead_of uuid,
    depth integer not null check (depth >= 0),
    goal text not null check (goal <> ''),
    status text not null default 'active',
    first_position integer not null check (first_position >= 0),
    pushed_at timestamptz not null,
    primary key (agent_id, session_id, task_id),
    unique (agent_id, session_id, number),
    foreign key (agent_id, session_id) references dialogue.sessions (agent_id, session_id),
    foreign key (agent_id, session_id, parent_id) references dialogue.tasks (agent_id, session_id, task_id) deferrable,
    foreign key (agent_id, session_id, instead_of) references dialogue.tasks (agent_id, session_id, task_id) deferrable,
    constraint statuses check (status in ('active', 'blocked', 'complete', 'failed')),
    constraint a_root_has_no_parent check ((depth = 0) = (parent_id is null))
);

create unique index tasks_active_idx on dialogue.tasks (agent_id, session_id, parent_id) nulls not distinct
where status = 'active';

comment on column dialogue.tasks.task_id is 'Also the id of the episode that tells of it once it has ended.';
comment on column dialogue.tasks.instead_of is 'The task that failed, and in whose place this one was pushed.';
comment on column dialogue.tasks.first_position is 'Where the first line stands that was, or will be, said behind the push.';

call runtime.isolate('dialogue.tasks');
grant select, insert, update (status) on dialogue.tasks to newton_app;

-- Every change of a task's status, so that a stack can be told as it was at any moment.
create table dialogue.task_steps (
    agent_id uuid not null,
    session_id uuid not null,
    task_id uuid not null,
    step integer not null check (step > 0),
    event text not null,
    before text not null,
    after text not null,
    words text check (words <> ''),
    position integer not null check (position >= -1),
    at timestamptz not null,
    origin text not null check (origin <> ''),
    primary key (agent_id, session_id, task_id, step),
    foreign key (agent_id, session_id, task_id) references dialogue.tasks (agent_id, session_id, task_id),
    constraint changes check (
        (before, event, after) in (
            ('active', 'completed', 'complete'),
            ('active', 'failed', 'failed'),
            ('active', 'blocked', 'blocked'),
            ('blocked', 'resumed', 'active'),
            ('blocked', 'abandoned', 'failed')
        )
    ),
    constraint an_end_says_what_came_of_it check (words is not null or event = 'resumed')
);

comment on column dialogue.task_steps.words is 'The result, or why it failed or cannot go on.';
comment on column dialogue.task_steps.position is 'The last line of the session then; -1 when there was none.';

call runtime.isolate('dialogue.task_steps');
grant select, insert on dialogue.task_steps to newton_app;

-- How far each session has been read for what of it lasts. Forgetting an artifact does not lower it, so none comes back.
create table dialogue.noted (
    agent_id uuid not null,
    session_id uuid not null,
    last_position integer not null check (last_position >= 0),
    primary key (agent_id, session_id),
    foreign key (agent_id, session_id) references dialogue.sessions (agent_id, session_id)
);

call runtime.isolate('dialogue.noted');
grant select, insert, update (last_position) on dialogue.noted to newton_app;
