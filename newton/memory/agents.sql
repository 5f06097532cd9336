-- name: insert_agent(agent_id, name, now)
insert into runtime.agents (agent_id, name, created_at)
values ($1, $2, $3)
on conflict do nothing;

-- name: insert_user_agent(agent_id, name, now, parent_agent_id, user_name)
insert into runtime.agents (agent_id, name, created_at, parent_agent_id, user_name)
values ($1, $2, $3, $4, $5)
on conflict do nothing
returning agent_id;

-- name: insert_project_agent(agent_id, name, now, parent_agent_id, project_name)
insert into runtime.agents (agent_id, name, created_at, parent_agent_id, project_name)
values ($1, $2, $3, $4, $5)
on conflict do nothing
returning agent_id;

-- name: insert_project(agent_id, project_agent_id, name, now)
insert into runtime.projects (agent_id, project_agent_id, name, created_at)
values ($1, $2, $3, $4)
on conflict do nothing;

-- name: delete_project(agent_id, project_agent_id)
delete from runtime.projects
where agent_id = $1 and project_agent_id = $2;

-- name: delete_agent(agent_id)
select runtime.delete_agent($1);

-- name: list_projects(agent_id)
select project_agent_id, name, created_at
from runtime.projects
where agent_id = $1
order by name;

-- name: agent_exists(agent_id)
select 1
from runtime.agents
where agent_id = $1;

-- name: read_agent(agent_id)
select model, parent_agent_id, project_name
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

-- name: list_dependents(parent_ids)
-- Run as newton_worker: the memories of users and of projects are agents of their own.
select agent_id, name, project_name is not null as is_project
from runtime.agents
where parent_agent_id = any($1::uuid[])
order by name;

-- name: count_user_agents(parent_agent_id, since)
-- Run as newton_worker, for the same reason.
select count(*)::integer as total, (count(*) filter (where created_at > $2))::integer as recent
from runtime.agents
where parent_agent_id = $1 and user_name is not null;

-- name: list_names()
-- Run as newton_worker: the application role sees one agent only. The memories of users and projects are not listed.
select name
from runtime.agents
where parent_agent_id is null
order by name;
