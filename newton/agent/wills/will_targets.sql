-- name: list_said(agent_id, session_id, position, patterns, since, until, max_rows)
-- The latest messages that the person of a message said before it, with any of these words, in a range of time.
select x.memory_id, m.content, m.session_id, m.position
from dialogue.messages as asked
join dialogue.messages as m on m.agent_id = $1 and m.role = 'user' and m.name is not distinct from asked.name
join memory.memories as x
    on x.agent_id = $1 and x.kind = 'exchange' and x.thread_id = m.session_id and x.position = m.position
where
    asked.agent_id = $1 and asked.session_id = $2 and asked.position = $3
    and x.trust in ('operator', 'user')
    and not m.is_notice
    and (m.session_id <> $2 or m.position < $3)
    and m.said_at <= asked.said_at
    and ($4::text[] is null or m.content ilike any($4::text[]))
    and ($5::timestamptz is null or m.said_at >= $5)
    and ($6::timestamptz is null or m.said_at < $6)
order by m.said_at desc, m.position desc
limit $7;

-- name: find_near(agent_id, session_id, position, model_id, embedding, min_similarity, max_rows)
-- The messages that the person of a message said before it, nearest to a text in other words.
select x.memory_id, m.content, -(v.embedding <#> $5::halfvec) as similarity
from dialogue.messages as asked
join dialogue.messages as m on m.agent_id = $1 and m.role = 'user' and m.name is not distinct from asked.name
join memory.memories as x
    on x.agent_id = $1 and x.kind = 'exchange' and x.thread_id = m.session_id and x.position = m.position
join memory.embeddings as v
    on v.agent_id = $1 and v.model_id = $4 and v.kind = 'exchange' and v.memory_id = x.memory_id
where
    asked.agent_id = $1 and asked.session_id = $2 and asked.position = $3
    and x.trust in ('operator', 'user')
    and not m.is_notice
    and (m.session_id <> $2 or m.position < $3)
    and v.embedding <#> $5::halfvec <= -$6::float8
order by v.embedding <#> $5::halfvec, x.memory_id
limit $7;

-- name: list_last(agent_id, session_id, position, until, max_rows)
-- The last messages before a position that the person of a message said in the conversation, the latest first.
select x.memory_id, m.content, m.session_id, m.position
from dialogue.messages as asked
join dialogue.messages as m on m.agent_id = $1 and m.role = 'user' and m.name is not distinct from asked.name
join memory.memories as x
    on x.agent_id = $1 and x.kind = 'exchange' and x.thread_id = m.session_id and x.position = m.position
where
    asked.agent_id = $1 and asked.session_id = $2 and asked.position = $3
    and x.trust in ('operator', 'user')
    and not m.is_notice
    and (
        (m.session_id = $2 and m.position < $4)
        or exists (
            select
            from dialogue.lineage as l
            where
                l.agent_id = $1
                and l.session_id = $2
                and l.ancestor_id = m.session_id
                and m.position between l.first_position and l.last_position
        )
    )
order by m.position desc
limit $5;

-- name: list_known(agent_id, session_id, position, patterns, max_rows)
-- Facts and other memories of the person of a message with any of these words, each with the messages that it was made
-- from. Those without a message are of the person who has no name.
select m.memory_id, coalesce(m.full_text, m.summary) as content, said.source_ids
from dialogue.messages as asked
join memory.memories as m on m.agent_id = $1
cross join lateral (
    select
        array_agg(x.memory_id order by x.memory_id) filter (where d.name is not distinct from asked.name) as source_ids,
        count(*) > 0 as has_message
    from memory.sources as s
    join memory.memories as x on x.agent_id = $1 and x.memory_id = s.source_id and x.kind = 'exchange'
    join dialogue.messages as d on d.agent_id = $1 and d.session_id = x.thread_id and d.position = x.position
    where s.agent_id = $1 and s.memory_id = m.memory_id and d.role = 'user'
) as said
where
    asked.agent_id = $1 and asked.session_id = $2 and asked.position = $3
    and m.kind in ('fact', 'decision', 'item', 'event')
    and m.trust in ('operator', 'user')
    and concat_ws(' ', m.full_text, m.summary) ilike any($4::text[])
    and (said.source_ids is not null or (not said.has_message and asked.name is null))
order by m.memory_id desc
limit $5;

-- name: read_messages(agent_id, memory_ids)
select
    x.memory_id, x.trust, x.origin, x.kind, m.session_id, m.position, m.ref, m.role, m.name, m.said_at,
    coalesce(m.content, x.full_text, x.summary) as content, substring(x.micro from '^\[([0-9-]{10})\] ') as said_on,
    s.ref as session
from memory.memories as x
left join dialogue.messages as m
    on x.kind = 'exchange' and m.agent_id = $1 and m.session_id = x.thread_id and m.position = x.position
left join dialogue.sessions as s on s.agent_id = $1 and s.session_id = m.session_id
where x.agent_id = $1 and x.memory_id = any($2::uuid[])
order by x.memory_id;
