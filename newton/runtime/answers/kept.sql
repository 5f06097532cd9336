-- name: alone(agent_id, key)
-- Whether nobody else is at a request of that key; to the end of the unit of work nobody else will be.
select pg_try_advisory_xact_lock(hashtextextended('newton.answers ' || $1::uuid::text || ' ' || $2::text, 0)) as alone;

-- name: find(agent_id, key, since)
select request, status, answer
from runtime.answers
where agent_id = $1 and key = $2 and at >= $3;

-- name: keep(agent_id, key, request, status, answer, at)
insert into runtime.answers (agent_id, key, request, status, answer, at)
values ($1, $2, $3, $4, $5, $6);

-- name: expire(agent_id, before)
delete from runtime.answers
where agent_id = $1 and at < $2;
