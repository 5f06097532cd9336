-- name: list_uncovered(agent_id, session_id, max_rows)
-- The first messages of a session that no episode covers yet, each with its memory. Long content is truncated.
select m.position, m.role, m.name, left(m.content, 20000) as content, m.said_at, x.memory_id, x.trust,
    coalesce(x.quarantined and x.trust not in ('tool', 'web'), false) as is_hidden
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

-- name: mark_reviewed(agent_id, session_id, position)
insert into dialogue.episode_watermarks (agent_id, session_id, last_position)
values ($1, $2, $3)
on conflict (agent_id, session_id) do update
set last_position = greatest(episode_watermarks.last_position, excluded.last_position);

-- name: list_idle(agent_id, before, max_rows)
-- Sessions with messages that were not considered for an episode, the last of them recorded before the time.
select s.session_id
from dialogue.sessions as s
cross join lateral (
    select m.position, m.recorded_at
    from dialogue.messages as m
    where m.agent_id = $1 and m.session_id = s.session_id
    order by m.position desc
    limit 1
) as newest
left join dialogue.episode_watermarks as w on w.agent_id = $1 and w.session_id = s.session_id
where s.agent_id = $1 and newest.position > coalesce(w.last_position, -1) and newest.recorded_at <= $2
order by newest.recorded_at, s.session_id
limit $3;
