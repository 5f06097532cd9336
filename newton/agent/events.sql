-- name: publish(agent_id, type, occurred_at, payload, keep_after)
call runtime.publish_event($1, $2, $3, $4::text::jsonb, $5);

-- name: clear(agent_id, cleared_at)
call runtime.clear_events($1, $2);

-- name: list_after(agent_id, number, max_rows)
select number, type, occurred_at as at, payload::text as payload
from runtime.events
where agent_id = $1 and number > $2
order by number
limit $3;

-- name: get_last_number(agent_id)
select coalesce(max(number), 0) as number
from runtime.events
where agent_id = $1;
