-- name: set_core(agent_id, memory_ids, is_core)
update heart.facts
set is_core = $3
where agent_id = $1 and memory_id = any($2::uuid[]);

-- name: list_core(agent_id, memory_ids)
select memory_id, confirmations
from memory.memories
where agent_id = $1 and memory_id = any($2::uuid[]) and state = 'CORE';

-- name: retract_facts(agent_id, memory_ids)
update heart.facts
set is_retracted = true
where agent_id = $1 and memory_id = any($2::uuid[]);

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
