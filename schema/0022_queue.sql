-- The queue of what is due: one row for each run of a job for an agent. A slot is the moment that a schedule names.
create table runtime.jobs (
    agent_id uuid not null references runtime.agents (agent_id),
    job_id uuid not null,
    name text not null check (name <> ''),
    slot timestamptz not null,
    state text not null default 'queued' check (state in ('queued', 'running', 'done', 'dead')),
    attempts integer not null default 0 check (attempts >= 0),
    due_at timestamptz not null,
    epoch bigint not null default 0,
    holder text check (holder <> ''),
    leased_until timestamptz,
    started_at timestamptz,
    finished_at timestamptz,
    result jsonb,
    because text,
    error text,
    primary key (agent_id, job_id),
    unique (agent_id, name, slot),
    check ((state = 'running') = (leased_until is not null)),
    check ((state in ('done', 'dead')) = (finished_at is not null)),
    check (state <> 'running' or (holder is not null and started_at is not null)),
    check (state <> 'dead' or error is not null)
);

comment on table runtime.jobs is 'All times are by the clock of the database, so that several machines agree on them.';
comment on column runtime.jobs.epoch is 'Raised by each claim. Who ends a run names the epoch of their claim, so that nobody ends what another has taken over.';
comment on column runtime.jobs.result is 'What a run did, in numbers and ids and never in words of a memory; null when nothing was done.';

-- A job waits or runs once for an agent: slots that were missed meanwhile are one. It is small, for it holds no run that
-- has ended, and what is due for any agent is found in it.
create unique index jobs_live_idx on runtime.jobs (agent_id, name) include (job_id, due_at, state, leased_until)
where state in ('queued', 'running');

call runtime.isolate('runtime.jobs');
grant select, delete on runtime.jobs to newton_app;
grant insert (agent_id, job_id, name, slot, due_at) on runtime.jobs to newton_app;
grant update (state, attempts, due_at, leased_until, finished_at, result, because, error) on runtime.jobs to newton_app;

-- What is due is claimed for every agent by a role that sees the queue and the names of the agents, and nothing else. The
-- work itself is done as newton_app, for one agent.
do $$
begin
    create role newton_worker login nosuperuser nocreatedb nocreaterole nobypassrls noinherit;
exception
    when duplicate_object or unique_violation then null; -- another database of this server has made it
end
$$;

do $$
declare
    member name;
begin
    execute format('grant newton_worker to %I', current_user);
    for member in
        select u.rolname
        from pg_auth_members as m
        join pg_roles as u on u.oid = m.member
        where m.roleid = 'newton_app'::regrole and u.rolname <> current_user
    loop
        execute format('grant newton_worker to %I', member);
    end loop;
end
$$;

grant usage on schema runtime to newton_worker;
create policy worker on runtime.jobs to newton_worker using (true);
create policy worker on runtime.agents for select to newton_worker using (true);
grant select on runtime.agents, runtime.jobs to newton_worker;
grant insert (agent_id, job_id, name, slot, due_at) on runtime.jobs to newton_worker;
grant update (state, attempts, due_at, epoch, holder, leased_until, started_at, finished_at, error)
on runtime.jobs to newton_worker;
