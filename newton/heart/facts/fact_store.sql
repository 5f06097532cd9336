-- name: insert_facts(agent_id, facts)
insert into heart.facts (
    agent_id, memory_id, subject, subject_key, attribute, single_valued, valid_from, valid_to, source, is_core,
    is_compared,
    is_generalization, is_retracted, is_current, tags
)
select
    $1, d.memory_id, d.subject, d.subject_key, d.attribute, d.single, d.valid_from, d.valid_to, d.source, d.marked,
    d.generalizes, d.generalizes, false, false, d.tags
from jsonb_to_recordset($2::jsonb) as d (
    memory_id uuid, subject text, subject_key text, attribute text, single boolean, valid_from timestamptz,
    valid_to timestamptz, source text, marked boolean, generalizes boolean, tags text[]
)
returning agent_id;

-- name: find_by_hash(agent_id, hashes)
-- Locks the facts with these hashes, so that nobody deletes them before the transaction ends; a duplicate is replaced by
-- its original.
select m.content_hash, o.memory_id
from memory.memories as m
join heart.facts as f on f.agent_id = $1 and f.memory_id = m.memory_id
join memory.memories as o on o.agent_id = $1 and o.memory_id = coalesce(f.duplicate_of, f.memory_id)
where m.agent_id = $1 and m.kind = 'fact' and m.content_hash = any($2::bytea[])
order by o.memory_id, m.memory_id
for no key update of m, o;

-- name: find_canonical(agent_id, memory_ids)
-- The original of each fact: the fact itself, or the one it duplicates.
select f.memory_id as named, s.memory_id, s.subject_key, s.attribute, s.single_valued as single, m.state, m.quarantined
from heart.facts as f
join heart.facts as s on s.agent_id = $1 and s.memory_id = coalesce(f.duplicate_of, f.memory_id)
join memory.memories as m on m.agent_id = $1 and m.memory_id = s.memory_id
where f.agent_id = $1 and f.memory_id = any($2::uuid[]);

-- name: list_short_texts(agent_id, memory_ids)
select memory_id, kind, state, micro
from memory.memories
where agent_id = $1 and memory_id = any($2::uuid[])
order by memory_id;

-- name: get_fact(agent_id, memory_id)
select subject, attribute, valid_to, tags
from heart.facts
where agent_id = $1 and memory_id = $2;

-- name: check_supersession_cycle(agent_id, memory_id, other_id)
-- Whether the other fact already supersedes this one, directly or transitively, with the later statement; and whether
-- this link is already stored.
with recursive step as (
    select l.memory_id, l.other_id
    from memory.links as l
    join heart.facts as n on n.agent_id = $1 and n.memory_id = l.memory_id
    join heart.facts as o on o.agent_id = $1 and o.memory_id = l.other_id
    where
        l.agent_id = $1
        and l.link = 'supersedes'
        and greatest(l.created_at, n.reconfirmed_at) >= coalesce(o.reconfirmed_at, '-infinity')
),
chain as (
    select other_id as memory_id
    from step
    where memory_id = $3
    union
    select s.other_id
    from chain as c
    join step as s on s.memory_id = c.memory_id
)
select
    exists (select from chain where memory_id = $2) as cyclic,
    exists (
        select from memory.links where agent_id = $1 and memory_id = $2 and link = 'supersedes' and other_id = $3
    ) as known;

-- name: list_versions(agent_id, memory_ids)
-- What a fact made from another one takes over from it.
select f.memory_id, m.full_text, m.origin, m.trust, f.subject, f.valid_from, f.valid_to, f.source
from heart.facts as f
join memory.memories as m on m.agent_id = $1 and m.memory_id = f.memory_id
where f.agent_id = $1 and f.memory_id = any($2::uuid[]);
