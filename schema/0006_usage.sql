-- What models cost, as they reported it. The daily ceiling is checked against the sum.
create table runtime.usage (
    agent_id uuid not null references runtime.agents (agent_id),
    usage_id uuid not null,
    at timestamptz not null,
    model text not null,
    purpose text not null,
    input_tokens integer not null check (input_tokens >= 0),
    output_tokens integer not null check (output_tokens >= 0),
    estimated boolean not null,
    counted integer check (counted >= 0),
    messages integer check (messages >= 0),
    primary key (agent_id, usage_id)
);

create index usage_day_idx on runtime.usage (agent_id, at) include (input_tokens, output_tokens);

create index usage_samples_idx on runtime.usage (agent_id, model, usage_id) where counted is not null and not estimated;

comment on column runtime.usage.counted is 'Tokens of what was sent by our own count, to learn how the model counts.';
comment on column runtime.usage.estimated is 'The endpoint reported nothing and the tokens were counted here.';

call runtime.isolate('runtime.usage');
grant select, insert on runtime.usage to newton_app;
