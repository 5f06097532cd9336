-- name: find_near_facts(agent_id, model_id, vectors, max_rows, now)
-- The facts that hold or will hold nearest to each vector.
select distinct k.memory_id
from unnest($3::halfvec[]) as n (embedding)
cross join lateral (
    select f.memory_id
    from heart.facts as f
    join memory.embeddings as v on v.agent_id = $1 and v.model_id = $2 and v.kind = 'fact' and v.memory_id = f.memory_id
    where f.agent_id = $1 and (f.is_current or f.valid_from > $5)
    order by v.embedding <#> n.embedding
    limit $4
) as k;

-- name: list_doubtful_pairs(agent_id, memory_ids, max_rows)
-- Current facts that may contradict each other and on which nobody decided: those of these facts, and the latest.
select l.memory_id, l.other_id
from memory.links as l
join heart.facts as a on a.agent_id = $1 and a.memory_id = l.memory_id and a.is_current
join heart.facts as b on b.agent_id = $1 and b.memory_id = l.other_id and b.is_current
where
    l.agent_id = $1
    and l.link = 'contradicts'
    and not exists (
        select
        from memory.links as d
        where
            d.agent_id = $1 and d.link = 'compatible'
            and d.memory_id = l.memory_id and d.other_id = l.other_id
    )
    and not exists (
        select
        from heart.line_changes as c
        where c.agent_id = $1 and c.effect = 'unsettled' and c.target_id in (l.memory_id, l.other_id)
    )
order by l.memory_id = any($2::uuid[]) or l.other_id = any($2::uuid[]) desc, l.created_at desc, l.memory_id, l.other_id
limit $3;

-- name: find_linked_facts(agent_id, line_ids, max_rows, now)
-- The facts that hold or will hold that the lines state or confirm, and those about a person or thing that the lines name, the latest
-- first.
select found.memory_id
from (
    select s.memory_id, 0 as rank
    from memory.sources as s
    where s.agent_id = $1 and s.source_id = any($2::uuid[])
    union all
    select c.memory_id, 0
    from memory.confirmations as c
    where c.agent_id = $1 and c.ref like 'told:%' and split_part(c.ref, ':', 2) = any($2::uuid[]::text[])
    union all
    select other.memory_id, 1
    from heart.mentions as said
    join heart.mentions as other on other.agent_id = $1 and other.entity_id = said.entity_id
    where said.agent_id = $1 and said.memory_id = any($2::uuid[])
) as found
join heart.facts as f on f.agent_id = $1 and f.memory_id = found.memory_id and (f.is_current or f.valid_from > $4)
group by found.memory_id
order by min(found.rank), found.memory_id desc
limit $3;

-- name: list_items(agent_id, memory_ids)
-- Facts that hold or will hold, procedures of persons and models, and decisions that are open, as the call shows them.
select
    m.memory_id, m.kind, coalesce(m.full_text, m.summary) as text, m.state, m.trust, f.subject, f.attribute,
    greatest(f.reconfirmed_at, least(coalesce(f.valid_from, m.occurred_at), m.created_at)) as stated_at,
    'decision' = any(coalesce(f.tags, '{}')) as is_decision,
    exists (
        select
        from memory.confirmations as c
        where c.agent_id = $1 and c.memory_id = m.memory_id and c.trust in ('operator', 'user')
    ) as is_vouched,
    coalesce(f.is_contested, false) or exists (
        select
        from memory.links as l
        join heart.facts as n on n.agent_id = $1 and n.memory_id = l.memory_id and n.is_current and n.is_contested
        where l.agent_id = $1 and l.other_id = m.memory_id and l.link = 'contradicts'
    ) as is_unsettled
from memory.memories as m
left join heart.facts as f on f.agent_id = $1 and f.memory_id = m.memory_id
where
    m.agent_id = $1
    and m.memory_id = any($2::uuid[])
    and not m.quarantined
    and case m.kind
        when 'fact' then m.state in ('NEW', 'CONFIRMED', 'CORE') and not f.is_generalization
        when 'procedure' then m.origin <> 'skills' and m.state in ('ACTIVE', 'EFFECTIVE', 'INEFFECTIVE')
        else m.kind = 'decision' and m.state in ('RECORDED', 'PENDING')
    end
order by m.memory_id;

-- name: list_similarities(agent_id, model_id, line_ids, fact_ids)
select e.memory_id as line_id, v.memory_id as fact_id, -(v.embedding <#> e.embedding) as similarity
from memory.embeddings as e
join memory.embeddings as v on v.agent_id = $1 and v.model_id = $2 and v.kind = 'fact' and v.memory_id = any($4::uuid[])
where e.agent_id = $1 and e.model_id = $2 and e.kind = 'exchange' and e.memory_id = any($3::uuid[]);

-- name: get_user_name(agent_id)
select user_name
from runtime.agents
where agent_id = $1;
