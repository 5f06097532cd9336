-- name: list_judged(agent_id, max_rows)
-- The latest bundles of all profiles that were built for an input which a model answered. Reused bundles were
-- made for another input and are skipped.
select
    b.bundle_id, b.session_id, b.created_at, b.input, r.content as reply,
    b.trace, b.memory_ids, b.candidates
from cognition.turns as t
join cognition.bundles as b on b.agent_id = $1 and b.bundle_id = t.bundle_id
join dialogue.messages as r on r.agent_id = $1 and r.session_id = t.session_id and r.position = t.reply_position
where t.agent_id = $1 and t.answered_by = 'model' and t.method = 'built'
order by b.created_at desc, b.bundle_id
limit $2;

-- name: list_forms(agent_id, memory_ids)
select memory_id, kind, micro, summary, coalesce(full_text, summary) as part, coalesce(full_text, summary) as "full"
from memory.memories
where agent_id = $1 and memory_id = any($2::uuid[]);
