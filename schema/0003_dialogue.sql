-- Conversations, verbatim and append-only: the evidence that every other memory refers to.
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

comment on column dialogue.sessions.parent_id is 'A branch continues its parent''s messages up to parent_position.';

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
    tool_calls jsonb check (jsonb_typeof(tool_calls) = 'array'),
    tool_call_id text check (tool_call_id <> ''),
    is_notice boolean not null,
    tokens integer not null check (tokens > 0),
    said_at timestamptz not null,
    recorded_at timestamptz not null,
    primary key (agent_id, session_id, position),
    unique (agent_id, ref, session_id),  -- ref first: range scans over positions never use this index
    foreign key (agent_id, session_id) references dialogue.sessions (agent_id, session_id),
    check (content <> '' or tool_calls is not null),
    check (tool_calls is null or role = 'assistant'),
    check (tool_call_id is null or role = 'tool')
);

-- not unique: an endpoint may restart the numbering of its calls in each turn
create index messages_tool_call_idx on dialogue.messages (agent_id, session_id, tool_call_id) where tool_call_id is not null;
create index messages_tool_calls_idx on dialogue.messages (agent_id, session_id, position) where tool_calls is not null;

comment on column dialogue.messages.tokens is 'Tokens of content and tool calls, counted when the message is stored.';
comment on column dialogue.messages.tool_calls is 'Tool calls: {id, name, arguments} each.';
comment on column dialogue.messages.tool_call_id is 'For a tool result: the id of the call that it answers.';
comment on column dialogue.messages.is_notice is
'A notice written by Newton when no model answered. It is never sent to a model and creates no memory.';
comment on column dialogue.messages.ref is
'The caller''s id of the message; a hash of the message if the caller gave none.';

comment on table dialogue.messages is
'A message becomes a memory of kind exchange with thread_id = session_id and the same position.';

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
    created_at timestamptz not null,
    primary key (agent_id, memory_id),
    foreign key (agent_id, session_id) references dialogue.sessions (agent_id, session_id),
    foreign key (agent_id, memory_id) references memory.memories (agent_id, memory_id) on delete cascade,
    check ((first_position is null) = (last_position is null))
);

create index artifacts_session_idx on dialogue.artifacts (agent_id, session_id, type);

comment on table dialogue.artifacts is
'The memory of an artifact has thread_id = session_id; its position numbers the artifacts of the session.';
comment on column dialogue.artifacts.chunk_index is 'Index of the chunk, starting at 0, if the text was split.';
comment on column dialogue.artifacts.first_position is
'The messages it was made from; null if it was made from none, for example from a web page.';
comment on column dialogue.artifacts.source is 'The tool that returned the text, or the URL.';

call runtime.isolate('dialogue.artifacts');
grant select, insert on dialogue.artifacts to newton_app;

-- Returns the words of a text by which `artifact_chunks` is searched. Identifiers and paths count as a whole and by their
-- parts, so that `max_upload_bytes` and `MaxUploadBytes` are found by "upload".
create function dialogue.artifact_words(text text) returns tsvector
language sql
immutable
parallel safe
return to_tsvector('pg_catalog.english', text)
|| to_tsvector(
    'pg_catalog.english',
    regexp_replace(regexp_replace(text, '([[:lower:][:digit:]])([[:upper:]])', '\1 \2', 'g'), '[^[:alnum:]]+', ' ', 'g')
);

-- Long tool outputs, pasted texts, files and attachments of a session, one row for each version. The text is in
-- dialogue.artifact_chunks. An image or another binary has no text: only its size and hash are stored.
create table dialogue.artifact_versions (
    agent_id uuid not null,
    artifact_id uuid not null,
    session_id uuid not null,
    name text not null check (name <> '' and name !~ '[\n\r]'),
    version integer not null check (version > 0),
    kind text not null check (kind in ('output', 'paste', 'file', 'upload', 'attachment')),
    media_type text not null check (media_type <> ''),
    line_count integer not null check (line_count >= 0),
    byte_count bigint not null check (byte_count >= 0),
    sha256 bytea not null check (length(sha256) = 32),
    source text check (source <> ''),
    position integer check (position >= 0),
    origin text not null check (origin <> ''),
    trust text not null check (trust in ('operator', 'user', 'agent', 'tool', 'web')),
    created_at timestamptz not null,
    primary key (agent_id, artifact_id),
    unique (agent_id, session_id, name, version),
    foreign key (agent_id, session_id) references dialogue.sessions (agent_id, session_id)
);

