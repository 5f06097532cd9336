-- name: list_unextracted(agent_id, max_rows)
-- Episodes of sessions that no model has extracted from yet, oldest first.
select e.memory_id, e.session_id, e.first_position, e.last_position, e.ended_at, s.ref as session
from heart.episodes as e
join dialogue.sessions as s on s.agent_id = $1 and s.session_id = e.session_id
where e.agent_id = $1 and e.extracted_at is null and e.session_id is not null
order by e.ended_at, e.memory_id
limit $2;

-- name: list_messages(agent_id, session_id, first, last)
select m.role, m.name, m.content, x.memory_id, x.trust
from dialogue.messages as m
left join memory.memories as x
    on x.agent_id = $1 and x.kind = 'exchange' and x.thread_id = m.session_id and x.position = m.position
where m.agent_id = $1 and m.session_id = $2 and m.position between $3 and $4
order by m.position;

-- name: mark_extracted(agent_id, memory_id, now)
update heart.episodes
set extracted_at = $3
where agent_id = $1 and memory_id = $2 and extracted_at is null
returning memory_id;
