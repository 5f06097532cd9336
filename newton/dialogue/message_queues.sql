-- name: list_unextracted(agent_id, ended_before, max_rows, only_unparsed)
-- Episodes that wait for the model or for the statement classifier, or only for the latter: those of sessions, or all
-- that ended before the time. The oldest are first; those that the classifier has not read yet precede the others.
select e.memory_id, e.session_id, e.first_position, e.last_position, e.ended_at, s.ref as session
from heart.episodes as e
left join dialogue.sessions as s on s.agent_id = $1 and s.session_id = e.session_id
where
    e.agent_id = $1
    and e.extracted_at is null
    and case when $2::timestamptz is null then e.session_id is not null else e.ended_at <= $2 end
    and (e.parsed_at is null or not $4::boolean)
order by e.parsed_at nulls first, e.ended_at, e.memory_id
limit $3;

-- name: list_messages(agent_id, session_id, first, last, read_position)
-- `is_parsed` marks messages whose statements were stored before, and all up to the position `read_position`. Those that a
-- person asked not to keep are left out. `is_group` marks a message with a name if the agent hears others too.
select
    m.role, m.name, m.content, m.said_at, x.memory_id, x.trust, x.origin,
    substring(x.micro from '^\[([0-9-]{10})\] ') as said_on,
    m.position <= greatest(w.parsed_position, $5) as is_parsed,
    m.name is not null and exists (
        select
        from dialogue.messages as o
        where o.agent_id = $1 and o.role = 'user' and o.name is distinct from m.name
    ) as is_group
from dialogue.messages as m
left join dialogue.episode_watermarks as w on w.agent_id = $1 and w.session_id = m.session_id
left join memory.memories as x
    on x.agent_id = $1 and x.kind = 'exchange' and x.thread_id = m.session_id and x.position = m.position
where
    m.agent_id = $1
    and m.session_id = $2
    and m.position between $3 and $4
    and not coalesce(x.quarantined and x.trust not in ('tool', 'web'), false)
order by m.position;

-- name: get_episode_text(agent_id, memory_id)
-- The text of an episode without a session, as one message of whoever stored it.
select
    case when x.trust in ('operator', 'user') then 'user' else 'assistant' end as role,
    null::text as name, coalesce(x.full_text, x.summary) as content, x.occurred_at as said_at, x.memory_id, x.trust,
    x.origin, null::text as said_on, e.parsed_at is not null as is_parsed
from memory.memories as x
join heart.episodes as e on e.agent_id = $1 and e.memory_id = x.memory_id
where x.agent_id = $1 and x.memory_id = $2;

-- name: mark_extracted(agent_id, memory_id, now)
-- The messages of the episode are not read again if the episode is forgotten.
with marked as (
    update heart.episodes
    set extracted_at = $3
    where agent_id = $1 and memory_id = $2 and extracted_at is null
    returning memory_id, session_id, last_position
),
advanced as (
    insert into dialogue.episode_watermarks (agent_id, session_id, parsed_position)
    select $1, session_id, last_position
    from marked
    where session_id is not null
    on conflict (agent_id, session_id) do update
    set parsed_position = greatest(episode_watermarks.parsed_position, excluded.parsed_position)
)
select memory_id
from marked;

-- name: mark_parsed(agent_id, memory_id, now)
-- Its messages are not parsed again, neither when the model has read the episode nor if the episode is forgotten.
with marked as (
    update heart.episodes
    set parsed_at = $3
    where agent_id = $1 and memory_id = $2 and extracted_at is null and parsed_at is null
    returning memory_id, session_id, last_position
),
advanced as (
    insert into dialogue.episode_watermarks (agent_id, session_id, parsed_position)
    select $1, session_id, last_position
    from marked
    where session_id is not null
    on conflict (agent_id, session_id) do update
    set parsed_position = greatest(episode_watermarks.parsed_position, excluded.parsed_position)
)
select memory_id
from marked;

-- name: list_open_sessions(agent_id, recent, max_rows, max_messages)
-- Sessions with messages that no facts were extracted from and that no episode includes: all sessions, or those of the
-- `recent` latest memories. Sessions with an episode that was not parsed are left out: it is read first.
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
    c.session_id, s.ref as session, coalesce(w.parsed_position, -1) as parsed_position, unread.first as first_position,
    least(newest.position, unread.first + $4 - 1) as last_position
from candidates as c
join dialogue.sessions as s on s.agent_id = $1 and s.session_id = c.session_id
left join dialogue.episode_watermarks as w on w.agent_id = $1 and w.session_id = c.session_id
cross join lateral (
    select position
    from dialogue.messages
    where agent_id = $1 and session_id = c.session_id
    order by position desc
    limit 1
) as newest
cross join lateral (
    select 1 + greatest(w.parsed_position, s.parent_position, max(last_position), -1) as first, bool_or(coalesce(extracted_at, parsed_at) is null) as has_unread_episode
    from heart.episodes
    where agent_id = $1 and session_id = c.session_id
) as unread
where newest.position >= unread.first and unread.has_unread_episode is not true
order by c.session_id desc
limit $3;

-- name: advance_parsed_position(agent_id, session_id, former, position)
-- Returns no row if another worker has read these messages meanwhile.
insert into dialogue.episode_watermarks as w (agent_id, session_id, parsed_position)
values ($1, $2, $4)
on conflict (agent_id, session_id) do update
set parsed_position = excluded.parsed_position
where w.parsed_position = $3
returning session_id;

-- name: list_stated_facts(agent_id, message_ids, refs)
-- The facts that these messages state, also those that were known before; originals in place of duplicates. The refs are
-- the ids of the messages as texts, because a confirmation has the message in its ref.
select coalesce(f.duplicate_of, f.memory_id) as memory_id
from heart.facts as f
where
    f.agent_id = $1
    and f.memory_id in (
        select memory_id
        from memory.sources
        where agent_id = $1 and source_id = any($2::uuid[])
        union
        select memory_id
        from memory.confirmations
        where agent_id = $1 and ref like 'told:%' and split_part(ref, ':', 2) = any($3::text[])
    );

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
    substring(x.micro from '^\[([0-9-]{10})\] ') as said_on,
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

-- name: list_long_messages(agent_id, max_rows, form_tokens, min_uses)
select
    m.memory_id, m.micro, m.micro_tokens, coalesce(d.name, initcap(d.role)) as speaker, d.content, d.tokens, d.said_at
from memory.memories as m
join dialogue.messages as d on d.agent_id = $1 and d.session_id = m.thread_id and d.position = m.position
where
    m.agent_id = $1
    and m.kind = 'exchange'
    and not m.quarantined
    and d.tokens > $3
    and m.uses >= $4
    and not exists (
        select
        from memory.line_summaries as c
        where c.agent_id = $1 and c.memory_id = m.memory_id
    )
order by m.uses desc, m.memory_id
limit $2;

-- name: find_by_hash(agent_id, content_hash, max_tokens)
select text
from memory.line_summaries
where agent_id = $1 and content_hash = $2 and max_tokens = $3
limit 1;

-- name: insert_summary(agent_id, memory_id, content_hash, max_tokens, text, now)
-- Skips memories that were forgotten meanwhile.
insert into memory.line_summaries (agent_id, memory_id, content_hash, max_tokens, text, created_at)
select $1, memory_id, $3, $4, $5, $6
from memory.memories
where agent_id = $1 and memory_id = $2
on conflict do nothing;
