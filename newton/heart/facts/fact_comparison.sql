-- name: list_uncompared(agent_id, model_id, max_rows)
-- Facts with a vector that were not compared yet, in the order in which they were stated.
select m.memory_id, f.source, m.origin, m.full_text as text, m.state, m.trust,
    greatest(f.valid_from, f.reconfirmed_at) as since, e.embedding as vector,
    exists (
        select
        from memory.confirmations as c
        where c.agent_id = $1 and c.memory_id = f.memory_id and c.trust in ('operator', 'user')
    ) as is_vouched,
    exists (
        select from heart.line_changes as c where c.agent_id = $1 and c.target_id = f.memory_id and c.effect = 'learnt'
    ) as is_reconciled
from heart.facts as f
join memory.memories as m on m.agent_id = $1 and m.memory_id = f.memory_id
join memory.embeddings as e
    on e.agent_id = $1 and e.model_id = $2 and e.kind = 'fact' and e.memory_id = f.memory_id
where f.agent_id = $1 and not f.is_compared and not f.is_retracted
order by since, m.created_at, m.memory_id
limit $3;

-- name: find_similar(agent_id, model_id, memory_id, max_rows)
-- The nearest facts for a new fact, of any subject, as another person may take over a task: those that were stated
-- earlier, and later ones that are compared. `canonical_id` is the original of a duplicate, or the fact itself.
-- `mergeable` is true if the two may be one fact: the other is stated or stored earlier, of the same subject and a
-- comparable attribute. Of two facts of the same time, the one stored later counts as the later one.
select
    coalesce(k.duplicate_of, k.memory_id) as canonical_id, k.full_text as text, k.cosine, k.mergeable, k.is_later,
    k.is_current, k.state, k.trust, k.since, k.is_multi_valued, k.is_vouched, k.embedding as vector
from heart.facts as f
join memory.memories as m on m.agent_id = $1 and m.memory_id = f.memory_id
join memory.embeddings as e
    on e.agent_id = $1 and e.model_id = $2 and e.kind = 'fact' and e.memory_id = f.memory_id
cross join lateral (
    select
        k.memory_id, k.duplicate_of, k.is_current, km.full_text, km.state, km.trust,
        greatest(k.valid_from, k.reconfirmed_at) as since, ke.embedding,
        coalesce(k.attribute = f.attribute and not d.single_valued, false) as is_multi_valued,
        -(ke.embedding <#> e.embedding) as cosine,
        exists (
            select
            from memory.confirmations as c
            where c.agent_id = $1 and c.memory_id = k.memory_id and c.trust in ('operator', 'user')
        ) as is_vouched,
        o.is_later,
        (not o.is_later or (km.created_at, km.memory_id) < (m.created_at, m.memory_id))
        and k.subject_key is not distinct from f.subject_key
        and (
            k.attribute is not distinct from f.attribute
            or not (f.single_valued or k.single_valued) and (k.attribute is null or f.attribute is null)
        ) as mergeable
    from heart.facts as k
    join memory.memories as km on km.agent_id = $1 and km.memory_id = k.memory_id
    join memory.embeddings as ke
        on ke.agent_id = $1 and ke.model_id = $2 and ke.kind = 'fact' and ke.memory_id = k.memory_id
    left join heart.attributes as d on d.agent_id = $1 and d.attribute = k.attribute
    cross join lateral (
        -- whether a person stated or confirmed the known and the new fact
        select
            km.trust in ('operator', 'user')
            or exists (
                select
                from memory.confirmations as c
                where c.agent_id = $1 and c.memory_id = k.memory_id and c.trust in ('operator', 'user')
            ) as is_known,
            m.trust in ('operator', 'user')
            or exists (
                select
                from memory.confirmations as c
                where c.agent_id = $1 and c.memory_id = f.memory_id and c.trust in ('operator', 'user')
            ) as is_new
    ) as p
    cross join lateral (
        -- of a person's fact and another one, the later one was stated later: no date of a model outlasts a person's word
        select
            (
                greatest(
                    case when p.is_known or not p.is_new then k.valid_from else least(k.valid_from, km.created_at) end,
                    k.reconfirmed_at
                ),
                km.created_at, km.memory_id
            )
            > (
                greatest(
                    case when p.is_new or not p.is_known then f.valid_from else least(f.valid_from, m.created_at) end,
                    f.reconfirmed_at
                ),
                m.created_at, m.memory_id
            ) as is_later
    ) as o
    where
        k.agent_id = $1
        and (k.attribute = f.attribute or k.attribute is null or f.attribute is null)
        and not k.is_generalization
        and coalesce(k.duplicate_of, k.memory_id) <> f.memory_id
        and (k.is_compared or not o.is_later)
        and km.state <> 'INACTIVE'
        and km.quarantined = m.quarantined
    order by ke.embedding <#> e.embedding
    limit $4
) as k
where f.agent_id = $1 and f.memory_id = $3;

-- name: mark_compared(agent_id, memory_id)
-- Only the first comparison of a fact has an effect.
update heart.facts
set is_compared = true
where agent_id = $1 and memory_id = $2 and not is_compared
returning memory_id;

-- name: lock_versions(agent_id, memory_ids)
-- What decides whether one fact may replace another, as it is now. Locked, so that it holds until the links are stored.
select
    f.memory_id, m.full_text as text, m.state, m.trust, f.is_current, f.is_retracted,
    exists (
        select
        from memory.confirmations as c
        where c.agent_id = $1 and c.memory_id = f.memory_id and c.trust in ('operator', 'user')
    ) as is_vouched
from heart.facts as f
join memory.memories as m on m.agent_id = $1 and m.memory_id = f.memory_id
where f.agent_id = $1 and f.memory_id = any($2::uuid[])
order by f.memory_id
for update of f;
