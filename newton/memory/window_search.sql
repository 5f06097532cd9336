-- name: find_best_windows(agent_id, model_id, embedding, input, memory_ids, word_weight)
-- Of each long text the window with the highest sum of cosine similarity and share of the input's words.
with query as materialized (
    select tsvector_to_array(to_tsvector('english', left($4, 20000))) as lexemes
)
select distinct on (s.memory_id) s.memory_id, s.position, s.text, s.tokens, s.similarity
from (
    select
        w.memory_id,
        w.position,
        w.text,
        w.tokens,
        coalesce(-(e.embedding <#> $3), 0) as similarity,
        cardinality(array(select unnest(w.lexemes) intersect select unnest(q.lexemes)))::float8
        / greatest(cardinality(q.lexemes), 1) as word_share
    from query as q
    cross join memory.windows as w
    left join memory.window_embeddings as e
        on e.agent_id = $1 and e.model_id = $2 and e.memory_id = w.memory_id and e.position = w.position
    where w.agent_id = $1 and w.memory_id = any($5::uuid[])
) as s
order by s.memory_id, s.similarity + $6::float8 * s.word_share desc, s.position;
