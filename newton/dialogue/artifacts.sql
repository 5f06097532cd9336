-- name: next_position(agent_id, session_id)
select coalesce(max(position) + 1, 0)::integer as position
from memory.memories
where agent_id = $1 and kind = 'artifact' and thread_id = $2;

-- name: insert_artifacts(agent_id, session_id, artifacts, now)
insert into dialogue.artifacts (
    agent_id, memory_id, session_id, type, chunk_index, first_position, last_position, source, created_at
)
select $1, d.memory_id, $2, d.type, d.chunk_index, d.first_position, d.last_position, d.source, $4
from jsonb_to_recordset($3::jsonb) as d (
    memory_id uuid, type text, chunk_index integer, first_position integer, last_position integer, source text
)
returning agent_id;

-- name: read_progress(agent_id, session_id)
-- The last message that was read for facts, and the newest summary; in a branch it may be one of an ancestor. The
-- messages that a branch begins with are read in their own session.
with owner as (
    select ancestor_id as session_id, last_position
    from dialogue.lineage
    where agent_id = $1 and session_id = $2
    union all
    select $2::uuid, null
)
select
    coalesce(greatest(n.last_position, s.parent_position), -1) as watermark,
    u.memory_id, u.full_text, u.trust, u.first_position, u.last_position, u.own
from dialogue.sessions as s
left join dialogue.fact_watermarks as n on n.agent_id = $1 and n.session_id = $2
left join lateral (
    select m.memory_id, m.full_text, m.trust, a.first_position, a.last_position, a.session_id = $2 as own
    from owner as o
    join dialogue.artifacts as a
        on a.agent_id = $1
        and a.session_id = o.session_id
        and a.type = 'summary'
        and (o.last_position is null or a.last_position <= o.last_position)
    join memory.memories as m on m.agent_id = $1 and m.memory_id = a.memory_id and m.state = 'ACTIVE'
    order by a.last_position desc, own desc
    limit 1
) as u on true
where s.agent_id = $1 and s.session_id = $2;

-- name: set_fact_watermark(agent_id, session_id, position)
insert into dialogue.fact_watermarks (agent_id, session_id, last_position)
values ($1, $2, $3)
on conflict (agent_id, session_id) do update
set last_position = greatest(fact_watermarks.last_position, excluded.last_position);

-- name: list_messages_after(agent_id, session_id, position, max_rows)
-- The last messages of a conversation after a position, each with its memory. Long content is truncated.
with owner as (
    select ancestor_id as session_id, first_position, last_position
    from dialogue.lineage
    where agent_id = $1 and session_id = $2
    union all
    select $2::uuid, 0, 2147483647
)
select m.position, m.role, m.name, left(m.content, 20000) as content, m.tokens, m.said_at, x.memory_id, x.trust
from owner as o
join dialogue.messages as m
    on m.agent_id = $1
    and m.session_id = o.session_id
    and m.position between greatest(o.first_position, $3::integer + 1) and o.last_position
left join memory.memories as x
    on x.agent_id = $1 and x.kind = 'exchange' and x.thread_id = m.session_id and x.position = m.position
order by m.position desc
limit $4;

-- name: find_stale_sessions(agent_id, lines, tokens, max_rows)
-- Sessions with more than so many messages or tokens since their last summary, or since the branch point; latest
-- sessions first.
select s.session_id
from dialogue.sessions as s
cross join lateral (
    select greatest(
        coalesce(s.parent_position, -1),
        (
            select max(a.last_position)
            from dialogue.artifacts as a
            where a.agent_id = $1 and a.session_id = s.session_id and a.type = 'summary'
        )
    ) as position
) as covered
cross join lateral (
    select count(*) as lines, sum(m.tokens) as tokens
    from (
        select tokens
        from dialogue.messages
        where agent_id = $1 and session_id = s.session_id and position > covered.position
        order by position
        limit $2
    ) as m
) as since
where
    s.agent_id = $1
    and (since.lines >= $2 or since.tokens > $3)
    and exists (
        select
        from dialogue.messages as m
        join memory.memories as x
            on x.agent_id = $1 and x.kind = 'exchange' and x.thread_id = m.session_id and x.position = m.position
        where m.agent_id = $1 and m.session_id = s.session_id and m.position > covered.position and m.role <> 'tool'
    )
