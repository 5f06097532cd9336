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
    foreign key (agent_id, parent_id) references dialogue.sessions (agent_id, session_id),
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
