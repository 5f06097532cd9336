-- name: lock_target(agent_id, memory_id)
select memory_id
from memory.memories
where agent_id = $1 and memory_id = $2
for update;

-- name: read_target(agent_id, memory_id)
select
    m.kind, m.state, m.trust, coalesce(m.full_text, m.summary) as text,
    -- a person approved a censor or procedure that is in force
    m.kind in ('censor', 'procedure') and not m.quarantined or exists (
        select
        from memory.confirmations as c
        where c.agent_id = $1 and c.memory_id = m.memory_id and c.trust in ('operator', 'user')
    ) as is_vouched
from memory.memories as m
where m.agent_id = $1 and m.memory_id = $2;

-- name: find_place(agent_id, memory_id)
select thread_id, position
from memory.memories
where agent_id = $1 and memory_id = $2 and kind = 'exchange' and thread_id is not null and position is not null;

-- name: list_stated(agent_id, line_id)
-- What was learnt from a message: the facts that it stated first, and those that it confirmed.
select coalesce(m.full_text, m.summary) as text
from memory.memories as m
where
    m.agent_id = $1
    and m.kind = 'fact'
    and m.state <> 'INACTIVE'
    and not m.quarantined
    and (
        exists (
            select from memory.sources as s
            where s.agent_id = $1 and s.memory_id = m.memory_id and s.source_id = $2
        )
        or exists (
            select from memory.confirmations as c
            where c.agent_id = $1 and c.memory_id = m.memory_id and c.ref like 'told:' || $2::text || '%'
        )
    );
