-- name: tell(agent_id, type, at, payload, before)
call runtime.publish_event($1, $2, $3, $4::text::jsonb, $5);

-- name: silence(agent_id, at)
call runtime.clear_events($1, $2);

-- name: since(agent_id, number, most)
select number, type, occurred_at as at, payload::text as payload
from runtime.events
where agent_id = $1 and number > $2
order by number
limit $3;

-- name: latest(agent_id)
select coalesce(max(number), 0) as number
from runtime.events
where agent_id = $1;
