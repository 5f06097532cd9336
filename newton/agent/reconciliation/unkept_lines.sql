-- name: list_replies_to_hidden(agent_id, session_id, first)
-- The replies of models from a position on whose message of a person has hidden messages: they may repeat those.
select r.memory_id, asked.memory_id as request_id
from memory.memories as r
join dialogue.messages as d on d.agent_id = $1 and d.session_id = r.thread_id and d.position = r.position
cross join lateral (
    select x.memory_id
    from dialogue.messages as m
    join memory.memories as x
        on x.agent_id = $1 and x.kind = 'exchange' and x.thread_id = m.session_id and x.position = m.position
    where m.agent_id = $1 and m.session_id = $2 and m.role = 'user' and m.position < r.position
    order by m.position desc
    limit 1
) as asked
where
    r.agent_id = $1
    and r.thread_id = $2
    and r.kind = 'exchange'
    and r.position >= $3
    and d.role = 'assistant'
    and exists (
        select
        from heart.line_changes as c
        where c.agent_id = $1 and c.line_id = asked.memory_id and c.effect = 'hidden' and c.undone_at is null
    );

-- name: list_candidates(agent_id, patterns, request_id, max_rows)
-- The latest messages of the person who sent a request, and replies of models, with one of these words.
select x.memory_id, m.role, left(m.content, 20000) as content
from memory.memories as request
join dialogue.messages as asked
    on asked.agent_id = $1 and asked.session_id = request.thread_id and asked.position = request.position
join dialogue.messages as m on m.agent_id = $1
join memory.memories as x
    on x.agent_id = $1 and x.kind = 'exchange' and x.thread_id = m.session_id and x.position = m.position
where
    request.agent_id = $1
    and request.memory_id = $3
    and x.memory_id <> $3
    and not m.is_notice
    and not x.quarantined
    and (
        (m.role = 'user' and m.name is not distinct from asked.name and x.trust in ('operator', 'user'))
        or (m.role = 'assistant' and x.trust = 'agent')
    )
    and m.content ilike any($2::text[])
order by x.memory_id desc
limit $4;

-- name: list_replies(agent_id, memory_ids)
-- The replies of models to these messages: those before the next message of a person.
select r.memory_id
from memory.memories as x
cross join lateral (
    select coalesce(min(position), 2147483647) as position
    from dialogue.messages
    where agent_id = $1 and session_id = x.thread_id and position > x.position and role = 'user'
) as following
join memory.memories as r
    on r.agent_id = $1 and r.kind = 'exchange' and r.thread_id = x.thread_id
    and r.position > x.position and r.position < following.position
where
    x.agent_id = $1 and x.memory_id = any($2::uuid[]) and x.kind = 'exchange' and x.trust in ('operator', 'user')
    and r.trust = 'agent' and not r.quarantined;

-- name: hide(agent_id, memory_ids)
update memory.memories
set quarantined = true
where
    agent_id = $1
    and memory_id = any($2::uuid[])
    and kind in ('exchange', 'episode', 'event', 'artifact', 'relation')
    and not quarantined
returning memory_id;

-- name: list_unsupported(agent_id, memory_ids)
-- Facts among these that no message says or confirms that is still in memory.
select m.memory_id, coalesce(m.full_text, m.summary) as text
from memory.memories as m
where
    m.agent_id = $1
    and m.memory_id = any($2::uuid[])
    and m.kind = 'fact'
    and m.state not in ('CORE', 'INACTIVE')
    and not exists (
        select
        from memory.sources as s
        join memory.memories as x
            on x.agent_id = $1 and x.memory_id = s.source_id and x.kind = 'exchange' and not x.quarantined
        where s.agent_id = $1 and s.memory_id = m.memory_id
    )
    and not exists (
        select
        from memory.confirmations as c
        join memory.memories as x
            on x.agent_id = $1 and x.memory_id::text = split_part(c.ref, ':', 2) and not x.quarantined
        where c.agent_id = $1 and c.memory_id = m.memory_id and c.ref like 'told:%'
    )
order by m.memory_id;

-- name: list_unhidden(agent_id, memory_ids)
-- Those of these memories that were hidden, and that a person has shown again.
select distinct target_id as memory_id
from heart.line_changes
where agent_id = $1 and target_id = any($2::uuid[]) and effect = 'hidden' and undone_at is not null;

-- name: list_named(agent_id, memory_id, request_id)
select x.memory_id
from memory.memories as request
join dialogue.messages as asked
    on asked.agent_id = $1 and asked.session_id = request.thread_id and asked.position = request.position
join memory.memories as x on x.agent_id = $1 and x.kind = 'exchange'
join dialogue.messages as m on m.agent_id = $1 and m.session_id = x.thread_id and m.position = x.position
where
    request.agent_id = $1
    and request.memory_id = $3
    and m.role = 'user'
    and m.name is not distinct from asked.name
    and x.trust in ('operator', 'user')
    and (
        x.memory_id = $2
        or x.memory_id in (select source_id from memory.sources where agent_id = $1 and memory_id = $2)
    )
order by x.memory_id;
