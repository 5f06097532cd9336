-- name: search_vectors(agent_id, model_id, embedding, kinds, limits)
-- Baseline for benchmarks: the nearest of each kind without any details, the minimum cost of an exact vector search.
select hit.memory_id
from unnest($4::text[], $5::integer[]) as wanted (kind, max_rows)
cross join lateral (
    select e.memory_id
    from memory.embeddings as e
    where e.agent_id = $1 and e.model_id = $2 and e.kind = wanted.kind
    order by e.embedding <#> $3
    limit wanted.max_rows
) as hit;

-- name: search_bm25(agent_id, input, kinds, limits, k1, b)
-- Baseline for benchmarks: the best of each kind by exact BM25, with scores only.
with corpus as materialized (
    select count(*)::float8 as texts, greatest(avg(word_count), 1)::float8 as mean
    from memory.memories
    where agent_id = $1 and word_count > 0 and kind <> 'artifact'
),
hit as materialized (
    select p.lexeme, p.memory_id, p.kind, p.tf, p.word_count
    from memory.postings as p
    where
        p.agent_id = $1
        and p.lexeme = any(tsvector_to_array(to_tsvector('english', left($2, 20000))))
        and p.kind <> 'artifact'
),
weight as materialized (
    select h.lexeme, ln(1 + (c.texts - count(*) + 0.5) / (count(*) + 0.5)) as idf
    from hit as h
    cross join corpus as c
    group by h.lexeme, c.texts
),
scored as materialized (
    select
        h.memory_id,
        h.kind,
        sum(
            w.idf * h.tf * ($5::float8 + 1)
            / (h.tf + $5::float8 * (1 - $6::float8 + $6::float8 * h.word_count / c.mean))
        ) as score
    from hit as h
    join weight as w on w.lexeme = h.lexeme
    cross join corpus as c
    group by h.memory_id, h.kind
)
select best.memory_id, best.score
from unnest($3::text[], $4::integer[]) as wanted (kind, max_rows)
cross join lateral (
    select memory_id, score
    from scored
    where scored.kind = wanted.kind
    order by score desc
    limit wanted.max_rows
) as best;
