-- name: enqueue(agent_id, job_id, name, moment)
-- Does nothing if the job is queued or running.
insert into runtime.jobs (agent_id, job_id, name, slot, due_at)
values ($1, $2, $3, runtime.get_moment($4), runtime.get_moment($4))
on conflict do nothing
returning job_id;

-- name: run_sooner(agent_id, name, moment)
-- Makes a waiting run due immediately.
update runtime.jobs
set due_at = least(due_at, runtime.get_moment($3))
where agent_id = $1 and name = $2 and state in ('queued', 'running')
returning job_id;

-- name: finish_run(agent_id, job_id, holder, epoch, result, reason, moment)
update runtime.jobs
set
    state = 'done', leased_until = null, finished_at = runtime.get_moment($7), result = $5,
    reason = $6, error = null
where agent_id = $1 and job_id = $2 and state = 'running' and holder = $3 and epoch = $4
returning finished_at;

-- name: delete_idle_runs(agent_id, name, slot)
-- Keeps only the last run that had nothing to do.
delete from runtime.jobs
where agent_id = $1 and name = $2 and slot < $3 and state = 'done' and result is null;

-- name: get_moment(moment)
select runtime.get_moment($1) as moment;

-- name: fail_run(agent_id, job_id, holder, epoch, error, seconds, max_attempts, moment, counted_attempts)
update runtime.jobs
set
    attempts = attempts - 1 + $9,
    state = case when attempts - 1 + $9 >= $7 then 'dead' else 'queued' end,
    leased_until = null,
    due_at = $8::timestamptz + make_interval(secs => $6),
    finished_at = case when attempts - 1 + $9 >= $7 then $8::timestamptz end,
    error = $5
where agent_id = $1 and job_id = $2 and state = 'running' and holder = $3 and epoch = $4
returning state;

-- name: list_latest(agent_id)
-- The last run of each job with its state.
select distinct on (name)
    job_id, name, slot, state, attempts, due_at, started_at, finished_at, result, reason, error
from runtime.jobs
where agent_id = $1
order by name, slot desc, job_id;

-- name: list_runs(agent_id, name, max_rows)
-- The runs of one job, latest first.
select
    job_id, name, slot, state, attempts, due_at, started_at, finished_at, result, reason, error
from runtime.jobs
where agent_id = $1 and name = $2
order by slot desc, job_id
limit $3;

-- name: list_dead(agent_id)
-- Dead runs without a later successful run.
select
    j.job_id, j.name, j.slot, j.state, j.attempts, j.due_at, j.started_at, j.finished_at, j.result,
    j.reason, j.error
from runtime.jobs as j
where
    j.agent_id = $1
    and j.state = 'dead'
    and not exists (
        select
        from runtime.jobs as l
        where l.agent_id = $1 and l.name = j.name and l.slot > j.slot and l.state = 'done'
    )
order by j.slot desc, j.job_id;

-- name: retry_dead(agent_id, name, moment)
-- Requeues the last dead run of each job, or of one job, unless the job is queued, running, or has succeeded since.
update runtime.jobs as d
set
    state = 'queued', attempts = 0, finished_at = null, due_at = runtime.get_moment($3)
from (
    select distinct on (j.name) j.job_id
    from runtime.jobs as j
    where j.agent_id = $1 and j.state = 'dead' and ($2::text is null or j.name = $2)
    order by j.name, j.slot desc, j.job_id
) as last
where
    d.agent_id = $1
    and d.job_id = last.job_id
    and not exists (
        select
        from runtime.jobs as l
        where
            l.agent_id = $1
            and l.name = d.name
            and (l.state in ('queued', 'running') or (l.state = 'done' and l.slot > d.slot))
    )
returning d.name;

-- name: delete_old_runs(agent_id, before, max_runs)
-- Deletes runs finished before a moment, and those beyond the latest max_runs of each job. The last run of each job marks
-- the slots that are done, so it is kept.
with ranked as (
    select job_id, finished_at, row_number() over (partition by name order by slot desc, job_id) as place
    from runtime.jobs
    where agent_id = $1
),
gone as (
    delete from runtime.jobs as j
    using ranked as r
    where
        j.agent_id = $1
        and j.job_id = r.job_id
        and r.place > 1
        and (r.finished_at < $2 or (r.place > $3 and r.finished_at is not null))
    returning j.job_id
)
select count(*)::integer as runs
from gone;
