-- name: existing(agent_id, memory_ids)
select memory_id, kind
from memory.memories
where agent_id = $1 and memory_id = any($2::uuid[]);

-- name: derived(agent_id, memory_ids)
-- What was made from these or only tells them again, and from that in turn.
with recursive gone as (
    select memory_id
    from memory.memories
    where agent_id = $1 and memory_id = any($2::uuid[])
    union
    select d.memory_id
    from gone as g
    cross join lateral (
        select s.memory_id
        from memory.sources as s
        where s.agent_id = $1 and s.source_id = g.memory_id
        union all
        select f.memory_id
        from heart.facts as f
        where f.agent_id = $1 and f.same_as = g.memory_id
        union all
        select r.memory_id
        from heart.relations as r
        where r.agent_id = $1 and (r.source_id = g.memory_id or r.target_id = g.memory_id)
    ) as d
)
select m.memory_id, m.kind, m.micro
from gone as g
join memory.memories as m on m.agent_id = $1 and m.memory_id = g.memory_id
where g.memory_id <> all($2::uuid[])
order by m.kind, m.memory_id;

-- name: note(agent_id, memory_ids, now, because, origin)
insert into memory.forgotten (agent_id, memory_id, kind, at, because, origin)
select $1, memory_id, kind, $3, $4, $5
from memory.memories
where agent_id = $1 and memory_id = any($2::uuid[]);

-- name: forget(agent_id)
call memory.forget($1);
