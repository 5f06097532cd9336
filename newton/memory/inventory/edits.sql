-- name: set_importance(agent_id, memory_ids, importance)
update memory.memories
set importance = $3
where agent_id = $1 and memory_id = any($2::uuid[]);

-- name: insert_edits(agent_id, memory_ids, edit_ids, field, old_values, new_value, now, origin, author)
insert into memory.edits (
    agent_id, memory_id, edit_id, edited_at, field, old_value, new_value, origin, author
)
select $1, e.memory_id, e.edit_id, $7, $4, e.old_value, $6, $8, $9
from unnest($2::uuid[], $3::uuid[], $5::text[]) as e (memory_id, edit_id, old_value)
returning agent_id;

-- name: list_edits(agent_id, memory_id)
select edited_at, field, old_value, new_value, origin, author
from memory.edits
where agent_id = $1 and memory_id = $2
order by edit_id;

-- name: lock_rows(agent_id, memory_ids)
-- The editable fields, locked in the order of the ids, so that two edits wait for each other.
select m.memory_id, m.kind, m.state, m.importance
from memory.memories as m
where m.agent_id = $1 and m.memory_id = any($2::uuid[])
order by m.memory_id
for update of m;
