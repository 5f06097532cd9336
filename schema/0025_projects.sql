-- Projects: memories of an agent, or of one of its users, that are kept apart. Each is an agent of its own, so that row
-- level security, keys, jobs and deletion hold for it as for any other agent.
alter table runtime.agents
    add column project_name text check (project_name <> ''),
    drop constraint agents_check,
    add constraint agents_parent_check check (
        num_nonnulls(user_name, project_name) = num_nonnulls(parent_agent_id)
    );

comment on column runtime.agents.project_name is
'The project of the parent agent whose memory this is; null for an agent of its own and for the memory of a user.';

-- The projects of an agent, which it may name; the rows of a project are seen only in the scope of its own agent.
create table runtime.projects (
    agent_id uuid not null references runtime.agents (agent_id),
    project_agent_id uuid not null,
    name text not null check (name <> ''),
    created_at timestamptz not null,
    primary key (agent_id, project_agent_id)
);

comment on table runtime.projects is 'A project of an agent. project_agent_id is derived from the names of both.';

call runtime.isolate('runtime.projects');
grant select, insert, delete on runtime.projects to newton_app;

-- Deletes the contexts and prompts, of the agent in scope, that contain these memories of its parent, which forgot them.
create function cognition.forget_inherited(target_agent uuid, removed_ids uuid[]) returns void
language plpgsql
security definer
set search_path = pg_catalog
as $$
begin
    perform runtime.check_agent_scope(target_agent);
    call cognition.delete_bundles(target_agent, removed_ids);
end
$$;

revoke execute on function cognition.forget_inherited(uuid, uuid[]) from public;
grant execute on function cognition.forget_inherited(uuid, uuid[]) to newton_app;

-- As before, and without the list of its projects, which are agents of their own.
create or replace function runtime.erase_agent(target_agent uuid) returns void
language plpgsql
security definer
set search_path = pg_catalog
as $$
declare
    target_table regclass;
begin
    perform runtime.check_agent_scope(target_agent);
    for target_table in select target from runtime.agent_tables() with ordinality as t (target, ordinal) order by ordinal desc loop
        continue when target_table in (
            'runtime.agents'::regclass, 'runtime.tokens'::regclass, 'runtime.events'::regclass, 'runtime.projects'::regclass
        );
        execute format('delete from %s where agent_id = $1', target_table) using target_agent;
    end loop;
end
$$;

-- As before, and with the list of its projects.
create or replace function runtime.delete_agent(target_agent uuid) returns void
language plpgsql
security definer
set search_path = pg_catalog
as $$
begin
    perform runtime.check_agent_scope(target_agent);
    perform runtime.erase_agent(target_agent);
    delete from runtime.tokens where agent_id = target_agent;
    delete from runtime.events where agent_id = target_agent;
    delete from runtime.projects where agent_id = target_agent;
    delete from runtime.agents where agent_id = target_agent;
end
$$;
