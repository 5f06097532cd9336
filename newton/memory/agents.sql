-- name: insert_agent(agent_id, name, now)
insert into runtime.agents (agent_id, name, created_at)
values ($1, $2, $3)
on conflict do nothing;

-- name: insert_user_agent(agent_id, name, now, parent_agent_id, user_name)
insert into runtime.agents (agent_id, name, created_at, parent_agent_id, user_name)
values ($1, $2, $3, $4, $5)
on conflict do nothing
returning agent_id;

-- name: agent_exists(agent_id)
select 1
from runtime.agents
where agent_id = $1;

-- name: read_model(agent_id)
select model
from runtime.agents
where agent_id = $1;

-- name: set_model(agent_id, model)
update runtime.agents
set model = $2
where agent_id = $1;

-- name: get_created_at(agent_id)
select created_at
from runtime.agents
where agent_id = $1;

-- name: list_user_agents(parent_agent_id)
-- Run as newton_worker: the memories of the users of an agent are agents of their own.
select agent_id, name
from runtime.agents
where parent_agent_id = $1
order by name;

-- name: count_user_agents(parent_agent_id, since)
-- Run as newton_worker, for the same reason.
select count(*)::integer as total, (count(*) filter (where created_at > $2))::integer as recent
from runtime.agents
where parent_agent_id = $1;

-- name: list_names()
-- Run as newton_worker: the application role sees one agent only. The memories of users are not listed.
select name
from runtime.agents
where parent_agent_id is null
order by name;
