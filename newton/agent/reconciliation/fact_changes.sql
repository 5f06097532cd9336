-- name: list_predecessors(agent_id, memory_id)
-- The facts that a fact superseded, also through others, and that have no end of their own.
with recursive earlier as (
    select other_id as memory_id
    from memory.links
    where agent_id = $1 and memory_id = $2 and link = 'supersedes'
    union
    select l.other_id
    from earlier as e
    join memory.links as l on l.agent_id = $1 and l.memory_id = e.memory_id and l.link = 'supersedes'
)
select f.memory_id, f.valid_from
from earlier as e
join heart.facts as f on f.agent_id = $1 and f.memory_id = e.memory_id and not f.is_current and f.valid_to is null
order by f.memory_id;