create index artifact_versions_position_idx on dialogue.artifact_versions (agent_id, session_id, position)
where position is not null;

comment on column dialogue.artifact_versions.line_count is '0 for a binary. A very long line counts as several.';
comment on column dialogue.artifact_versions.byte_count is
'Bytes of the stored text in UTF-8, after secrets were removed; of a binary, the bytes of the original.';
comment on column dialogue.artifact_versions.sha256 is 'Hash of the stored text; of a binary, of the original bytes.';
comment on column dialogue.artifact_versions.source is 'The tool call that returned or wrote the text.';
comment on column dialogue.artifact_versions.position is
'The message that contains the text. Forgetting this message deletes the version. Null for an upload.';

call runtime.isolate('dialogue.artifact_versions');
grant select, insert on dialogue.artifact_versions to newton_app;

-- The texts of artifacts in chunks of consecutive lines. A read of some lines fetches only the chunks that contain them.
create table dialogue.artifact_chunks (
    agent_id uuid not null,
    artifact_id uuid not null,
    first_line integer not null check (first_line > 0),
    line_count integer not null check (line_count > 0),
    text text not null,
    ending text not null check (ending in ('', e'\n')),
    words tsvector not null generated always as (dialogue.artifact_words(text)) stored,
    primary key (agent_id, artifact_id, first_line),
    foreign key (agent_id, artifact_id)
    references dialogue.artifact_versions (agent_id, artifact_id) on delete cascade
);

comment on column dialogue.artifact_chunks.ending is
'What follows the chunk: nothing, if the next chunk continues a very long line, or at the end of the text.';

call runtime.isolate('dialogue.artifact_chunks');
grant select, insert on dialogue.artifact_chunks to newton_app;

-- Vectors of passages of artifacts, computed by the job `embed`. They are not exported: the job computes them again.
create table dialogue.artifact_vectors (
    agent_id uuid not null,
    artifact_id uuid not null,
    model_id uuid not null references memory.models (model_id),
    first_line integer not null check (first_line > 0),
    embedding halfvec not null,
    primary key (agent_id, artifact_id, model_id, first_line),
    foreign key (agent_id, artifact_id)
    references dialogue.artifact_versions (agent_id, artifact_id) on delete cascade
);

alter table dialogue.artifact_vectors alter column embedding set storage plain;

call runtime.isolate('dialogue.artifact_vectors');
grant select, insert on dialogue.artifact_vectors to newton_app;

-- Compaction entries replace ranges of messages in what a model is sent. The messages stay unchanged, and removing an
-- entry restores what it replaced.
create table dialogue.compaction_entries (
    agent_id uuid not null,
    session_id uuid not null,
    entry_id uuid not null,
    kind text not null check (kind in ('mask', 'tools', 'turn', 'goals', 'merged', 'task')),
    first_position integer not null check (first_position >= 0),
    last_position integer not null,
    text text not null check (text <> ''),
    tokens integer not null check (tokens > 0),
    tokens_before integer not null,
    strategy text not null check (strategy <> ''),
    prompt text not null,
    model text check (model <> ''),
    created_at timestamptz not null,
    primary key (agent_id, session_id, entry_id),
    foreign key (agent_id, session_id) references dialogue.sessions (agent_id, session_id),
    check (last_position >= first_position),
    constraint compaction_entries_shorter_check check (tokens < tokens_before)
);

create index compaction_entries_range_idx
on dialogue.compaction_entries (agent_id, session_id, first_position, last_position desc, created_at desc, entry_id desc);

comment on column dialogue.compaction_entries.tokens_before is 'Tokens of what the entry replaced.';
comment on column dialogue.compaction_entries.prompt is
'The version of the prompt or of the rules that produced the entry.';
comment on column dialogue.compaction_entries.model is
'The model that wrote the text; null if it was extracted from the messages.';

call runtime.isolate('dialogue.compaction_entries');
grant select, insert on dialogue.compaction_entries to newton_app;

-- Entries that a person, or a program on their behalf, has removed.
create table dialogue.entry_restorations (
    agent_id uuid not null,
    session_id uuid not null,
    entry_id uuid not null,
    pinned boolean not null,
    restored_at timestamptz not null,
    origin text not null check (origin <> ''),
    primary key (agent_id, session_id, entry_id),
    foreign key (agent_id, session_id, entry_id)
        references dialogue.compaction_entries (agent_id, session_id, entry_id) on delete cascade
);

comment on column dialogue.entry_restorations.pinned is
'True: the range is not compacted again. False: the entry was only removed because it covered the one that was meant.';

