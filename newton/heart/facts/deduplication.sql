-- name: list_uncompared(agent_id, model_id, max_rows)
-- Facts with a vector that deduplication has not compared yet, oldest first.
select m.memory_id, m.full_text as text, m.origin, m.trust, f.source, greatest(f.valid_from, f.reconfirmed_at) as since
from heart.facts as f
join memory.memories as m on m.agent_id = $1 and m.memory_id = f.memory_id
join memory.embeddings as e
    on e.agent_id = $1 and e.model_id = $2 and e.kind = 'fact' and e.memory_id = f.memory_id
where f.agent_id = $1 and not f.is_compared
order by m.created_at, m.memory_id
limit $3;

-- name: find_similar(agent_id, model_id, memory_ids, max_rows)
-- The nearest older facts for each new fact, of the same subject or where one names none. `canonical_id` is the original of
-- a duplicate, or the fact itself. `mergeable` is true if the two may be one fact: same subject and comparable attributes.
select
    n.memory_id, coalesce(k.duplicate_of, k.memory_id) as canonical_id, k.full_text, k.cosine, k.mergeable,
    k.is_current, k.state, k.trust, k.since
from unnest($3::uuid[]) as n (memory_id)
join heart.facts as f on f.agent_id = $1 and f.memory_id = n.memory_id
join memory.memories as m on m.agent_id = $1 and m.memory_id = n.memory_id
join memory.embeddings as e
    on e.agent_id = $1 and e.model_id = $2 and e.kind = 'fact' and e.memory_id = n.memory_id
cross join lateral (
    select
        k.memory_id, k.duplicate_of, k.is_current, km.full_text, km.state, km.trust,
        greatest(k.valid_from, k.reconfirmed_at) as since, -(ke.embedding <#> e.embedding) as cosine,
        k.subject_key is not distinct from f.subject_key
        and (
            k.attribute is not distinct from f.attribute
            or not (f.single_valued or k.single_valued) and (k.attribute is null or f.attribute is null)
        ) as mergeable
    from heart.facts as k
    join memory.memories as km on km.agent_id = $1 and km.memory_id = k.memory_id
    join memory.embeddings as ke
        on ke.agent_id = $1 and ke.model_id = $2 and ke.kind = 'fact' and ke.memory_id = k.memory_id
    where
        k.agent_id = $1
        and (k.subject_key = f.subject_key or k.subject_key is null or f.subject_key is null)
        and (k.attribute = f.attribute or k.attribute is null or f.attribute is null)
        and not k.is_generalization
        and (km.created_at, km.memory_id) < (m.created_at, m.memory_id)
        and km.state <> 'INACTIVE'
        and km.quarantined = m.quarantined
    order by ke.embedding <#> e.embedding
    limit $4
) as k;

-- name: mark_compared(agent_id, memory_ids, duplicate_ids)
-- Only the first comparison of a fact has an effect.
update heart.facts as f
set is_compared = true, duplicate_of = c.duplicate_of
from unnest($2::uuid[], $3::uuid[]) as c (memory_id, duplicate_of)
where f.agent_id = $1 and f.memory_id = c.memory_id and not f.is_compared
returning f.memory_id;

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
