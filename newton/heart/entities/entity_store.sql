-- name: get_watermark(agent_id, job)
select memory_id
from heart.watermarks
where agent_id = $1 and job = $2;

-- name: set_watermark(agent_id, job, memory_id)
insert into heart.watermarks (agent_id, job, memory_id)
values ($1, $2, $3)
on conflict (agent_id, job) do update set memory_id = greatest(watermarks.memory_id, excluded.memory_id);

-- name: list_indexable(agent_id, after, max_rows)
-- Messages and facts to be indexed for entities, in the order of their places after an id: that of their own id and, for
-- a fact that has left quarantine, that of this transition.
with place as (
    (
        select memory_id, memory_id as place
        from memory.memories
        where agent_id = $1 and memory_id > $2 and kind in ('exchange', 'fact') and not quarantined
        order by memory_id
        limit $3
    )
    union all
    (
        select memory_id, transition_id
        from memory.transitions
        where agent_id = $1 and transition_id > $2 and event = 'released'
        order by transition_id
        limit $3
    )
)
select
    m.memory_id, m.kind, coalesce(m.full_text, d.content) as text, m.occurred_at,
    case
        when exists (
            select
            from memory.confirmations as c
            where c.agent_id = $1 and c.memory_id = m.memory_id and c.trust in ('operator', 'user')
        ) then 'user'
        else m.trust
    end as trust,
    d.name as speaker, f.subject, f.attribute, coalesce(m.ref like 'told:%', false) as is_told, p.place
from place as p
join memory.memories as m on m.agent_id = $1 and m.memory_id = p.memory_id
left join dialogue.messages as d
    on d.agent_id = $1 and m.kind = 'exchange' and d.session_id = m.thread_id and d.position = m.position
left join heart.facts as f on f.agent_id = $1 and m.kind = 'fact' and f.memory_id = m.memory_id
where m.kind in ('exchange', 'fact') and not m.quarantined
order by p.place
limit $3;

-- name: list_entity_names(agent_id)
select memory_id, name, aliases
from heart.entities
where agent_id = $1
order by memory_id;

-- name: insert_entities(agent_id, entities)
insert into heart.entities (
    agent_id, memory_id, name, key, type, aliases, properties, mentions, mentioned_at
)
select $1, d.memory_id, d.name, d.key, d.type, d.aliases, d.properties, 0, d.mentioned_at
from jsonb_to_recordset($2::jsonb) as d (
    memory_id uuid, name text, key text, type text, aliases text[], properties jsonb, mentioned_at timestamptz
)
returning agent_id;

-- name: insert_names(agent_id, spellings, entity_ids)
insert into heart.entity_names (agent_id, spelling, entity_id)
select $1, n.spelling, n.entity_id
from unnest($2::text[], $3::uuid[]) as n (spelling, entity_id)
on conflict do nothing;

-- name: insert_mentions(agent_id, entity_ids, memory_ids, times)
-- Entities and memories that were forgotten meanwhile are left out.
with inserted as (
    insert into heart.mentions (agent_id, entity_id, memory_id)
    select $1, n.entity_id, n.memory_id
    from unnest($2::uuid[], $3::uuid[]) as n (entity_id, memory_id)
    join heart.entities as e on e.agent_id = $1 and e.memory_id = n.entity_id
    join memory.memories as m on m.agent_id = $1 and m.memory_id = n.memory_id
    on conflict do nothing
    returning entity_id, memory_id
),
counted as (
    select m.entity_id, count(*)::integer as times, max(t.at) as latest
    from inserted as m
    join (
        select distinct memory_id, at from unnest($3::uuid[], $4::timestamptz[]) as u (memory_id, at)
    ) as t on t.memory_id = m.memory_id
    group by m.entity_id
)
update heart.entities as e
set mentions = e.mentions + c.times, mentioned_at = greatest(e.mentioned_at, c.latest)
from counted as c
where e.agent_id = $1 and e.memory_id = c.entity_id;

-- name: find_relations(agent_id, source_ids, types, target_ids)
select r.memory_id, r.source_id, r.type, r.target_id
from heart.relations as r
join unnest($2::uuid[], $3::text[], $4::uuid[]) as w (source_id, type, target_id)
    on w.source_id = r.source_id and w.type = r.type and w.target_id = r.target_id
where r.agent_id = $1;

-- name: insert_relations(agent_id, memory_ids, source_ids, types, target_ids)
insert into heart.relations (agent_id, memory_id, source_id, type, target_id, weight)
select $1, r.memory_id, r.source_id, r.type, r.target_id, 0
from unnest($2::uuid[], $3::uuid[], $4::text[], $5::uuid[]) as r (memory_id, source_id, type, target_id)
returning agent_id;

-- name: update_weights(agent_id, memory_ids, doubt)
-- The weight approaches 1 with the number of pieces of evidence.
update heart.relations as r
set weight = e.pieces / (e.pieces + $3::float8)
from (
    select p.memory_id, count(*)::float8 as pieces
    from (
        select other_id as memory_id
        from memory.links
        where agent_id = $1 and link = 'evidence' and other_id = any($2::uuid[])
        union all
        select memory_id
        from memory.confirmations
        where agent_id = $1 and memory_id = any($2::uuid[])
    ) as p
    group by p.memory_id
) as e
where r.agent_id = $1 and r.memory_id = e.memory_id;

-- name: list_entities(agent_id, max_rows)
select e.memory_id, e.name, e.type, e.aliases, e.mentions, e.mentioned_at, m.state
from heart.entities as e
join memory.memories as m on m.agent_id = $1 and m.memory_id = e.memory_id
where e.agent_id = $1
order by e.mentions desc, e.name
limit $2;

-- name: list_session_entities(agent_id, session_id, max_rows)
-- The entities that the messages of a session mention, and the memories made from these, with the counts in the session.
with said as (
    select m.memory_id, m.occurred_at
    from memory.memories as m
    where m.agent_id = $1 and m.kind = 'exchange' and m.thread_id = $2
),
found as (
    select memory_id, occurred_at
    from said
    union
    select s.memory_id, d.occurred_at
    from said as d
    join memory.sources as s on s.agent_id = $1 and s.source_id = d.memory_id
)
select
    e.memory_id, e.name, e.type, e.aliases, count(distinct n.memory_id)::integer as mentions,
    max(f.occurred_at) as mentioned_at, x.state
from found as f
join heart.mentions as n on n.agent_id = $1 and n.memory_id = f.memory_id
join heart.entities as e on e.agent_id = $1 and e.memory_id = n.entity_id
join memory.memories as x on x.agent_id = $1 and x.memory_id = e.memory_id
group by e.memory_id, e.name, e.type, e.aliases, x.state
order by mentions desc, e.name
limit $3;

-- name: list_relations(agent_id, entity_ids, now)
-- Current ones first: a relation is past if every fact that states it is.
select
    r.memory_id, r.source_id, s.name as source, r.type, r.target_id, t.name as target, r.weight,
    coalesce(heart.relation_trust($1, r.memory_id, $3), m.trust) as trust,
    heart.is_relation_current($1, r.memory_id, $3) as is_current
from heart.relations as r
join memory.memories as m on m.agent_id = $1 and m.memory_id = r.memory_id and m.state = 'ACTIVE'
join heart.entities as s on s.agent_id = $1 and s.memory_id = r.source_id
join heart.entities as t on t.agent_id = $1 and t.memory_id = r.target_id
where r.agent_id = $1 and (r.source_id = any($2::uuid[]) or r.target_id = any($2::uuid[]))
order by is_current desc, r.weight desc, r.memory_id;
