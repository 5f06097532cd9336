-- name: insert_events(agent_id, events)
insert into heart.events (agent_id, memory_id, session_id, type, payload, position)
select $1, d.memory_id, d.session_id, d.type, d.payload, d.position
from jsonb_to_recordset($2::jsonb) as d (
    memory_id uuid, session_id uuid, type text, payload jsonb, position integer
)
returning agent_id;

-- name: list_recent_events(agent_id, session_id, moment, excluded_ids, max_rows, max_sessions, max_per_session, types, preferred_sessions)
-- The latest events of a session, preferred types first, and highlights of the latest other sessions, preferred ones
-- first: the last episode of each and its most informative events.
with quarantined_events as materialized (
    select memory_id
    from memory.memories
    where agent_id = $1 and kind = 'event' and quarantined
),
candidates as (
    select session_id, created_at, true as is_preferred
    from dialogue.sessions
    where agent_id = $1 and session_id = any($9::uuid[]) and session_id <> $2 and created_at <= $3
    union all
    (
        select session_id, created_at, false as is_preferred
        from dialogue.sessions
        where agent_id = $1 and session_id <> all($9::uuid[]) and session_id <> $2 and created_at <= $3
        order by created_at desc, session_id desc
        limit $6
    )
),
others as materialized (
    select session_id, row_number() over (order by is_preferred desc, created_at desc, session_id desc) as nth
    from candidates
    order by nth
    limit $6
),
own as materialized (
    select last.memory_id
    from (
        select memory_id, type
        from heart.events
        where
            agent_id = $1
            and session_id = $2
            and memory_id <> all($4::uuid[])
            and memory_id not in (select memory_id from quarantined_events)
        order by memory_id desc
        limit greatest($5, 50)
    ) as last
    order by last.type = any($8::text[]) desc, last.memory_id desc
    limit $5
)
select memory_id, 0 as nth
from own
union all
select h.memory_id, o.nth::integer
from others as o
cross join lateral (
    (
        select e.memory_id
        from heart.episodes as e
        where e.agent_id = $1 and e.session_id = o.session_id and e.memory_id <> all($4::uuid[])
        order by e.last_position desc
        limit 1
    )
    union all
    (
        select last.memory_id
        from (
            select memory_id, type
            from heart.events
            where
                agent_id = $1
                and session_id = o.session_id
                and memory_id <> all($4::uuid[])
                and memory_id not in (select memory_id from quarantined_events)
            order by memory_id desc
            limit 50
        ) as last
        order by
            array_position($8::text[] || array['error', 'file_write', 'shell_exec'], last.type),
            last.memory_id desc
        limit $7
    )
) as h;

