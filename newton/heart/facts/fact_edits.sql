-- name: set_core(agent_id, memory_ids, is_core)
update heart.facts
set is_core = $3
where agent_id = $1 and memory_id = any($2::uuid[]);

-- name: list_core(agent_id, memory_ids)
select memory_id, confirmations
from memory.memories
where agent_id = $1 and memory_id = any($2::uuid[]) and state = 'CORE';

-- name: set_retracted(agent_id, memory_ids, is_retracted)
update heart.facts as f
set is_retracted = $3
from memory.memories as m
where f.agent_id = $1 and f.memory_id = any($2::uuid[]) and m.agent_id = $1 and m.memory_id = f.memory_id
returning m.memory_id, m.state, m.trust;

-- name: list_withdrawn(agent_id, memory_ids)
-- The facts that are inactive because a model, a tool or a page retracted what no person had stated.
select m.memory_id
from memory.memories as m
cross join lateral (
    select t.event
    from memory.transitions as t
    where t.agent_id = $1 and t.memory_id = m.memory_id
    order by t.transition_id desc
    limit 1
) as last
where m.agent_id = $1 and m.memory_id = any($2::uuid[]) and m.state = 'INACTIVE' and last.event = 'withdrawn';

-- name: reconfirm(agent_id, memory_ids, asserted_at, trust)
-- That of a person's fact only if a person states it again.
update heart.facts as f
set reconfirmed_at = greatest(f.reconfirmed_at, latest.at)
from (
    select t.memory_id, max(t.at) as at
    from unnest($2::uuid[], $3::timestamptz[]) as t (memory_id, at)
    group by t.memory_id
) as latest
join memory.memories as m on m.agent_id = $1 and m.memory_id = latest.memory_id
where
    f.agent_id = $1
    and f.memory_id = latest.memory_id
    and latest.at > f.valid_from
    and (m.trust not in ('operator', 'user') or $4 in ('operator', 'user'));

-- name: list_misdated(agent_id, memory_ids, starts, ends)
-- Facts that no person stated and that end otherwise than a person says now, or begin later, by a date in the future.
select m.memory_id
from unnest($2::uuid[], $3::timestamptz[], $4::timestamptz[]) as s (memory_id, valid_from, valid_to)
join heart.facts as f on f.agent_id = $1 and f.memory_id = s.memory_id
join memory.memories as m on m.agent_id = $1 and m.memory_id = s.memory_id
where
    m.trust not in ('operator', 'user')
    and (
        m.state <> 'INACTIVE'
        or 'withdrawn' = (
            select t.event
            from memory.transitions as t
            where t.agent_id = $1 and t.memory_id = m.memory_id
            order by t.transition_id desc
            limit 1
        )
    )
    and (f.valid_to is distinct from s.valid_to or f.valid_from > greatest(s.valid_from, m.created_at));

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

-- name: get_subject(agent_id, memory_id)
select subject, subject_key, attribute, single_valued
from heart.facts
where agent_id = $1 and memory_id = $2
for update;

-- name: set_subject(agent_id, memory_id, subject, subject_key)
-- The fact is compared again: the known facts of the new subject are others.
update heart.facts
set subject = $3, subject_key = $4, is_compared = false
where agent_id = $1 and memory_id = $2;

-- name: list_values(agent_id, subject_key, attribute)
select memory_id
from heart.facts
where agent_id = $1 and subject_key = $2 and attribute = $3;

-- name: list_of_subjects(agent_id, subject_keys)
select memory_id, subject_key, attribute, single_valued
from heart.facts
where agent_id = $1 and subject_key = any($2::text[])
order by memory_id;

-- name: move_subjects(agent_id, memory_ids, subject_key)
-- The facts keep the subject as it was stated. They are compared again with the known facts of the new key.
update heart.facts
set subject_key = $3, is_compared = false
where agent_id = $1 and memory_id = any($2::uuid[]);

-- name: set_end(agent_id, memory_id, valid_to)
update heart.facts
set valid_to = $3
where agent_id = $1 and memory_id = $2;
