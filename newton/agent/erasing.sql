-- name: aliases(agent_id, key)
-- What else somebody is called.
select name, aliases
from heart.entities
where agent_id = $1 and key = $2;

-- name: about(agent_id, keys, pattern, shipped)
-- What is said by somebody or of them: by its speaker, its subject, the entity it names, or its words. What follows a
-- folder of procedures was told of nobody.
with named as (
    select memory_id
    from heart.entities
    where agent_id = $1 and key = any($2::text[])
),
found as (
    select memory_id
    from named
    union
    select memory_id
    from heart.mentions
    where agent_id = $1 and entity_id in (select memory_id from named)
    union
    select memory_id
    from heart.facts
    where agent_id = $1 and subject_key = any($2::text[])
    union
    select m.memory_id
    from dialogue.messages as d
    join memory.memories as m
        on m.agent_id = $1 and m.kind = 'exchange' and m.thread = d.session_id and m.place = d.position
    where
        d.agent_id = $1
        and (lower(d.name) = any($2::text[]) or d.content ~* $3 or d.calls::text ~* $3)
    union
    select memory_id
    from memory.memories
    where agent_id = $1 and concat_ws(' ', micro, summary, full_text) ~* $3
    union
    select memory_id
    from heart.procedures
    where agent_id = $1 and concat_ws(' ', description, details, core::text, goals::text, triggers::text) ~* $3
    union
    select memory_id
    from memory.former_forms
    where agent_id = $1 and concat_ws(' ', micro, summary) ~* $3
    union
    select decision_id
    from brain.records as r
    where
        r.agent_id = $1
        and exists (
            select
            from brain.texts as t
            where t.agent_id = $1 and t.record_id = r.record_id and t.words::text ~* $3
        )
)
select m.memory_id, m.kind, m.micro
from found as f
join memory.memories as m on m.agent_id = $1 and m.memory_id = f.memory_id
where (m.micro <> '[erased]' or m.kind <> 'decision') and m.origin <> $4
order by m.kind, m.memory_id;

-- name: tenets(agent_id, pattern)
select tenet_id
from heart.tenets
where agent_id = $1 and words ~* $2
order by tenet_id;

-- name: wipe(agent_id)
call runtime.wipe($1);
