-- name: list_stated(agent_id, message_id, ref)
-- The current facts that a message states, without core facts. The ref is the id of the message as text, because a
-- confirmation has it in its ref. `is_confirmed` means that another message, or a person, says the same.
select
    f.memory_id, m.full_text as text, m.trust,
    exists (
        select
        from memory.confirmations as c
        where
            c.agent_id = $1
            and c.memory_id = f.memory_id
            and not (c.ref like 'told:%' and split_part(c.ref, ':', 2) = $3)
    ) as is_confirmed
from heart.facts as f
join memory.memories as m on m.agent_id = $1 and m.memory_id = f.memory_id
where
    f.agent_id = $1
    and f.is_current
    and m.state not in ('CORE', 'INACTIVE')
    and f.memory_id in (
        select memory_id
        from memory.sources
        where agent_id = $1 and source_id = $2
        union
        select memory_id
        from memory.confirmations
        where agent_id = $1 and ref like 'told:%' and split_part(ref, ':', 2) = $3
    );

-- name: list_with_parts(agent_id, parts)
-- The current facts, without core facts, whose text matches all patterns.
select
    f.memory_id, m.full_text as text, m.trust,
    exists (
        select
        from memory.confirmations as c
        where c.agent_id = $1 and c.memory_id = f.memory_id
    ) as is_confirmed
from heart.facts as f
join memory.memories as m on m.agent_id = $1 and m.memory_id = f.memory_id
where f.agent_id = $1 and f.is_current and m.state not in ('CORE', 'INACTIVE') and m.full_text ilike all ($2::text []);
