-- name: get_now()
select statement_timestamp() as now;

-- name: enqueue_due(names, slots, now, delays)
-- Enqueues the last slot of each job for every agent, unless a run is unfinished or exists for this slot or a later one.
-- Slots more than a day ahead are ignored: they come from a wrong clock. A run is due up to its delay in seconds after
-- the slot: by a hash, so that it is the same for each process, and differs between agents and days.
insert into runtime.jobs (agent_id, job_id, name, slot, due_at)
select
    a.agent_id,
    gen_random_uuid(),
    w.name,
    w.slot,
    w.slot + make_interval(secs => abs(hashtextextended(a.agent_id || w.name, extract(epoch from w.slot)::bigint) % (w.delay + 1)))
from runtime.agents as a
cross join unnest($1::text[], $2::timestamptz[], $4::integer[]) as w (name, slot, delay)
where
    not exists (
        select
        from runtime.jobs as j
        where
            j.agent_id = a.agent_id
            and j.name = w.name
            and j.slot between w.slot and $3::timestamptz + interval '1 day'
    )
on conflict do nothing;

-- name: list_exhausted(max_attempts, moment)
-- Runs whose lease has expired max_attempts times.
select agent_id, job_id
from runtime.jobs
where state = 'running' and leased_until <= runtime.get_moment($2) and attempts >= $1
order by agent_id, job_id;  -- the same order in all workers, so that they do not wait in a circle

-- name: fail_exhausted(agent_id, job_id, max_attempts, moment)
update runtime.jobs
set
    state = 'dead',
    leased_until = null,
    finished_at = runtime.get_moment($4),
    error = coalesce(error, 'the worker stopped during every attempt')
where
    agent_id = $1
    and job_id = $2
    and state = 'running'
    and leased_until <= runtime.get_moment($4)
    and attempts >= $3;

-- name: list_due(names, max_rows, moment)
-- Due runs and runs whose lease has expired: the first of each agent, then the second of each, and so on, so that an agent
-- with many runs does not keep the others waiting. Within a round, those due longest come first.
select agent_id, job_id
from (
    select
        agent_id, job_id, due_at,
        row_number() over (partition by agent_id order by due_at, job_id) as round
    from runtime.jobs
    where
        state in ('queued', 'running')
        and name = any($1::text[])
        and case when state = 'queued' then due_at else leased_until end <= runtime.get_moment($3)
) as due
order by round, due_at, job_id
limit $2;

-- name: claim_due(agent_id, job_id, holder, seconds, moment)
-- Claims a run with a higher epoch (fencing token), unless another worker is claiming or has claimed it.
update runtime.jobs as j
set
    state = 'running',
    holder = $3,
    epoch = j.epoch + 1,
    attempts = j.attempts + 1,
    started_at = runtime.get_moment($5),
    leased_until = runtime.get_moment($5) + make_interval(secs => $4)
from runtime.agents as a
where
    j.agent_id = $1
    and a.agent_id = $1
    and j.job_id in (
        select d.job_id
        from runtime.jobs as d
        where
            d.agent_id = $1
            and d.job_id = $2
            and d.state in ('queued', 'running')
            and case when d.state = 'queued' then d.due_at else d.leased_until end <= runtime.get_moment($5)
        for update skip locked
    )
returning j.agent_id, a.name as agent, j.job_id, j.name, j.slot, j.attempts, j.holder, j.epoch;

-- name: claim_one(agent_id, job_id, holder, seconds, moment)
update runtime.jobs as j
set
    state = 'running',
    holder = $3,
    epoch = j.epoch + 1,
    attempts = j.attempts + 1,
    started_at = runtime.get_moment($5),
    leased_until = runtime.get_moment($5) + make_interval(secs => $4)
from runtime.agents as a
where
    j.agent_id = $1
    and j.job_id = $2
    and a.agent_id = $1
    and (j.state = 'queued' or (j.state = 'running' and j.leased_until <= runtime.get_moment($5)))
returning j.agent_id, a.name as agent, j.job_id, j.name, j.slot, j.attempts, j.holder, j.epoch;

-- name: renew_leases(agent_id, job_ids, holder, seconds, moment)
-- An expired lease can be renewed as long as nobody else has claimed the run.
update runtime.jobs
set leased_until = runtime.get_moment($5) + make_interval(secs => $4)
where agent_id = $1 and job_id = any($2::uuid[]) and state = 'running' and holder = $3
returning job_id, epoch;

-- name: list_holders_agents(holder)
select distinct agent_id
from runtime.jobs
where state = 'running' and holder = $1;

-- name: release_runs(agent_id, holder, moment)
-- Releases runs on shutdown without counting the attempt.
update runtime.jobs
set
    state = 'queued',
    attempts = greatest(attempts - 1, 0),
    leased_until = null,
    due_at = runtime.get_moment($3)
where agent_id = $1 and state = 'running' and holder = $2;

-- name: list_agents()
select
    a.agent_id,
    a.name,
    a.created_at,
    a.parent_agent_id,
    a.user_name as user,
    a.project_name as project,
    a.model,
    count(*) filter (where j.state in ('queued', 'running'))::integer as live,
    count(*) filter (where j.state = 'dead')::integer as dead,
    max(j.finished_at) as last_at
from runtime.agents as a
left join runtime.jobs as j on j.agent_id = a.agent_id
group by a.agent_id
order by a.name;
