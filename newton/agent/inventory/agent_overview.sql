-- name: count_states(agent_id)
select kind, state, quarantined, count(*)::integer as memories
from memory.memories
where agent_id = $1
group by kind, state, quarantined
order by kind, state, quarantined;

-- name: measure(agent_id)
-- The last activity is the last message, memory or use of a memory. The size is that of the rows, without indexes.
with memory as materialized (
    select coalesce(sum(pg_column_size(m.*)), 0) as bytes, max(greatest(m.created_at, m.accessed_at)) as latest
    from memory.memories as m
    where m.agent_id = $1
),
message as materialized (
    select count(*) as messages, coalesce(sum(pg_column_size(d.*)), 0) as bytes, max(d.recorded_at) as latest
    from dialogue.messages as d
    where d.agent_id = $1
),
vector as materialized (
    select coalesce(sum(pg_column_size(e.embedding)), 0) as bytes
    from memory.embeddings as e
    where e.agent_id = $1
),
bundle as materialized (
    select coalesce(sum(pg_column_size(b.text) + pg_column_size(b.trace)), 0) as bytes
    from cognition.bundles as b
    where b.agent_id = $1
),
session as materialized (
    select count(*) as sessions
    from dialogue.sessions as s
    where s.agent_id = $1
)
select
    session.sessions::integer as sessions,
    message.messages::integer as messages,
    greatest(memory.latest, message.latest) as last_activity_at,
    (memory.bytes + message.bytes + vector.bytes + bundle.bytes)::bigint as size_bytes
from memory, message, vector, bundle, session;

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
