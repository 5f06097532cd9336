-- name: list_uncovered(agent_id, session_id, max_rows)
-- The first messages of a session that no episode covers yet, each with its memory. Long content is truncated.
select m.position, m.role, m.name, left(m.content, 20000) as content, m.said_at, x.memory_id, x.trust
from dialogue.messages as m
left join memory.memories as x
    on x.agent_id = $1 and x.kind = 'exchange' and x.thread_id = m.session_id and x.position = m.position
where
    m.agent_id = $1
    and m.session_id = $2
    and m.position > coalesce(
        (select max(last_position) from heart.episodes where agent_id = $1 and session_id = $2), -1
    )
order by m.position
limit $3;
