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
-- Copies the confirmations of a duplicate to the original fact; to a person's fact only those of persons.
with passed as (
    insert into memory.confirmations (agent_id, memory_id, ref, confirmed_at, origin, trust, source)
    select $1, j.same_as, 'memory:' || c.memory_id || ' ' || c.ref, c.confirmed_at, c.origin, c.trust, c.source
    from unnest($2::uuid[], $3::uuid[]) as j (memory_id, same_as)
    join memory.confirmations as c on c.agent_id = $1 and c.memory_id = j.memory_id
    join memory.memories as m on m.agent_id = $1 and m.memory_id = j.same_as
    where m.trust not in ('operator', 'user') or c.trust in ('operator', 'user')
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

-- name: list_crowded_attributes(agent_id, max_facts)
-- Current facts of each multi-valued attribute with more than max_facts of them, oldest first. Facts from tools and the
-- web are left out, because merging them would quarantine the result, and so are facts with an end date.
with crowded as (
    select f.subject_key, f.attribute
    from heart.facts as f
    join memory.memories as m on m.agent_id = $1 and m.memory_id = f.memory_id and m.trust not in ('tool', 'web')
    where
        f.agent_id = $1
        and f.is_current
        and not f.single_valued
        and not f.is_generalization
        and f.valid_to is null
        and f.subject_key is not null
        and f.attribute is not null
    group by f.subject_key, f.attribute
    having count(*) > $2
)
select f.subject_key, f.attribute, f.subject, f.memory_id, m.full_text, m.trust, f.valid_from
from crowded as c
join heart.facts as f
    on
        f.agent_id = $1
        and f.subject_key = c.subject_key
        and f.attribute = c.attribute
        and f.is_current
        and not f.single_valued
        and not f.is_generalization
        and f.valid_to is null
join memory.memories as m on m.agent_id = $1 and m.memory_id = f.memory_id and m.trust not in ('tool', 'web')
order by f.subject_key, f.attribute, f.valid_from, f.memory_id;
