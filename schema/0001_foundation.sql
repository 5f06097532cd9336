-- Roles, schemas and row level security. Every row belongs to exactly one agent, and one agent cannot read another's
-- rows.
create extension if not exists vector;

create schema memory;
create schema heart;
create schema brain;
create schema dialogue;
create schema cognition;

-- newton_app and newton_worker stand for the two roles of the database, which `newton/db/roles.py` names and creates. The
-- application works as newton_app, which owns no table and cannot bypass row level security.
grant usage on schema memory, heart, brain, dialogue, cognition, runtime to newton_app;

-- newton_worker claims due jobs for all agents. It reads only the queue and the names of agents; the jobs themselves
-- run as newton_app, for one agent at a time.
grant usage on schema runtime to newton_worker;

-- Restricts a table to the agent in scope. If newton.agent_id is not set, the policy compares with NULL and no row
-- matches.
create procedure runtime.isolate(target regclass)
language plpgsql
as $$
begin
    execute format('alter table %s enable row level security', target);
    execute format('alter table %s force row level security', target);
    execute format(
        'create policy agent on %s using (agent_id = nullif(current_setting(''newton.agent_id'', true), '''')::uuid)',
        target
    );
end
$$;

-- Sets the agent in scope until the transaction ends. SET LOCAL, unlike set_config, also applies on the other nodes of a
-- distributed database, where the rows are and row level security is checked. EXECUTE sends it as a message of its own.
create function runtime.set_agent_scope(scoped_agent uuid) returns void
language plpgsql
as $$
begin
    execute format('set local newton.agent_id = %L', scoped_agent);
end
$$;

-- Returns the given time, or that of the database if it is null. A distributed database evaluates it before it sends a
-- statement to the node of an agent; it refuses the same inside of COALESCE.
create function runtime.get_moment(moment timestamptz) returns timestamptz
language plpgsql
stable
parallel safe
as $$
begin
    return coalesce(moment, statement_timestamp());
end
$$;

create table runtime.agents (
    agent_id uuid primary key,
    name text not null check (name <> ''),
    created_at timestamptz not null,
    parent_agent_id uuid,
    user_name text,
    model text check (model <> ''),
    check ((parent_agent_id is null) = (user_name is null))
);

comment on table runtime.agents is
'One agent. agent_id is derived from the name, so a lookup by name reads no other row.';
comment on column runtime.agents.user_name is
'The user of the parent agent whose memory this is; null for an agent of its own.';

comment on column runtime.agents.model is
'The name of the default model of the agent; null for the configured one.';

call runtime.isolate('runtime.agents');
grant select, insert, update (model) on runtime.agents to newton_app;
create policy worker on runtime.agents for select to newton_worker using (true);
grant select on runtime.agents to newton_worker;

