-- name: get_entity(agent_id, entity_id)
select e.memory_id, e.name, e.type, e.aliases, e.mentions, e.mentioned_at, e.properties::text as properties, m.state
from heart.entities as e
join memory.memories as m on m.agent_id = $1 and m.memory_id = e.memory_id
where e.agent_id = $1 and e.memory_id = $2;

-- name: list_mentions(agent_id, entity_id, max_rows)
-- Current knowledge only, latest first.
select n.memory_id
from heart.mentions as n
join memory.memories as m on m.agent_id = $1 and m.memory_id = n.memory_id
where
    n.agent_id = $1
    and n.entity_id = $2
    and memory.has_listed_state(m.kind, m.state, m.quarantined, array['current'])
order by m.occurred_at desc, m.memory_id desc
limit $3;

-- name: find_by_name(agent_id, spellings)
-- Entities that one of these words may refer to.
select
    e.memory_id, e.name, e.aliases, e.type, e.mentions, e.mentioned_at, e.type <> 'thing' or e.properties <> '{}' as told
from heart.entities as e
where
    e.agent_id = $1
    and e.memory_id in (
        select entity_id
        from heart.entity_names
        where agent_id = $1 and spelling = any($2::text[])
    )
order by e.memory_id;

-- name: list_most_salient(agent_id, now, enough, half_life, excluded_ids, preferred_types, max_rows)
-- Only entities of which more than the name is known.
select e.memory_id, e.name, e.aliases, e.type, e.mentions, e.mentioned_at, true as told
from heart.entities as e
join memory.memories as m on m.agent_id = $1 and m.memory_id = e.memory_id
where
    e.agent_id = $1
    and m.state = 'ACTIVE'
    and not m.quarantined
    and (e.type <> 'thing' or e.properties <> '{}')
    and e.memory_id <> all($5::uuid[])
order by
    e.type = any($6::text[]) desc,
    e.mentions / (e.mentions + $3::float8)
    * 0.5 ^ greatest(extract(epoch from ($2::timestamptz - e.mentioned_at)) / 86400 / $4::float8, 0) desc,
    e.memory_id
limit $7;

-- name: list_relations_at(agent_id, entity_ids, moment, excluded_ids, preferred_types, max_rows)
-- The relations of these entities, in both directions, that were current at a moment, each with the facts that state it:
-- those of preferred types first, then by weight.
select
    r.memory_id,
    r.source_id,
    r.type,
    r.target_id,
    r.weight,
    array(
        select l.memory_id
        from memory.links as l
        where l.agent_id = $1 and l.other_id = r.memory_id and l.link = 'evidence'
        order by l.memory_id
    ) as evidence_ids
from heart.relations as r
join memory.memories as m on m.agent_id = $1 and m.memory_id = r.memory_id
where
    r.agent_id = $1
    and (r.source_id = any($2::uuid[]) or r.target_id = any($2::uuid[]))
    and not m.quarantined
    and m.created_at <= $3
    and r.memory_id <> all($4::uuid[])
    and coalesce(
        (
            select t.from_state
            from memory.transitions as t
            where t.agent_id = $1 and t.memory_id = r.memory_id and t.changed_at > $3
            order by t.changed_at, t.transition_id
            limit 1
        ),
        m.state
    ) = 'ACTIVE'
    and heart.is_relation_current($1, r.memory_id, $3)
order by r.type = any($5::text[]) desc, r.weight desc, r.memory_id
limit $6;

-- name: list_fact_mentions(agent_id, entity_ids, excluded_ids, max_rows)
-- Current facts that mention one of these entities, latest first.
select n.memory_id
from heart.mentions as n
join memory.memories as m on m.agent_id = $1 and m.memory_id = n.memory_id
where
    n.agent_id = $1
    and n.entity_id = any($2::uuid[])
    and m.kind = 'fact'
    and n.memory_id <> all($3::uuid[])
    and memory.has_listed_state(m.kind, m.state, m.quarantined, array['current'])
order by m.occurred_at desc, m.memory_id desc
limit $4;
