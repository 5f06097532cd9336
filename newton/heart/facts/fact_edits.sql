-- name: set_core(agent_id, memory_ids, is_core)
update heart.facts
set is_core = $3
where agent_id = $1 and memory_id = any($2::uuid[]);

-- name: list_core(agent_id, memory_ids)
select memory_id, confirmations
from memory.memories
where agent_id = $1 and memory_id = any($2::uuid[]) and state = 'CORE';

-- name: set_retracted(agent_id, memory_ids, is_retracted)
update heart.facts as f
set is_retracted = $3
from memory.memories as m
where f.agent_id = $1 and f.memory_id = any($2::uuid[]) and m.agent_id = $1 and m.memory_id = f.memory_id
returning m.memory_id, m.state, m.trust;

-- name: list_withdrawn(agent_id, memory_ids)
-- The facts that are inactive because a model, a tool or a page retracted what no person had stated.
select m.memory_id
from memory.memories as m
cross join lateral (
    select t.event
    from memory.transitions as t
    where t.agent_id = $1 and t.memory_id = m.memory_id
    order by t.transition_id desc
    limit 1
) as last
where m.agent_id = $1 and m.memory_id = any($2::uuid[]) and m.state = 'INACTIVE' and last.event = 'withdrawn';

-- name: get_subject(agent_id, memory_id)
select subject, subject_key, attribute, single_valued
from heart.facts
where agent_id = $1 and memory_id = $2
for update;

-- name: set_subject(agent_id, memory_id, subject, subject_key)
-- The fact is compared again: the known facts of the new subject are others.
update heart.facts
set subject = $3, subject_key = $4, is_compared = false
where agent_id = $1 and memory_id = $2;

-- name: list_values(agent_id, subject_key, attribute)
select memory_id
from heart.facts
where agent_id = $1 and subject_key = $2 and attribute = $3;

-- name: list_of_subjects(agent_id, subject_keys)
select memory_id, subject_key, attribute, single_valued
from heart.facts
where agent_id = $1 and subject_key = any($2::text[])
order by memory_id;

-- name: move_subjects(agent_id, memory_ids, subject_key)
-- The facts keep the subject as it was stated. They are compared again with the known facts of the new key.
update heart.facts
set subject_key = $3, is_compared = false
where agent_id = $1 and memory_id = any($2::uuid[]);

-- name: set_end(agent_id, memory_id, valid_to)
update heart.facts
set valid_to = $3
where agent_id = $1 and memory_id = $2;
