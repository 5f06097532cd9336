-- name: hidden(agent_id, since, until, event_types, entity_types)
select memory_id
from memory.memories
where agent_id = $1 and (occurred_at < $2 or occurred_at >= $3) and kind not in ('entity', 'relation', 'procedure', 'censor')
union
select memory_id
from heart.events
where agent_id = $1 and cardinality($4::text[]) > 0 and type <> all($4::text[])
union
select memory_id
from heart.entities
where agent_id = $1 and cardinality($5::text[]) > 0 and type <> all($5::text[]);
