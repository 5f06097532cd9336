-- name: by_meaning(agent_id, model_id, embedding, kinds, limits)
-- The nearest of each kind, with what their relevance depends on. The scan is exact and reads the agent's vectors once,
-- from the covering index.
select hit.memory_id, wanted.kind, m.words, m.thread, m.place, -hit.distance as similarity
from unnest($4::text[], $5::integer[]) as wanted (kind, most)
cross join lateral (
    select e.memory_id, e.embedding <#> $3 as distance
    from memory.embeddings as e
    where e.agent_id = $1 and e.model_id = $2 and e.kind = wanted.kind
    order by e.embedding <#> $3
    limit wanted.most
) as hit
-- one look-up each: the planner expects more and would read the agent's whole table for a join
cross join lateral (
    select words, thread, place
    from memory.memories
    where agent_id = $1 and memory_id = hit.memory_id
    limit 1
) as m;

-- name: by_words(agent_id, input, kinds, limits, k1, b)
-- Exact BM25 over the postings of the input's words. `share` is the score's part of the best that any text could have.
with corpus as materialized (
    select count(*)::float8 as texts, greatest(avg(words), 1)::float8 as mean
    from memory.memories
    where agent_id = $1 and words > 0
),
hit as materialized (
    select p.lexeme, p.memory_id, p.kind, p.tf, p.words
    from memory.postings as p
    where p.agent_id = $1 and p.lexeme = any(tsvector_to_array(to_tsvector('english', left($2, 20000))))
),
weight as materialized (
    select h.lexeme, ln(1 + (c.texts - count(*) + 0.5) / (count(*) + 0.5)) as idf
    from hit as h
    cross join corpus as c
    group by h.lexeme, c.texts
),
best as (
    select sum(idf) * ($5::float8 + 1) as score
    from weight
),
scored as (
    select
        h.memory_id,
        h.kind,
        sum(
            w.idf * h.tf * ($5::float8 + 1)
            / (h.tf + $5::float8 * (1 - $6::float8 + $6::float8 * h.words / c.mean))
        ) as score
    from hit as h
    join weight as w on w.lexeme = h.lexeme
    cross join corpus as c
    group by h.memory_id, h.kind
),
ranked as (
    select memory_id, kind, score, row_number() over (partition by kind order by score desc, memory_id) as place
    from scored
)
select r.memory_id, r.kind, m.words, m.thread, m.place, r.score / b.score as share
from ranked as r
join unnest($3::text[], $4::integer[]) as wanted (kind, most) on wanted.kind = r.kind and r.place <= wanted.most
cross join best as b
cross join lateral (
    select words, thread, place
    from memory.memories
    where agent_id = $1 and memory_id = r.memory_id
    limit 1
) as m;

-- name: similarities(agent_id, model_id, embedding, kinds, memory_ids)
-- How near those are that only their words found.
select e.memory_id, -(e.embedding <#> $3) as similarity
from memory.embeddings as e
where e.agent_id = $1 and e.model_id = $2 and e.kind = any($4::text[]) and e.memory_id = any($5::uuid[]);

-- name: details(agent_id, memory_ids)
select
    memory_id, kind, state, micro, summary, micro_tokens, summary_tokens, words, confidence, importance, outcome, uses,
    occurred_at, created_at, accessed_at, confirmed_at, trust, quarantined, ref, thread,
    place
from memory.memories
where agent_id = $1 and memory_id = any($2::uuid[]);

-- name: before(agent_id, thread, place, most)
select
    memory_id, kind, state, micro, summary, micro_tokens, summary_tokens, words, confidence, importance, outcome, uses,
    occurred_at, created_at, accessed_at, confirmed_at, trust, quarantined, ref, thread,
    place
from memory.memories
where agent_id = $1 and kind = 'exchange' and thread = $2 and place < $3
order by place desc
limit $4;
