-- name: get_entity(agent_id, memory_id)
select type, aliases, properties
from heart.entities
where agent_id = $1 and memory_id = $2;

-- name: update_entity(agent_id, memory_id, type, aliases, properties)
update heart.entities
set type = $3, aliases = $4, properties = $5::jsonb
where agent_id = $1 and memory_id = $2;