call runtime.isolate('dialogue.entry_restorations');
grant select, insert on dialogue.entry_restorations to newton_app;

-- The messages of other sessions that a branch begins with: one row for each ancestor.
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
    created_at timestamptz not null,
    primary key (agent_id, session_id, name),
    foreign key (agent_id, session_id) references dialogue.sessions (agent_id, session_id)
);

call runtime.isolate('dialogue.checkpoints');
grant select, insert on dialogue.checkpoints to newton_app;

-- Responses of the Responses API: places in the log of a session, which contains their text.
create table dialogue.responses (
    agent_id uuid not null,
    response_id uuid not null,
    session_id uuid not null,
    position integer check (position >= 0),
    previous_id uuid,
    model text check (model <> ''),
    status text check (status in ('completed', 'incomplete', 'failed')),
    incomplete_reason text check (incomplete_reason in ('max_output_tokens', 'content_filter')),
    usage jsonb,
    metadata jsonb,
    created_at timestamptz not null,
    completed_at timestamptz,
    primary key (agent_id, response_id),
    foreign key (agent_id, session_id) references dialogue.sessions (agent_id, session_id),
    check (status is null or (position, model, usage, metadata, completed_at) is not null)
);

create index responses_previous_idx on dialogue.responses (agent_id, previous_id) where previous_id is not null;

comment on column dialogue.responses.position is
'The last message of the turn: the reply, or the input if the model said nothing.';
comment on column dialogue.responses.status is
'Null until the turn has ended: the row only reserves the place after the previous response.';
comment on column dialogue.responses.metadata is 'Labels of the caller.';

call runtime.isolate('dialogue.responses');
grant select, insert, delete on dialogue.responses to newton_app;
grant update (position, model, status, incomplete_reason, usage, metadata, completed_at) on dialogue.responses to newton_app;

-- Messages of one session that are shown in another one, after a position.
create table dialogue.injections (
    agent_id uuid not null,
    session_id uuid not null,
    injection_id uuid not null,
    position integer not null check (position >= 0),
    source_session_id uuid not null,
    first_position integer not null,
    last_position integer not null,
    tokens integer not null check (tokens > 0),
    created_at timestamptz not null,
    primary key (agent_id, session_id, injection_id),
    foreign key (agent_id, session_id) references dialogue.sessions (agent_id, session_id),
    foreign key (agent_id, source_session_id) references dialogue.sessions (agent_id, session_id),
    check (last_position >= first_position)
);

call runtime.isolate('dialogue.injections');
grant select, insert on dialogue.injections to newton_app;

-- Injections that a person, or a program on their behalf, has removed again.
create table dialogue.injection_removals (
    agent_id uuid not null,
    session_id uuid not null,
    injection_id uuid not null,
    removed_at timestamptz not null,
    origin text not null check (origin <> ''),
    primary key (agent_id, session_id, injection_id),
    foreign key (agent_id, session_id, injection_id)
        references dialogue.injections (agent_id, session_id, injection_id)
);

call runtime.isolate('dialogue.injection_removals');
grant select, insert on dialogue.injection_removals to newton_app;

-- Memories and texts that a caller has put into the context of a session, until they are removed again.
create table dialogue.context_injections (
    agent_id uuid not null,
    session_id uuid not null,
    injection_id uuid not null,
    memory_id uuid,
    text text check (text <> ''),
    line_tokens integer[],
    trust text not null check (trust in ('operator', 'user', 'agent', 'tool', 'web')),
    origin text not null check (origin <> ''),
    created_at timestamptz not null,
    removed_at timestamptz check (removed_at >= created_at),
    primary key (agent_id, session_id, injection_id),
    foreign key (agent_id, session_id) references dialogue.sessions (agent_id, session_id),
    foreign key (agent_id, memory_id) references memory.memories (agent_id, memory_id) on delete cascade,
    constraint context_injections_content_check check ((memory_id is null) <> (text is null)),
    check ((text is null) = (line_tokens is null))
);

create unique index context_injections_memory_idx on dialogue.context_injections (agent_id, session_id, memory_id)
where memory_id is not null and removed_at is null;

comment on column dialogue.context_injections.line_tokens is 'The tokens of each line of the text, as a context shows it.';
comment on column dialogue.context_injections.trust is 'The trust of whoever gave the text; that of a memory is its own.';

call runtime.isolate('dialogue.context_injections');
grant select, insert, update (removed_at) on dialogue.context_injections to newton_app;

