-- name: try_lock(agent_id, key)
-- Takes the lock of this key if nobody else holds it, until the transaction ends.
select pg_try_advisory_xact_lock(hashtextextended('newton.answers ' || $1::uuid::text || ' ' || $2::text, 0)) as alone
from (select count(*) from runtime.agents where agent_id = $1) as node;

-- name: find_response(agent_id, key, since)
select request_hash, status_code, response_body
from runtime.idempotency_keys
where agent_id = $1 and key = $2 and created_at >= $3;

-- name: insert_response(agent_id, key, request_hash, status_code, response_body, created_at)
insert into runtime.idempotency_keys (agent_id, key, request_hash, status_code, response_body, created_at)
values ($1, $2, $3, $4, $5, $6);

-- name: delete_expired(agent_id, before)
delete from runtime.idempotency_keys
where agent_id = $1 and created_at < $2;
