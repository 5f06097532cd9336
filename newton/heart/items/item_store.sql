-- name: lock_item(agent_id, address)
-- Serializes concurrent writes of the same item.
select pg_advisory_xact_lock(hashtextextended($1::uuid::text || $2::text, 12))
from (select count(*) from runtime.agents where agent_id = $1) as node;

-- name: get_item(agent_id, namespace, key)
select item_id, namespace, key, value, memory_id, created_at, updated_at
from heart.items
where agent_id = $1 and namespace = $2::text[] and key = $3;

-- name: get_current_text(agent_id, memory_id)
select full_text, quarantined, trust
from memory.memories
where agent_id = $1 and memory_id = $2;

-- name: upsert_item(agent_id, item_id, namespace, key, value, memory_id, now)
insert into heart.items (agent_id, item_id, namespace, key, value, memory_id, created_at, updated_at)
values ($1, $2, $3::text[], $4, $5::jsonb, $6, $7, $7)
on conflict (agent_id, namespace, key) do update
set value = excluded.value, memory_id = excluded.memory_id, updated_at = excluded.updated_at;

-- name: delete_item(agent_id, item_id)
delete from heart.items
where agent_id = $1 and item_id = $2;

-- name: list_texts(agent_id, item_id)
-- The memories of an item, past ones included.
select memory_id, position
from memory.memories
where agent_id = $1 and kind = 'item' and thread_id = $2
order by position;

-- name: search_vectors(agent_id, prefix, conditions, model_id, embedding, limit, offset)
-- By cosine similarity; items without a vector come last and have no score, without an embedding all of them.
select
    i.item_id, i.namespace, i.key, i.value, i.memory_id, i.created_at, i.updated_at,
    -(e.embedding <#> $5) as score
from heart.items as i
left join memory.embeddings as e
    on e.agent_id = $1 and e.model_id = $4 and e.kind = 'item' and e.memory_id = i.memory_id
where
    i.agent_id = $1
    and i.namespace >= $2::text[]
    and i.namespace[:cardinality($2)] = $2
    and heart.meets_conditions(i.value, $3::jsonb)
order by score desc nulls last, i.updated_at desc, i.item_id desc
limit $6 offset $7;

-- name: search_words(agent_id, prefix, conditions, input, limit, offset)
-- By the share of the words of the input that the text has, without a vector.
with words as materialized (
    select lexeme
    from unnest(tsvector_to_array(memory.search_words($4))) as w (lexeme)
)
select
    i.item_id, i.namespace, i.key, i.value, i.memory_id, i.created_at, i.updated_at,
    case when i.memory_id is not null then h.hits::float8 / greatest((select count(*) from words), 1) end as score
from heart.items as i
cross join lateral (
    select count(*) as hits
    from words as w
    join memory.postings as p on p.agent_id = $1 and p.lexeme = w.lexeme and p.memory_id = i.memory_id
) as h
where
    i.agent_id = $1
    and i.namespace >= $2::text[]
    and i.namespace[:cardinality($2)] = $2
    and heart.meets_conditions(i.value, $3::jsonb)
order by score desc nulls last, i.updated_at desc, i.item_id desc
limit $5 offset $6;

-- name: list_namespaces(agent_id, prefix, suffix, max_depth, limit, offset)
-- The namespaces that match both patterns, cut to a depth. The part * of a pattern matches any part.
select distinct namespace[:coalesce($4::integer, cardinality(namespace))] as namespace
from heart.items
where
    agent_id = $1
    and cardinality(namespace) >= greatest(cardinality($2::text[]), cardinality($3::text[]))
    and not exists (
        select
        from unnest($2) with ordinality as p (part, n)
        where p.part <> '*' and p.part <> namespace[p.n]
    )
    and not exists (
        select
        from unnest($3) with ordinality as s (part, n)
        where s.part <> '*' and s.part <> namespace[cardinality(namespace) - cardinality($3) + s.n]
    )
order by namespace
limit $5 offset $6;
