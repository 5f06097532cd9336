-- Models whose latest call in the background failed, by the purpose of the call. A call that succeeds deletes the row.
create table runtime.failing_models (
    agent_id uuid not null references runtime.agents (agent_id),
    purpose text not null check (purpose <> ''),
    model text not null check (model <> ''),
    failure text not null check (failure <> ''),
    calls integer not null check (calls > 0),
    failing_since timestamptz not null,
    last_failure_at timestamptz not null,
    primary key (agent_id, purpose)
);

comment on column runtime.failing_models.failure is 'Why the latest call failed, without the text of a request or reply.';
comment on column runtime.failing_models.calls is 'Calls in a row that failed.';

call runtime.isolate('runtime.failing_models');
grant select, insert, delete on runtime.failing_models to newton_app;
grant update (model, failure, calls, last_failure_at) on runtime.failing_models to newton_app;