-- Session leases: the exclusive right to run a turn or a compaction until expires_at, by the clock of the database. The
-- lease of a killed process expires.
create table dialogue.leases (
    agent_id uuid not null,
    session_id uuid not null,
    purpose text not null check (purpose in ('turn', 'compaction')),
    holder uuid not null,
    acquired_at timestamptz not null,
    expires_at timestamptz not null,
    primary key (agent_id, session_id, purpose),
    foreign key (agent_id, session_id) references dialogue.sessions (agent_id, session_id)
);

call runtime.isolate('dialogue.leases');
grant select, insert, update (holder, acquired_at, expires_at) on dialogue.leases to newton_app;

-- Readings in full of a message that an entry replaces: signs that the entry left out too much.
create table dialogue.entry_rereads (
    agent_id uuid not null,
    session_id uuid not null,
    entry_id uuid not null,
    position integer not null check (position >= 0),
    read_at timestamptz not null,
    origin text not null check (origin <> ''),
    primary key (agent_id, session_id, entry_id, position),
    foreign key (agent_id, session_id, entry_id)
        references dialogue.compaction_entries (agent_id, session_id, entry_id) on delete cascade
);

comment on column dialogue.entry_rereads.position is 'The message that was read.';

call runtime.isolate('dialogue.entry_rereads');
grant select, insert on dialogue.entry_rereads to newton_app;

-- The brief of a session: goals, deadlines, rules, constraints and open items, word for word as they were said. They are
-- kept apart from the messages and their summaries, so that no summary can lose or change them.
create table dialogue.brief_items (
    agent_id uuid not null,
    session_id uuid not null,
    item_id uuid not null,
    kind text not null check (kind in ('goal', 'deadline', 'rule', 'constraint', 'open_item')),
    text text not null check (text <> ''),
    tokens integer not null check (tokens > 0),
    position integer not null check (position >= 0),
    source text not null check (source in ('rules', 'model')),
    memory_id uuid,
    said_at timestamptz not null,
    created_at timestamptz not null,
    primary key (agent_id, session_id, item_id),
    foreign key (agent_id, session_id) references dialogue.sessions (agent_id, session_id)
);

create index brief_items_memory_idx on dialogue.brief_items (agent_id, memory_id) where memory_id is not null;

comment on column dialogue.brief_items.tokens is 'Tokens of the line of the item in a context.';
comment on column dialogue.brief_items.position is 'The message that said it.';
comment on column dialogue.brief_items.source is
'What typed the item: rules on the words, or a model whose quotation was verified.';
comment on column dialogue.brief_items.memory_id is 'The memory of the message; forgetting it deletes the item.';

call runtime.isolate('dialogue.brief_items');
grant select, insert on dialogue.brief_items to newton_app;

-- The ends of items. A branch closes items of its parent for itself only, so a closing belongs to a session.
create table dialogue.brief_closings (
    agent_id uuid not null,
    session_id uuid not null,
    item_id uuid not null,
    status text not null check (status in ('done', 'replaced', 'dropped')),
    position integer not null check (position >= -1),
    memory_id uuid,
    replaced_by uuid,
    closed_at timestamptz not null,
    origin text not null check (origin <> ''),
    primary key (agent_id, session_id, item_id),
    foreign key (agent_id, session_id) references dialogue.sessions (agent_id, session_id),
    check ((status = 'replaced') = (replaced_by is not null))
);

create index brief_closings_memory_idx on dialogue.brief_closings (agent_id, memory_id) where memory_id is not null;

comment on column dialogue.brief_closings.memory_id is
'The memory of the message that closed the item; forgetting it opens the item again.';

call runtime.isolate('dialogue.brief_closings');
grant select, insert on dialogue.brief_closings to newton_app;

-- Statistics of each compaction run.
create table dialogue.compaction_runs (
    agent_id uuid not null,
    session_id uuid not null,
    run_id uuid not null,
    strategy text not null check (strategy <> ''),
    started_at timestamptz not null,
    duration_ms real not null check (duration_ms >= 0),
    tokens_before integer not null,
    tokens_after integer not null,
    tokens_spent integer not null check (tokens_spent >= 0),
    error text check (error <> ''),
    primary key (agent_id, session_id, run_id),
    foreign key (agent_id, session_id) references dialogue.sessions (agent_id, session_id)
);

comment on column dialogue.compaction_runs.tokens_spent is
'Tokens of the prompts and answers of the model in this run, by the local token counter; 0 without a model.';

call runtime.isolate('dialogue.compaction_runs');
grant select, insert on dialogue.compaction_runs to newton_app;

