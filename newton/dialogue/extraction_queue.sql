-- name: list_unextracted(agent_id, ended_before, max_rows)
-- Episodes that nothing was extracted from yet: those of sessions, or all that ended before the time. The oldest are
-- first; those for which the model failed are last, so they hold up no other.
select e.memory_id, e.session_id, e.first_position, e.last_position, e.ended_at, s.ref as session
from heart.episodes as e
left join dialogue.sessions as s on s.agent_id = $1 and s.session_id = e.session_id
where
    e.agent_id = $1
    and e.extracted_at is null
    and case when $2::timestamptz is null then e.session_id is not null else e.ended_at <= $2 end
order by e.parsed_at nulls first, e.ended_at, e.memory_id
limit $3;

-- name: list_messages(agent_id, session_id, first, last)
select m.role, m.name, m.content, m.said_at, x.memory_id, x.trust, x.origin
from dialogue.messages as m
left join memory.memories as x
    on x.agent_id = $1 and x.kind = 'exchange' and x.thread_id = m.session_id and x.position = m.position
where m.agent_id = $1 and m.session_id = $2 and m.position between $3 and $4
order by m.position;

-- name: get_episode_text(agent_id, memory_id)
-- The text of an episode without a session, as one message of whoever stored it.
select
    case when x.trust in ('operator', 'user') then 'user' else 'assistant' end as role,
    null::text as name, coalesce(x.full_text, x.summary) as content, x.occurred_at as said_at, x.memory_id, x.trust,
    x.origin
from memory.memories as x
where x.agent_id = $1 and x.memory_id = $2;

-- name: mark_extracted(agent_id, memory_id, now)
update heart.episodes
set extracted_at = $3
where agent_id = $1 and memory_id = $2 and extracted_at is null
returning memory_id;

-- name: mark_parsed(agent_id, memory_id, now)
update heart.episodes
set parsed_at = $3
where agent_id = $1 and memory_id = $2 and extracted_at is null and parsed_at is null
returning memory_id;
