-- name: list_holders(agent_id, role)
select memory_id, mentioned_at
from heart.entities
where agent_id = $1 and $2::text = any(aliases);

-- name: add_role(agent_id, entity_id, role)
with named as (
    update heart.entities
    set aliases = array_append(aliases, $3::text)
    where agent_id = $1 and memory_id = $2
    returning memory_id
)
insert into heart.entity_names (agent_id, spelling, entity_id)
select $1, $3::text, memory_id
from named
on conflict do nothing;

-- name: remove_role(agent_id, entity_ids, role)
update heart.entities
set aliases = array_remove(aliases, $3::text)
where agent_id = $1 and memory_id = any($2::uuid[]);
