-- name: list_memory_texts(agent_id, memory_ids, session_id, max_chars)
-- The memories that the parts of a session's prompt state, those of earlier inputs included.
select m.trust, m.quarantined, left(coalesce(m.full_text, m.summary), $4) as text
from memory.memories as m
where
    m.agent_id = $1
    and m.memory_id in (
        select unnest($2::uuid[])
        union
        select unnest(b.memory_ids)
        from dialogue.prompt_blocks as b
        where b.agent_id = $1 and b.session_id = $3
    );
