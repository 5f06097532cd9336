-- What the daemon tells those who listen, and what it answered to requests that may come again.
create table runtime.events (
    agent_id uuid not null references runtime.agents (agent_id),
    number bigint not null check (number > 0),
    type text not null check (type ~ '^[a-z_]+\.[a-z_]+$'),
    at timestamptz not null,
    payload jsonb not null check (jsonb_typeof(payload) = 'object'),
    primary key (agent_id, number)
);

comment on table runtime.events is 'What happened to an agent, in order. A payload has ids and counts, and no words of anybody.';
comment on column runtime.events.number is 'Counts one up with each; given under a lock, so that none appears behind one that was read.';

call runtime.isolate('runtime.events');
grant select, insert, delete on runtime.events to newton_app;

create table runtime.answers (
    agent_id uuid not null references runtime.agents (agent_id),
    key text not null check (key <> ''),
    request bytea not null check (length(request) = 32),
    status smallint not null check (status between 200 and 299),
    answer text not null,
    at timestamptz not null,
    primary key (agent_id, key)
);

create index answers_at on runtime.answers (agent_id, at);

comment on table runtime.answers is 'The answers to POSTs with an Idempotency-Key, kept for a day. They hold ids, and no words of anybody.';
comment on column runtime.answers.request is 'SHA-256 of method, address and body.';

call runtime.isolate('runtime.answers');
grant select, insert, delete on runtime.answers to newton_app;
