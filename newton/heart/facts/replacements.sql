-- name: list_replaced(agent_id, memory_id, since)
-- The facts superseded since a time that a link connects with this fact or its original, in either direction: one that is
-- stated again replaces its successor. The other values of a single-valued attribute need no link.
with own as materialized (
    select o.memory_id, o.subject_key, o.attribute, o.single_valued
    from heart.facts as f
    join heart.facts as o on o.agent_id = $1 and o.memory_id = coalesce(f.duplicate_of, f.memory_id)
    where f.agent_id = $1 and f.memory_id = $2 and o.is_current
),
others as (
    select l.other_id as memory_id
    from own as o
    join memory.links as l on l.agent_id = $1 and l.memory_id = o.memory_id and l.link = 'supersedes'
    union
    select l.memory_id
    from own as o
    join memory.links as l on l.agent_id = $1 and l.other_id = o.memory_id and l.link = 'supersedes'
    union
    select v.memory_id
    from own as o
    join heart.facts as v
        on v.agent_id = $1 and v.subject_key = o.subject_key and v.attribute = o.attribute and v.single_valued
    where o.single_valued and v.memory_id <> o.memory_id
)
select m.memory_id, m.summary as text
from others as r
join memory.memories as m on m.agent_id = $1 and m.memory_id = r.memory_id and m.state = 'SUPERSEDED'
where
    exists (
        select
        from memory.transitions as t
        where t.agent_id = $1 and t.memory_id = r.memory_id and t.event = 'superseded' and t.changed_at >= $3
    )
order by m.occurred_at desc, m.memory_id;

-- name: find_replacement(agent_id, memory_id)
-- The original of a duplicate, the generalization that covers it, the latest fact that supersedes it, a current fact that
-- it superseded and that was stated again, or the next value of its single-valued attribute.
with own as materialized (
    select memory_id, duplicate_of, subject_key, attribute, single_valued, greatest(valid_from, reconfirmed_at) as since
    from heart.facts
    where agent_id = $1 and memory_id = $2
),
successors as (
    select duplicate_of as memory_id, 1 as rank, since
    from own
    where duplicate_of is not null
    union all
    select g.memory_id, 2, g.valid_from
    from memory.sources as s
    join heart.facts as g on g.agent_id = $1 and g.memory_id = s.memory_id and g.is_generalization
    where s.agent_id = $1 and s.source_id = $2
    union all
    select l.memory_id, 3, l.created_at
    from memory.links as l
    where l.agent_id = $1 and l.other_id = $2 and l.link = 'supersedes'
    union all
    select l.other_id, 4, l.created_at
    from memory.links as l
    join memory.memories as m on m.agent_id = $1 and m.memory_id = l.other_id and not memory.is_obsolete(m.kind, m.state)
    where l.agent_id = $1 and l.memory_id = $2 and l.link = 'supersedes'
    union all
    select v.memory_id, 5, greatest(v.valid_from, v.reconfirmed_at)
    from own as o
    join heart.facts as v
        on v.agent_id = $1 and v.subject_key = o.subject_key and v.attribute = o.attribute and v.single_valued
    where o.single_valued and v.memory_id <> o.memory_id and greatest(v.valid_from, v.reconfirmed_at) >= o.since
)
select m.memory_id, m.summary as text
from successors as s
join heart.facts as f on f.agent_id = $1 and f.memory_id = s.memory_id and not f.is_retracted
join memory.memories as m on m.agent_id = $1 and m.memory_id = s.memory_id
order by s.rank, case when s.rank = 5 then s.since end, s.since desc, m.memory_id
limit 1;
