-- name: get_states(agent_id, memory_ids)
select memory_id, state, trust
from memory.memories
where agent_id = $1 and memory_id = any($2::uuid[]);

-- name: list_superseded(agent_id, memory_id)
-- The decisions that this one supersedes, transitively.
with recursive before as (
    select other_id
    from memory.links
    where agent_id = $1 and memory_id = $2 and link = 'supersedes'
    union
    select l.other_id
    from before as b
    join memory.links as l on l.agent_id = $1 and l.memory_id = b.other_id and l.link = 'supersedes'
)
select other_id
from before;

-- name: delete_from_outbox(agent_id, memory_id)
-- Called before the vectors are deleted: a concurrent embedding delivery holds this row until its vector is stored.
delete from memory.outbox
where agent_id = $1 and memory_id = $2;

-- name: erase_decisions(agent_id)
select brain.erase_decisions($1);

-- name: find_sharing_tag(agent_id, memory_id, memory_ids)
-- Decisions that share a tag with this one.
select t.record_id as decision_id
from brain.decision_texts as t
join brain.decision_texts as own on own.agent_id = $1 and own.record_id = $2
where
    t.agent_id = $1
    and t.record_id = any($3::uuid[])
    and t.record_id <> $2
    and t.texts -> 'tags' ?| array(select jsonb_array_elements_text(own.texts -> 'tags'))
order by t.record_id;
