-- name: set_duplicates(agent_id, duplicate_ids, original_ids)
-- Marks facts as duplicates that are not yet, and returns where each was stated.
with merged as (
    update heart.facts as f
    set duplicate_of = c.duplicate_of
    from unnest($2::uuid[], $3::uuid[]) as c (memory_id, duplicate_of)
    where f.agent_id = $1 and f.memory_id = c.memory_id and f.duplicate_of is null
    returning f.memory_id, f.duplicate_of, f.source
)
select d.memory_id, d.duplicate_of as original_id, d.source, m.origin, m.trust
from merged as d
join memory.memories as m on m.agent_id = $1 and m.memory_id = d.memory_id;

-- name: flatten_duplicates(agent_id)
-- Points a duplicate of a duplicate to the original fact.
update heart.facts as f
set duplicate_of = t.duplicate_of
from heart.facts as t
where f.agent_id = $1 and f.duplicate_of is not null and t.agent_id = $1 and t.memory_id = f.duplicate_of and t.duplicate_of is not null;

-- name: copy_confirmations(agent_id, memory_ids, duplicate_ids)
-- Copies the confirmations of a duplicate to the original fact.
with passed as (
    insert into memory.confirmations (agent_id, memory_id, ref, confirmed_at, origin, trust, source)
    select $1, j.same_as, 'memory:' || c.memory_id || ' ' || c.ref, c.confirmed_at, c.origin, c.trust, c.source
    from unnest($2::uuid[], $3::uuid[]) as j (memory_id, same_as)
    join memory.confirmations as c on c.agent_id = $1 and c.memory_id = j.memory_id
    on conflict do nothing
    returning memory_id
)
update memory.memories as m
set confirmations = m.confirmations + p.times
from (
    select memory_id, count(*)::integer as times
    from passed
    group by memory_id
) as p
where m.agent_id = $1 and m.memory_id = p.memory_id;
