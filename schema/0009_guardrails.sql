-- What a person has changed about the guardrails of an agent. Those that ship as files are not copied: the last change of
-- a name says whether the agent's own expression holds, the file's, or none.
create table brain.guardrails (
    agent_id uuid not null references runtime.agents (agent_id),
    name text not null check (name ~ '^[a-z][a-z0-9_-]*$' and length(name) <= 60),
    version integer not null check (version >= 1),
    at timestamptz not null,
    origin text not null check (origin <> ''),
    change text not null check (change in ('added', 'retired', 'restored')),
    expression text check (expression <> ''),
    severity text check (severity in ('warn', 'block')),
    message text check (message <> ''),
    description text,
    primary key (agent_id, name, version),
    check (num_nulls(expression, severity, message, description) = case change when 'added' then 0 else 4 end)
);

comment on column brain.guardrails.expression is 'CEL; true when a choice breaks the rule.';
comment on column brain.guardrails.change is 'added: this expression holds; retired: none; restored: the file''s again.';

call runtime.isolate('brain.guardrails');
grant select, insert on brain.guardrails to newton_app;
