-- name: lock_facts(agent_id, memory_ids)
-- What decides whether a line may change a fact, as it is now. Locked until the change is stored.
select
    f.memory_id, m.state in ('NEW', 'CONFIRMED', 'CORE') and not m.quarantined as is_open, f.valid_from, f.valid_to,
    m.full_text as text, m.state, m.trust,
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

-- name: list_predecessors(agent_id, memory_id)
-- The facts that a fact superseded, also through others, and that have no end of their own.
with recursive earlier as (
    select other_id as memory_id
    from memory.links
    where agent_id = $1 and memory_id = $2 and link = 'supersedes'
    union
    select l.other_id
    from earlier as e
    join memory.links as l on l.agent_id = $1 and l.memory_id = e.memory_id and l.link = 'supersedes'
)
select f.memory_id, f.valid_from
from earlier as e
join heart.facts as f on f.agent_id = $1 and f.memory_id = e.memory_id and not f.is_current and f.valid_to is null
order by f.memory_id;
