-- name: answered(agent_id, profile, most)
-- The latest contexts made by a profile whose input was answered by a model; a reply that only quotes memories is not in
-- memory itself.
select
    b.bundle_id, b.session_id, b.created_at, b.input, r.content as reply,
    b.trace, b.memory_ids, b.candidates
from cognition.bundles as b
cross join lateral (
    select d.position, d.content
    from dialogue.messages as d
    where d.agent_id = $1 and d.session_id = b.session_id and d.role = 'assistant' and d.said_at >= b.created_at
    order by d.position
    limit 1
) as r
where
    b.agent_id = $1
    and b.profile = $2
    and exists (
        select from memory.memories as m
        where m.agent_id = $1 and m.kind = 'exchange' and m.thread = b.session_id and m.place = r.position
    )
order by b.created_at desc, b.bundle_id
limit $3;

-- name: forms(agent_id, memory_ids)
select memory_id, micro, summary
from memory.memories
where agent_id = $1 and memory_id = any($2::uuid[]);

-- name: judged(agent_id)
select decided_at, outcome
from brain.decisions
where agent_id = $1 and outcome is not null
order by decided_at;
