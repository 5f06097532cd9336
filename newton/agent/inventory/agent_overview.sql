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

-- name: delete_agent(agent_id)
select runtime.delete_agent($1);
