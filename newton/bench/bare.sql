-- name: dense(agent_id, model_id, embedding, kinds, limits)
-- The nearest of each kind and nothing else of them: what an exact search by meaning costs at the least.
select hit.memory_id
from unnest($4::text[], $5::integer[]) as wanted (kind, most)
cross join lateral (
    select e.memory_id
    from memory.embeddings as e
    where e.agent_id = $1 and e.model_id = $2 and e.kind = wanted.kind
    order by e.embedding <#> $3
    limit wanted.most
) as hit;
