-- name: lock(agent_id, keys)
-- Writers of the same single-valued attribute come one after the other. In order, so that no two wait for each other.
select pg_advisory_xact_lock(hashtextextended(k.key, 0))
from (select distinct $1::uuid::text || e.key as key from unnest($2::text[]) as e (key) order by 1) as k;

-- name: insert_facts(agent_id, facts)
insert into heart.facts (
    agent_id, memory_id, subject, subject_key, attribute, single, valid_from, valid_to, source, marked, compared,
    generalises, retracted, holds
)
select
    $1, d.memory_id, d.subject, d.subject_key, d.attribute, d.single, d.valid_from, d.valid_to, d.source, d.marked,
    d.generalises, d.generalises, false, false
from jsonb_to_recordset($2::jsonb) as d (
    memory_id uuid, subject text, subject_key text, attribute text, single boolean, valid_from timestamptz,
    valid_to timestamptz, source text, marked boolean, generalises boolean
);

-- name: by_hash(agent_id, hashes)
-- The facts of these words; what only tells another again stands for that one.
select m.content_hash, coalesce(f.same_as, f.memory_id) as memory_id
from memory.memories as m
join heart.facts as f on f.agent_id = $1 and f.memory_id = m.memory_id
where m.agent_id = $1 and m.kind = 'fact' and m.content_hash = any($2::bytea[]);

-- name: find(agent_id, memory_ids)
select memory_id, coalesce(same_as, memory_id) as stands_for, subject_key, attribute, single
from heart.facts
where agent_id = $1 and memory_id = any($2::uuid[]);

-- name: about(agent_id, memory_id)
select subject, attribute
from heart.facts
where agent_id = $1 and memory_id = $2;

-- name: retract(agent_id, memory_id)
update heart.facts
set retracted = true
where agent_id = $1 and memory_id = $2;

-- name: mark(agent_id, memory_id)
update heart.facts
set marked = true
where agent_id = $1 and memory_id = $2;

-- name: supersedes_in_turn(agent_id, memory_id, other_id)
-- Whether the other one supersedes the memory already, directly or by way of others.
with recursive chain as (
    select other_id as memory_id
    from memory.links
    where agent_id = $1 and memory_id = $3 and link = 'supersedes'
    union
    select l.other_id
    from chain as c
    join memory.links as l on l.agent_id = $1 and l.memory_id = c.memory_id and l.link = 'supersedes'
)
select exists (select from chain where memory_id = $2) as cyclic;
