-- name: lock_facts(agent_id, memory_ids)
-- What decides whether a line may change a fact, as it is now. Locked until the change is stored.
select
    f.memory_id, m.state in ('NEW', 'CONFIRMED', 'CORE') and not m.quarantined as is_open, f.valid_from, f.valid_to,
    m.full_text as text, m.state, m.trust, m.origin, f.source,
    greatest(f.reconfirmed_at, least(f.valid_from, m.created_at)) as stated_at,
    exists (
        select
        from memory.confirmations as c
        where c.agent_id = $1 and c.memory_id = f.memory_id and c.trust in ('operator', 'user')
    ) as is_vouched
from heart.facts as f
join memory.memories as m on m.agent_id = $1 and m.memory_id = f.memory_id
where f.agent_id = $1 and f.memory_id = any($2::uuid[])
order by f.memory_id
for update of f;

-- name: list_raw(agent_id, memory_ids)
-- The facts that are words of one message of a person, of which another current fact tells, and that nothing confirms.
select f.memory_id
from heart.facts as f
join memory.memories as m on m.agent_id = $1 and m.memory_id = f.memory_id
join memory.sources as s on s.agent_id = $1 and s.memory_id = f.memory_id
join memory.memories as x on x.agent_id = $1 and x.memory_id = s.source_id and x.trust in ('operator', 'user')
join dialogue.messages as d on d.agent_id = $1 and d.session_id = x.thread_id and d.position = x.position
where
    f.agent_id = $1
    and f.memory_id = any($2::uuid[])
    and position(lower(rtrim(m.full_text, '.')) in lower(d.content)) > 0
    and not exists (select from memory.confirmations as c where c.agent_id = $1 and c.memory_id = f.memory_id)
    and not exists (
        select from memory.sources as o
        where o.agent_id = $1 and o.memory_id = f.memory_id and o.source_id <> s.source_id
    )
    and exists (
        select
        from memory.sources as o
        join heart.facts as g
            on g.agent_id = $1 and g.memory_id = o.memory_id and g.is_current and g.duplicate_of is null
        where o.agent_id = $1 and o.source_id = s.source_id and o.memory_id <> all($2::uuid[])
    )
order by f.memory_id;
