-- name: find_standing(agent_id, model_id, embedding, moment, kinds, excluded_ids, max_pool, max_rows)
-- The latest manners, and of the other latest statements the most similar to the input; without a vector, the latest.
with pool as materialized (
    select memory_id, standing
    from memory.standing_statements
    where agent_id = $1 and memory_id <> all($6::uuid[])
    order by memory_id desc
    limit $7
),
ranked as (
    select
        p.memory_id,
        p.standing,
        coalesce(e.similarity, 0) as similarity,
        row_number() over (
            partition by p.standing = 'manner'
            order by case when p.standing <> 'manner' then coalesce(e.similarity, 0) end desc, p.memory_id desc
        ) as place
    from pool as p
    cross join lateral (
        select kind
        from memory.memories
        where
            agent_id = $1
            and memory_id = p.memory_id
            and kind = any($5::text[])
            -- a message that laid down a rule of the user says no more than the rules in force
            and not exists (
                select
                from heart.tenets as t
                where
                    t.agent_id = $1
                    and t.session_id = memories.thread_id
                    and t.position = memories.position
            )
            and not quarantined
            and not memory.is_obsolete(kind, state)
            and ($4::timestamptz is null or created_at <= $4)
        limit 1
    ) as m
    left join lateral (
        select -(embedding <#> $3) as similarity
        from memory.embeddings
        where agent_id = $1 and model_id = $2 and kind = m.kind and memory_id = p.memory_id
        limit 1
    ) as e on true
)
select memory_id, standing, similarity
from ranked
where place <= $8
order by standing <> 'manner', place;