-- Task stack of a session: goals with sub-goals. The active tasks form one chain and its innermost task is the current
-- one, so a task has at most one active child and a session at most one active root.
create table dialogue.tasks (
    agent_id uuid not null,
    session_id uuid not null,
    task_id uuid not null,
    number integer not null check (number > 0),
    parent_id uuid,
    replaces_task_id uuid,
    depth integer not null check (depth >= 0),
    goal text not null check (goal <> ''),
    status text not null default 'active',
    is_step boolean not null default false,
    first_position integer not null check (first_position >= 0),
    pushed_at timestamptz not null,
    primary key (agent_id, session_id, task_id),
    unique (agent_id, session_id, number),
    foreign key (agent_id, session_id) references dialogue.sessions (agent_id, session_id),
    foreign key (agent_id, session_id, parent_id) references dialogue.tasks (agent_id, session_id, task_id) deferrable,
    foreign key (agent_id, session_id, replaces_task_id) references dialogue.tasks (agent_id, session_id, task_id) deferrable,
    constraint tasks_status_check check (status in ('planned', 'active', 'blocked', 'complete', 'failed', 'skipped')),
    constraint tasks_step_check check (is_step or status not in ('planned', 'skipped')),
    constraint tasks_root_check check ((depth = 0) = (parent_id is null))
);

create unique index tasks_active_idx on dialogue.tasks (agent_id, session_id, parent_id) nulls not distinct
where status = 'active';

comment on column dialogue.tasks.task_id is 'Also the memory_id of the episode that is written when the task ends.';
comment on column dialogue.tasks.replaces_task_id is 'The failed task that this one replaces.';
comment on column dialogue.tasks.is_step is 'Whether it was created as a step of a plan, before its work began.';
comment on column dialogue.tasks.first_position is
'The position of the first message after the push, present or future.';

call runtime.isolate('dialogue.tasks');
grant select, insert, update (status) on dialogue.tasks to newton_app;

-- Every status change of a task, so that the stack can be rebuilt for any moment.
create table dialogue.task_transitions (
    agent_id uuid not null,
    session_id uuid not null,
    task_id uuid not null,
    step integer not null check (step > 0),
    event text not null,
    from_status text not null,
    to_status text not null,
    text text check (text <> ''),
    position integer not null check (position >= -1),
    changed_at timestamptz not null,
    origin text not null check (origin <> ''),
    primary key (agent_id, session_id, task_id, step),
    foreign key (agent_id, session_id, task_id) references dialogue.tasks (agent_id, session_id, task_id),
    constraint task_transitions_allowed_check check (
        (from_status, event, to_status) in (
            ('planned', 'started', 'active'),
            ('planned', 'skipped', 'skipped'),
            ('active', 'completed', 'complete'),
            ('active', 'failed', 'failed'),
            ('active', 'blocked', 'blocked'),
            ('blocked', 'resumed', 'active'),
            ('blocked', 'abandoned', 'failed')
        )
    ),
    constraint task_transitions_outcome_check check (text is not null or event in ('resumed', 'started'))
);

comment on column dialogue.task_transitions.text is 'The result, or the reason why the task failed or is blocked.';
comment on column dialogue.task_transitions.position is
'The last position of the session at that time; -1 if it was empty.';

call runtime.isolate('dialogue.task_transitions');
grant select, insert on dialogue.task_transitions to newton_app;

-- How far each session has been read for durable facts. Forgetting an artifact does not lower the watermark, so it is
-- not extracted again.
create table dialogue.fact_watermarks (
    agent_id uuid not null,
    session_id uuid not null,
    last_position integer not null check (last_position >= 0),
    primary key (agent_id, session_id),
    foreign key (agent_id, session_id) references dialogue.sessions (agent_id, session_id)
);

call runtime.isolate('dialogue.fact_watermarks');
grant select, insert, update (last_position) on dialogue.fact_watermarks to newton_app;

-- The last message of each session that was considered for an episode, whether or not it became part of one, and the
-- last one that facts were extracted from; -1 before the first message.
create table dialogue.episode_watermarks (
    agent_id uuid not null,
    session_id uuid not null,
    last_position integer not null default -1 check (last_position >= -1),
    parsed_position integer not null default -1 check (parsed_position >= -1),
    primary key (agent_id, session_id),
    foreign key (agent_id, session_id) references dialogue.sessions (agent_id, session_id)
);

call runtime.isolate('dialogue.episode_watermarks');
grant select, insert, update (last_position, parsed_position) on dialogue.episode_watermarks to newton_app;

