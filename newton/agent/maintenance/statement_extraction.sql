-- name: find_nearest_facts(agent_id, model_id, vectors, max_rows)
-- The current facts nearest to each vector, by the position of the vector from 1.
select v.position, k.text, k.embedding as vector
from unnest($3::halfvec[]) with ordinality as v (embedding, position)
cross join lateral (
    select m.full_text as text, e.embedding
    from memory.embeddings as e
    join heart.facts as f on f.agent_id = $1 and f.memory_id = e.memory_id
    join memory.memories as m on m.agent_id = $1 and m.memory_id = e.memory_id
    where
        e.agent_id = $1 and e.model_id = $2 and e.kind = 'fact'
        and f.is_current
        and m.state <> 'INACTIVE'
        and not m.quarantined
    order by e.embedding <#> v.embedding
    limit $4
) as k
order by v.position;
