-- name: alone(agent_id)
-- Whoever tells next waits until this one has committed: numbers become visible in their order.
select pg_advisory_xact_lock(hashtextextended('newton.events ' || $1::uuid::text, 0));

-- name: tell(agent_id, type, at, payload)
insert into runtime.events (agent_id, number, type, at, payload)
select $1, coalesce(max(number), 0) + 1, $2, $3, $4::text::jsonb
from runtime.events
where agent_id = $1;

-- name: since(agent_id, number, most)
select number, type, at, payload::text as payload
from runtime.events
where agent_id = $1 and number > $2
order by number
limit $3;

-- name: latest(agent_id)
select coalesce(max(number), 0) as number
from runtime.events
where agent_id = $1;

-- name: expire(agent_id, before)
-- The latest stays whatever its age, or numbers would begin again.
delete from runtime.events
where
    agent_id = $1
    and at < $2
    and number < (select max(number) from runtime.events where agent_id = $1);
