-- name: insert_activations(agent_id, memory_ids, activation_ids, stage, now)
insert into heart.activations (agent_id, memory_id, activation_id, activated_at, stage)
select $1, a.memory_id, a.activation_id, $5, $4
from unnest($2::uuid[], $3::uuid[]) as a (memory_id, activation_id)
on conflict do nothing;

-- name: count_use(agent_id, memory_ids, now)
update memory.memories
set uses = uses + 1, accessed_at = $3
where agent_id = $1 and memory_id = any($2::uuid[]);

-- name: set_result(agent_id, memory_id, activation_id, result, now)
-- Of the last unrated activation if none is named. A result is final; setting it again changes nothing.
update heart.activations as a
set result = $4, evaluated_at = $5
where
    a.agent_id = $1
    and a.memory_id = $2
    and a.result is null
    and a.activation_id = coalesce(
        $3,
        (
            select l.activation_id
            from heart.activations as l
            where l.agent_id = $1 and l.memory_id = $2 and l.result is null
            order by l.activated_at desc, l.activation_id desc
            limit 1
        )
    )
returning a.activation_id;
