-- name: record_failure(agent_id, purpose, model, failure, failed_at)
insert into runtime.failing_models as f (agent_id, purpose, model, failure, calls, failing_since, last_failure_at)
values ($1, $2, $3, $4, 1, $5, $5)
on conflict (agent_id, purpose) do update
set model = excluded.model, failure = excluded.failure, calls = f.calls + 1, last_failure_at = excluded.last_failure_at
returning calls;

-- name: has_failed(agent_id, purpose)
select exists (select from runtime.failing_models where agent_id = $1 and purpose = $2) as failed;

-- name: delete_failure(agent_id, purpose)
delete from runtime.failing_models
where agent_id = $1 and purpose = $2
returning calls;

-- name: list_failing_models(agent_id)
select purpose, model, failure, calls, failing_since, last_failure_at
from runtime.failing_models
where agent_id = $1
order by failing_since, purpose;
