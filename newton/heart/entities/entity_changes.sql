-- name: get_entity(agent_id, memory_id)
select type, aliases, properties
from heart.entities
where agent_id = $1 and memory_id = $2;

-- name: update_entity(agent_id, memory_id, type, aliases, properties)
update heart.entities
set type = $3, aliases = $4, properties = $5::jsonb
where agent_id = $1 and memory_id = $2;

-- name: list_all_relations(agent_id, entity_id)
-- The relations of an entity in every state.
select r.memory_id, r.source_id, s.name as source, r.type, r.target_id, t.name as target, r.weight,
    m.trust
from heart.relations as r
join memory.memories as m on m.agent_id = $1 and m.memory_id = r.memory_id
join heart.entities as s on s.agent_id = $1 and s.memory_id = r.source_id
join heart.entities as t on t.agent_id = $1 and t.memory_id = r.target_id
where r.agent_id = $1 and (r.source_id = $2 or r.target_id = $2)
order by r.type, r.memory_id;

-- name: count_records(agent_id, entity_id, subject_keys)
select
    (
        select count(*)
        from heart.mentions
        where agent_id = $1 and entity_id = $2
    ) as mentions,
    (
        select count(*)
        from heart.facts
        where agent_id = $1 and subject_key = any($3::text[])
    ) as facts;

-- name: merge_entities(agent_id, kept_id, merged_id, relation_ids, hashes, now, origin)
select heart.merge_entities($1, $2, $3, $4, $5, $6, $7);