order by s.created_at desc, s.session_id
limit $4;

-- name: search_artifacts(agent_id, session_id, model_id, vector, text, moment, excluded, limit)
-- Hybrid search over the artifacts of a conversation: the nearest by vector and by words, rare words weighing more. A
-- branch includes the artifacts of its ancestors. With a moment, the artifacts and states of that moment.
with query_words as (
    select distinct unnest(tsvector_to_array(to_tsvector('english', left($5, 20000)))) as lexeme
),
owner as (
    select ancestor_id as session_id, last_position
    from dialogue.lineage
    where agent_id = $1 and session_id = $2
    union all
    select $2::uuid, null
),
known as materialized (
    select a.memory_id, a.first_position, a.last_position, coalesce(-(e.embedding <#> $4), 0) as similarity
    from owner as o
    join dialogue.artifacts as a
        on a.agent_id = $1
        and a.session_id = o.session_id
        and (o.last_position is null or a.last_position <= o.last_position)
    -- one index lookup each: without statistics the planner would choose a nested loop over all rows
    cross join lateral (
        select state, created_at
        from memory.memories
        where agent_id = $1 and memory_id = a.memory_id
        limit 1
    ) as m
    left join lateral (
        select embedding
        from memory.embeddings
        where agent_id = $1 and model_id = $3 and kind = 'artifact' and memory_id = a.memory_id
        limit 1
    ) as e on true
    left join lateral (
        select t.from_state
        from memory.transitions as t
        where t.agent_id = $1 and t.memory_id = a.memory_id and t.changed_at > $6::timestamptz
        order by t.changed_at, t.transition_id
        limit 1
    ) as moved on true
    where
        coalesce(moved.from_state, m.state) = 'ACTIVE'
        and ($6::timestamptz is null or m.created_at <= $6)
        and a.memory_id <> all($7::uuid[])
),
matches as materialized (
    select p.lexeme, p.memory_id
    from query_words as q
    join memory.postings as p on p.agent_id = $1 and p.lexeme = q.lexeme and p.kind = 'artifact'
),
-- a word that no artifact contains counts half as much as one that a single artifact contains
weight as materialized (
    select
        q.lexeme,
        ln(1 + n.number / (count(m.memory_id) + 0.5)) / case when count(m.memory_id) = 0 then 2 else 1 end as rarity
    from query_words as q
    cross join (select count(*) as number from known) as n
    left join matches as m on m.lexeme = q.lexeme
    group by q.lexeme, n.number
),
-- aggregated in one pass, because a join of the two could become a nested loop
joined as (
    select memory_id, first_position, last_position, similarity, 0::float8 as rarity
    from known
    union all
    select m.memory_id, null, null, null, w.rarity::float8
    from matches as m
    join weight as w on w.lexeme = m.lexeme
),
scored as (
    select
        memory_id,
        max(first_position) as first_position,
        max(last_position) as last_position,
        max(similarity) as similarity,
        sum(rarity) / nullif((select sum(rarity) from weight), 0) as lexical
    from joined
    group by memory_id
    having max(similarity) is not null
),
ranked as (
    select
        *,
        row_number() over (order by similarity desc, memory_id) as by_meaning,
        row_number() over (order by lexical desc, memory_id) as by_words
    from scored
)
select
    memory_id,
    first_position,
    last_position,
    similarity::float4 as similarity,
    coalesce(lexical, 0)::float4 as lexical
from ranked
where by_meaning <= $8 or (by_words <= $8 and lexical > 0)
order by memory_id;
