-- name: insert_move(agent_id, move_id, memory_id, target, trust)
-- Nothing is inserted if a move of the memory was proposed before.
insert into memory.proposed_moves (agent_id, move_id, memory_id, target, trust, is_open)
values ($1, $2, $3, $4, $5, true)
on conflict do nothing
returning move_id;

-- name: list_moves(agent_id)
select p.memory_id, m.kind, m.summary as text, p.target
from memory.proposed_moves as p
join memory.memories as m on m.agent_id = $1 and m.memory_id = p.memory_id
where p.agent_id = $1 and p.is_open
order by p.move_id;

-- name: close_moves(agent_id, memory_ids)
update memory.proposed_moves
set is_open = false
where agent_id = $1 and memory_id = any($2::uuid[]) and is_open;
