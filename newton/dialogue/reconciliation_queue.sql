-- name: list_due_sessions(agent_id, recent, min_lines, idle_since, max_rows)
-- Sessions with messages of users that the reconciling call has not read: at least `min_lines`, the newest of them
-- recorded by `idle_since`, or some of them before the session was closed; all sessions, or those of the `recent` latest
-- memories. Those whose messages could not be read are last. The messages of a branch begin after its parent's.
with candidates as (
    select session_id
    from dialogue.sessions
    where agent_id = $1 and $2::integer is null
    union
    select thread_id
    from (select kind, thread_id from memory.memories where agent_id = $1 order by memory_id desc limit $2) as latest
    where kind = 'exchange' and $2::integer is not null
)
select
    s.session_id, s.ref, unread.first_position, coalesce(w.reconciled_position, -1) as reconciled_position,
    coalesce(w.failed_readings, 0) as failed_readings, waiting.recorded_at
from candidates as c
join dialogue.sessions as s on s.agent_id = $1 and s.session_id = c.session_id
left join dialogue.episode_watermarks as w on w.agent_id = $1 and w.session_id = s.session_id
cross join lateral (
    select
        1 + greatest(
            w.reconciled_position, s.parent_position, max(last_position) filter (where extracted_at is not null), -1
        ) as first_position
    from heart.episodes
    where agent_id = $1 and session_id = s.session_id
) as unread
cross join lateral (
    select count(*) as lines, max(n.recorded_at) as recorded_at
    from (
        select recorded_at
        from dialogue.messages
        where
            agent_id = $1 and session_id = s.session_id and role = 'user' and position >= unread.first_position
        order by position
        limit greatest($3, 1)
    ) as n
) as waiting
where waiting.lines > 0 and (waiting.lines >= $3 or waiting.recorded_at <= $4 or w.last_position >= unread.first_position)
order by coalesce(w.failed_readings, 0), waiting.recorded_at, s.session_id
limit $5;

-- name: list_lines(agent_id, session_id, first, last)
-- Messages with the memories made from them. Long content is truncated.
select
    m.position, m.role, m.name, left(m.content, 20000) as content, m.is_notice, m.said_at, x.memory_id, x.trust, x.origin,
    coalesce(x.quarantined and x.trust not in ('tool', 'web'), false) as is_hidden
from dialogue.messages as m
left join memory.memories as x
    on x.agent_id = $1 and x.kind = 'exchange' and x.thread_id = m.session_id and x.position = m.position
where m.agent_id = $1 and m.session_id = $2 and m.position between $3 and $4
order by m.position;

-- name: advance_position(agent_id, session_id, former, position)
-- Returns no row if another worker has read these messages meanwhile.
insert into dialogue.episode_watermarks as w (agent_id, session_id, reconciled_position)
values ($1, $2, $4)
on conflict (agent_id, session_id) do update
set reconciled_position = excluded.reconciled_position, failed_readings = 0
where w.reconciled_position = $3
returning session_id;

-- name: count_failed_reading(agent_id, session_id)
insert into dialogue.episode_watermarks as w (agent_id, session_id, failed_readings)
values ($1, $2, 1)
on conflict (agent_id, session_id) do update
set failed_readings = w.failed_readings + 1;

-- name: find_episode(agent_id, session_id, position)
-- The episode that includes a message.
select memory_id
from heart.episodes
where agent_id = $1 and session_id = $2 and $3 between first_position and last_position;

-- name: list_told_episodes(agent_id, ended_before, max_rows)
-- Episodes without a session that ended by then, and that nothing was extracted from yet.
select e.memory_id, coalesce(x.full_text, x.summary) as content, x.occurred_at as said_at, x.trust, x.origin
from heart.episodes as e
join memory.memories as x on x.agent_id = $1 and x.memory_id = e.memory_id
where e.agent_id = $1 and e.session_id is null and e.extracted_at is null and e.ended_at <= $2
order by e.ended_at, e.memory_id
limit $3;

-- name: finish_told_episode(agent_id, memory_id, now)
update heart.episodes
set extracted_at = $3
where agent_id = $1 and memory_id = $2 and extracted_at is null
returning memory_id;
