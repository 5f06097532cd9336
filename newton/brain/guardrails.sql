-- name: lock_guardrails(agent_id)
select pg_advisory_xact_lock(hashtextextended($1::uuid::text, 4))
from (select count(*) from runtime.agents where agent_id = $1) as node;

-- name: list_last_changes(agent_id)
-- The last change of each name.
select distinct on (g.name)
    g.name, g.version, g.change, g.expression, g.severity, g.message, g.description
from brain.guardrails as g
where g.agent_id = $1
order by g.name, g.version desc;

-- name: change_guardrail(agent_id, name, version, changed_at, origin, change, expression, severity, message, description)
insert into brain.guardrails
    (agent_id, name, version, changed_at, origin, change, expression, severity, message, description)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);
