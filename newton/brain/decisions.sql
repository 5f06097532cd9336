-- name: states(agent_id, memory_ids)
select memory_id, state
from memory.memories
where agent_id = $1 and memory_id = any($2::uuid[]);

-- name: superseding(agent_id, memory_id)
-- What a decision supersedes, and what that superseded in turn.
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

-- name: erase(agent_id)
call brain.erase($1);
