-- name: insert_agent(agent_id, name, now)
insert into runtime.agents (agent_id, name, created_at)
values ($1, $2, $3)
on conflict do nothing;

-- name: agent_exists(agent_id)
select 1
from runtime.agents
where agent_id = $1;

-- name: list_names()
-- Run as newton_worker: the application role sees one agent only.
select name
from runtime.agents
order by name;
