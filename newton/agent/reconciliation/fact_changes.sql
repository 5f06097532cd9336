-- name: lock_facts(agent_id, memory_ids)
-- What decides whether a line may change a fact, as it is now. Locked until the change is stored.
select
    f.memory_id, f.is_current, f.valid_from, f.valid_to, m.full_text as text, m.state, m.trust,
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
