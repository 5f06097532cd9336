-- name: count_created(agent_id, since)
-- Without artifacts, because they only repeat other memories.
select (created_at at time zone 'UTC')::date as day, kind as name, count(*)::integer as number
from memory.memories
where agent_id = $1 and created_at >= $2 and kind <> 'artifact'
group by 1, 2
order by 1, 2;

-- name: count_transitions(agent_id, since)
select (changed_at at time zone 'UTC')::date as day, to_state as name, count(*)::integer as number
from memory.transitions
where agent_id = $1 and changed_at >= $2
group by 1, 2
order by 1, 2;

-- name: sum_tokens_by_day(agent_id, since)
select
    (created_at at time zone 'UTC')::date as day, purpose as name,
    sum(input_tokens + output_tokens)::bigint as number
from runtime.usage
where agent_id = $1 and created_at >= $2
group by 1, 2
order by 1, 2;
