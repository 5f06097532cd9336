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

-- name: fail_exhausted(max_attempts, moment)
-- Marks runs as dead whose lease has expired max_attempts times.
update runtime.jobs
set
    state = 'dead',
    leased_until = null,
    finished_at = coalesce($2::timestamptz, statement_timestamp()),
    error = coalesce(error, 'the worker stopped during every attempt')
where state = 'running' and leased_until <= coalesce($2::timestamptz, statement_timestamp()) and attempts >= $1;

-- name: claim_due(holder, seconds, names, max_rows, moment)
-- Claims due runs and runs whose lease has expired, with a higher epoch (fencing token).
with due as materialized (
    select agent_id, job_id
    from runtime.jobs
    where
        state in ('queued', 'running')
        and name = any($3::text[])
        and case state when 'queued' then due_at else leased_until end
        <= coalesce($5::timestamptz, statement_timestamp())
    order by due_at, job_id
    limit $4
    for update skip locked
)
update runtime.jobs as j
set
    state = 'running',
    holder = $1,
    epoch = j.epoch + 1,
    attempts = j.attempts + 1,
    started_at = coalesce($5::timestamptz, statement_timestamp()),
    leased_until = coalesce($5::timestamptz, statement_timestamp()) + make_interval(secs => $2)
from due
join runtime.agents as a on a.agent_id = due.agent_id
where j.agent_id = due.agent_id and j.job_id = due.job_id
returning j.agent_id, a.name as agent, j.job_id, j.name, j.slot, j.attempts, j.holder, j.epoch;

-- name: claim_one(holder, seconds, agent_id, job_id, moment)
update runtime.jobs as j
set
    state = 'running',
    holder = $1,
    epoch = j.epoch + 1,
    attempts = j.attempts + 1,
    started_at = coalesce($5::timestamptz, statement_timestamp()),
    leased_until = coalesce($5::timestamptz, statement_timestamp()) + make_interval(secs => $2)
from runtime.agents as a
where
    j.agent_id = $3
    and j.job_id = $4
    and a.agent_id = $3
    and (
        j.state = 'queued'
        or (j.state = 'running' and j.leased_until <= coalesce($5::timestamptz, statement_timestamp()))
    )
returning j.agent_id, a.name as agent, j.job_id, j.name, j.slot, j.attempts, j.holder, j.epoch;

-- name: renew_leases(holder, seconds, job_ids, moment)
-- An expired lease can be renewed as long as nobody else has claimed the run.
update runtime.jobs
set leased_until = coalesce($4::timestamptz, statement_timestamp()) + make_interval(secs => $2)
where state = 'running' and holder = $1 and job_id = any($3::uuid[])
returning agent_id, job_id, epoch;

-- name: release_runs(holder, moment)
-- Releases runs on shutdown without counting the attempt.
update runtime.jobs
set
    state = 'queued',
    attempts = greatest(attempts - 1, 0),
    leased_until = null,
    due_at = coalesce($2::timestamptz, statement_timestamp())
where state = 'running' and holder = $1;

-- name: list_agents()
select
    a.name,
    a.created_at,
    parent.name as parent,
    a.user_name as user,
    a.model,
    count(*) filter (where j.state in ('queued', 'running'))::integer as live,
    count(*) filter (where j.state = 'dead')::integer as dead,
    max(j.finished_at) as last_at
from runtime.agents as a
left join runtime.agents as parent on parent.agent_id = a.parent_agent_id
left join runtime.jobs as j on j.agent_id = a.agent_id
group by a.agent_id, parent.agent_id
order by a.name;
