-- name: next_place(agent_id, session_id)
select coalesce(max(place) + 1, 0)::integer as place
from memory.memories
where agent_id = $1 and kind = 'artifact' and thread = $2;

-- name: insert_artifacts(agent_id, session_id, artifacts, now)
insert into dialogue.artifacts (
    agent_id, memory_id, session_id, type, chunk_index, first_position, last_position, source, made_at
)
select $1, d.memory_id, $2, d.type, d.chunk_index, d.first_position, d.last_position, d.source, $4
from jsonb_to_recordset($3::jsonb) as d (
    memory_id uuid, type text, chunk_index integer, first_position integer, last_position integer, source text
);

-- name: current_summary(agent_id, session_id)
select m.memory_id, m.full_text, m.trust, a.first_position, a.last_position
from dialogue.artifacts as a
join memory.memories as m on m.agent_id = $1 and m.memory_id = a.memory_id
where a.agent_id = $1 and a.session_id = $2 and a.type = 'summary' and m.state = 'ACTIVE'
order by a.last_position desc
limit 1;

-- name: facts_until(agent_id, session_id)
select coalesce(max(last_position), -1) as position
from dialogue.noted
where agent_id = $1 and session_id = $2;

-- name: facts_read(agent_id, session_id, position)
insert into dialogue.noted (agent_id, session_id, last_position)
values ($1, $2, $3)
on conflict (agent_id, session_id) do update
set last_position = greatest(noted.last_position, excluded.last_position);

-- name: lines_after(agent_id, session_id, position, most)
-- The last so many lines behind a position, with the memory each became. Nobody reads more of a line.
select m.position, m.role, m.name, left(m.content, 20000) as content, m.tokens, m.said_at, x.memory_id, x.trust
from dialogue.messages as m
left join memory.memories as x
    on x.agent_id = $1 and x.kind = 'exchange' and x.thread = m.session_id and x.place = m.position
where m.agent_id = $1 and m.session_id = $2 and m.position > $3
order by m.position desc
limit $4;

-- name: candidates(agent_id, session_id, model_id, embedding, input, moment, hidden, most)
-- The artifacts of one session nearest to an input: by meaning, and by the share of its words where there is no vector.
-- At a moment that is over, what was there then and in the state of then.
with asked as (
    select tsvector_to_array(to_tsvector('english', left($5, 20000))) as lexemes
),
known as materialized (
    select a.memory_id, a.first_position, a.last_position, coalesce(-(e.embedding <#> $4), 0) as similarity
    from dialogue.artifacts as a
    -- one look-up each: without statistics the planner would compare every row with every other
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
        where t.agent_id = $1 and t.memory_id = a.memory_id and t.at > $6::timestamptz
        order by t.at, t.transition_id
        limit 1
    ) as moved on true
    where
        a.agent_id = $1
        and a.session_id = $2
        and coalesce(moved.from_state, m.state) = 'ACTIVE'
        and ($6::timestamptz is null or m.created_at <= $6)
        and a.memory_id <> all($7::uuid[])
),
-- words are looked up for few: of what has a vector, no other can be among the closest
close as (
    (select * from known where similarity <> 0 order by similarity desc, memory_id limit $8)
    union all
    select * from known where similarity = 0
),
worded as (
    select
        c.memory_id, c.first_position, c.last_position, c.similarity,
        coalesce(p.met / nullif(cardinality(q.lexemes), 0)::float8, 0) as lexical
    from close as c
    cross join asked as q
    left join lateral (
        select count(*) as met
        from memory.postings
        where agent_id = $1 and lexeme = any(q.lexemes) and memory_id = c.memory_id
    ) as p on true
)
select memory_id, first_position, last_position, similarity::float4 as similarity, lexical::float4 as lexical
from worded
order by case when similarity <> 0 then similarity else lexical end desc, memory_id
limit $8;
