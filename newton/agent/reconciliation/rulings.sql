-- name: is_decision(agent_id, memory_id)
select kind
from memory.memories
where agent_id = $1 and memory_id = $2 and kind = 'decision';

-- name: lock_targets(agent_id, memory_ids)
select memory_id
from memory.memories
where agent_id = $1 and memory_id = any($2::uuid[])
order by memory_id
for no key update;

-- name: read_targets(agent_id, memory_ids)
select
    m.kind, m.state, m.trust, coalesce(m.full_text, m.summary) as text,
    -- a person approved a censor or procedure that is in force
    m.kind in ('censor', 'procedure') and not m.quarantined or exists (
        select
        from memory.confirmations as c
        where c.agent_id = $1 and c.memory_id = m.memory_id and c.trust in ('operator', 'user')
    )
    or exists (select from heart.facts as f where f.agent_id = $1 and f.memory_id = m.memory_id and f.is_core)
    or exists (
        select
        from brain.decision_records as r
        where r.agent_id = $1 and r.decision_id = m.memory_id and r.kind = 'outcome' and not r.body ? 'trust'
    ) as is_vouched
from memory.memories as m
where m.agent_id = $1 and m.memory_id = any($2::uuid[]);

-- name: find_place(agent_id, memory_id)
select thread_id, position
from memory.memories
where agent_id = $1 and memory_id = $2 and kind = 'exchange' and thread_id is not null and position is not null;

-- name: list_stated(agent_id, line_id)
-- What was learnt from a message and still holds: the facts that it stated first, and those that it confirmed.
select coalesce(m.full_text, m.summary) as text
from memory.memories as m
join heart.facts as f on f.agent_id = $1 and f.memory_id = m.memory_id
join memory.memories as o on o.agent_id = $1 and o.memory_id = coalesce(f.duplicate_of, f.memory_id)
where
    m.agent_id = $1
    and m.kind = 'fact'
    and o.state in ('NEW', 'CONFIRMED', 'CORE')
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

-- name: list_later(agent_id, session_id, position)
-- What a person said after a message of a session.
select content
from dialogue.messages
where
    agent_id = $1
    and session_id = $2
    and position > $3
    and role = 'user'
    and coalesce(min_trust, 'user') in ('operator', 'user')
    and not is_notice
order by position
limit 200;

-- name: is_newer(agent_id, line_id, memory_id)
-- Whether a message was said after a memory was last stated or confirmed, other than by the message itself.
select
from memory.memories as line
where
    line.agent_id = $1
    and line.memory_id = $2
    and line.occurred_at > coalesce(
        (
            select max(said.occurred_at)
            from memory.sources as s
            inner join memory.memories as said on said.agent_id = $1 and said.memory_id = s.source_id
            where s.agent_id = $1 and s.memory_id = $3 and said.kind = 'exchange' and s.source_id <> $2
        ),
        -- it was not learnt from other messages
        (
            select m.created_at
            from memory.memories as m
            where
                m.agent_id = $1
                and m.memory_id = $3
                and not exists (
                    select from memory.sources as s
                    where s.agent_id = $1 and s.memory_id = $3 and s.source_id = $2
                )
        ),
        '-infinity'
    )
    and not exists (
        select
        from memory.confirmations as c
        where
            c.agent_id = $1
            and c.memory_id = $3
            and c.confirmed_at > line.occurred_at
            and c.ref not like 'told:' || $2::text || '%'
    );