-- name: search_observations(agent_id, session_id, model_id, embedding, input, moment, excluded_ids, max_own, max_found, time_ranges)
-- Events, quarantined or not: the last ones of a session and of the sessions that it branched from; those of all sessions
-- that are nearest by vector, by words, rare words weighing more, and by time; and what was done after those that failed
-- in other sessions. The rarity is that among at least 1,000 texts: in a small memory every word is frequent.
with lineage as (
    select l.ancestor_id as session_id, s.created_at as until
    from dialogue.lineage as l
    join dialogue.sessions as s on s.agent_id = $1 and s.session_id = $2
    where l.agent_id = $1 and l.session_id = $2
    union all
    select $2::uuid, 'infinity'::timestamptz
    where $2::uuid is not null
),
own as materialized (
    select last.memory_id, row_number() over (order by last.memory_id desc) - 1 as age
    from (
        select e.memory_id
        from lineage as l
        join heart.events as e on e.agent_id = $1 and e.session_id = l.session_id
        join memory.memories as m on m.agent_id = $1 and m.memory_id = e.memory_id
        where
            m.state = 'ACTIVE' and m.created_at <= least($6::timestamptz, l.until)
            and e.memory_id <> all($7::uuid[])
        order by e.memory_id desc
        limit $8
    ) as last
),
query_words as materialized (
    select w.lexeme, n.texts, ln(1 + (greatest(c.texts, 1000) - n.texts + 0.5) / (n.texts + 0.5)) as rarity
    from unnest(tsvector_to_array(memory.search_words($5))) as w (lexeme)
    cross join (select count(*)::float8 as texts from heart.events where agent_id = $1) as c
    cross join lateral (
        select count(*)::float8 as texts
        from memory.postings as p
        where p.agent_id = $1 and p.lexeme = w.lexeme and p.kind = 'event'
    ) as n
),
worded as materialized (
    select p.memory_id, sum(q.rarity) / nullif((select sum(rarity) from query_words), 0) as lexical
    from query_words as q
    join memory.postings as p on p.agent_id = $1 and p.lexeme = q.lexeme and p.kind = 'event'
    group by p.memory_id
),
near as materialized (
    select e.memory_id, -(e.embedding <#> $4) as similarity
    from memory.embeddings as e
    where e.agent_id = $1 and e.model_id = $3 and e.kind = 'event' and $4 is not null
    order by e.embedding <#> $4
    limit 2 * $9
),
found as materialized (
    select o.memory_id
    from own as o
    union
    select n.memory_id
    from near as n
    union
    (
        select w.memory_id
        from worded as w
        order by w.lexical desc, w.memory_id
        limit 2 * $9
    )
    union
    (
        select m.memory_id
        from jsonb_to_recordset($10::jsonb) as r (starts_at timestamptz, ends_at timestamptz)
        -- lateral, because for a join the planner would read all events first, also without a range
        cross join lateral (
            select memory_id
            from memory.memories
            where
                agent_id = $1
                and kind = 'event'
                and occurred_at >= coalesce(r.starts_at, '-infinity')
                and occurred_at < coalesce(r.ends_at, 'infinity')
            order by occurred_at desc, memory_id desc
            limit $9
        ) as m
    )
),
known as materialized (
    select
        e.memory_id, e.type, e.session_id, e.position, o.age, m.outcome,
        coalesce(n.similarity, -(v.embedding <#> $4), 0) as similarity,
        coalesce(w.lexical, 0) as lexical
    from found as f
    join heart.events as e on e.agent_id = $1 and e.memory_id = f.memory_id
    cross join lateral (
        select outcome, state, created_at
        from memory.memories
        where agent_id = $1 and memory_id = f.memory_id
        limit 1
    ) as m
    left join own as o on o.memory_id = f.memory_id
    left join near as n on n.memory_id = f.memory_id
    left join worded as w on w.memory_id = f.memory_id
    left join lateral (
        select embedding
        from memory.embeddings
        where agent_id = $1 and model_id = $3 and kind = 'event' and memory_id = f.memory_id
        limit 1
    ) as v on true
    where m.state = 'ACTIVE' and m.created_at <= $6 and f.memory_id <> all($7::uuid[])
),
failed as (
    select memory_id, session_id
    from known
    where age is null and outcome = 'failure' and session_id is not null
    order by similarity + lexical desc, memory_id
    limit 3
)
select
    memory_id, type, session_id, position, age::integer as age, null::uuid as cause_id,
    similarity::float4 as similarity, lexical::float4 as lexical
from known
union all
select
    next.memory_id, next.type, next.session_id, next.position, null::integer, f.memory_id, 0::float4, 0::float4
from failed as f
cross join lateral (
    select e.memory_id, e.type, e.session_id, e.position
    from heart.events as e
    cross join lateral (
        select state, created_at
        from memory.memories
        where agent_id = $1 and memory_id = e.memory_id
        limit 1
    ) as m
    where
        e.agent_id = $1 and e.session_id = f.session_id and e.memory_id > f.memory_id
        and m.state = 'ACTIVE' and m.created_at <= $6 and e.memory_id <> all($7::uuid[])
    order by e.memory_id
    limit 4
) as next;
