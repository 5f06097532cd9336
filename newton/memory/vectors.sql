-- name: get_active_model(agent_id)
select o.identity
from memory.models as o
where o.model_id = (select model_id from memory.active_models where agent_id = $1);

-- name: insert_model(model_id, identity, dimensions)
insert into memory.models (model_id, identity, dimensions)
values ($1, $2, $3)
on conflict do nothing;

-- name: list_without_vector(agent_id, model_id, max_rows)
-- Memories with a vector of another model and none of this one, with the text to embed.
select
    c.memory_id,
    c.text,
    array(
        select left(m.summary, m.prefix_length) || trim(both ' …' from w.text)
        from memory.windows as w
        where w.agent_id = $1 and w.memory_id = c.memory_id
        order by w.position
    ) as windows
from memory.embedding_texts as c
join memory.memories as m on m.agent_id = $1 and m.memory_id = c.memory_id
where
    c.agent_id = $1
    and exists (
        select
        from memory.embeddings as v
        where v.agent_id = $1 and v.model_id <> $2 and v.kind = c.kind and v.memory_id = c.memory_id
    )
    and not exists (
        select
        from memory.embeddings as v
        where v.agent_id = $1 and v.model_id = $2 and v.kind = c.kind and v.memory_id = c.memory_id
    )
limit $3;

-- name: lock_memories(agent_id, memory_ids)
-- Waits for concurrent erasure of these memories, or makes it wait.
select memory_id
from memory.memories
where agent_id = $1 and memory_id = any($2::uuid[])
order by memory_id
for no key update;

-- name: insert_embeddings(agent_id, model_id, memory_ids, vectors, window_ids, window_positions, window_vectors)
-- Only for memories that still have another vector: a memory whose text was erased meanwhile has none.
with windows as (
    insert into memory.window_embeddings (agent_id, model_id, memory_id, position, embedding)
    select $1, $2, w.memory_id, w.position, g.embedding
    from unnest($5::uuid[], $6::integer[], $7::halfvec[]) as g (memory_id, position, embedding)
    join memory.windows as w on w.agent_id = $1 and w.memory_id = g.memory_id and w.position = g.position
    where exists (select from memory.embeddings as v where v.agent_id = $1 and v.memory_id = g.memory_id)
    on conflict do nothing
)
insert into memory.embeddings (agent_id, model_id, kind, memory_id, embedding)
select $1, $2, m.kind, m.memory_id, g.embedding
from unnest($3::uuid[], $4::halfvec[]) as g (memory_id, embedding)
join memory.memories as m on m.agent_id = $1 and m.memory_id = g.memory_id
where exists (select from memory.embeddings as v where v.agent_id = $1 and v.memory_id = m.memory_id)
on conflict do nothing;

-- name: lock_active_model(agent_id)
-- Blocks storing vectors of the old model until the transaction ends.
select model_id
from memory.active_models
where agent_id = $1
for update;

-- name: switch_active_model(agent_id, model_id, now)
insert into memory.active_models (agent_id, model_id, activated_at)
values ($1, $2, $3)
on conflict (agent_id) do update set model_id = excluded.model_id, activated_at = excluded.activated_at;

-- name: delete_inactive_embeddings(agent_id)
select memory.delete_inactive_embeddings($1);

-- name: list_waiting(agent_id, after, max_rows, attempts, excluded_kinds)
-- Each with the texts of its windows, in order.
select
    o.memory_id,
    o.text,
    m.kind in ('exchange', 'fact') and m.trust = 'user' as is_personal,
    array(
        select left(m.summary, m.prefix_length) || trim(both ' …' from w.text)
        from memory.windows as w
        where w.agent_id = $1 and w.memory_id = o.memory_id
        order by w.position
    ) as windows
from memory.outbox as o
join memory.memories as m on m.agent_id = $1 and m.memory_id = o.memory_id
where o.agent_id = $1 and o.memory_id > $2 and o.attempts < $4 and m.kind <> all($5::text[])
order by o.memory_id
limit $3;

-- name: hold_active_model(agent_id)
-- Another model can only become active after the transaction.
select model_id
from memory.active_models
where agent_id = $1
for share;

-- name: store_embeddings(agent_id, model_id, memory_ids, vectors, window_ids, window_positions, window_vectors, standing_ids, standings)
-- Only memories still in the outbox get a vector, so that text erased meanwhile leaves none. If another model is active
-- by now, the memory stays in the outbox.
with delivered as (
    delete from memory.outbox
    where
        agent_id = $1
        and memory_id = any($3::uuid[])
        and $2 in (select model_id from memory.active_models where agent_id = $1)
    returning memory_id
),
windows as (
    insert into memory.window_embeddings (agent_id, model_id, memory_id, position, embedding)
    select $1, $2, w.memory_id, w.position, v.embedding
    from unnest($5::uuid[], $6::integer[], $7::halfvec[]) as v (memory_id, position, embedding)
    join delivered as l on l.memory_id = v.memory_id
    join memory.windows as w on w.agent_id = $1 and w.memory_id = v.memory_id and w.position = v.position
    on conflict do nothing
),
marked as (
    insert into memory.standing_statements (agent_id, memory_id, standing)
    select $1, s.memory_id, s.standing
    from unnest($8::uuid[], $9::text[]) as s (memory_id, standing)
    join delivered as l on l.memory_id = s.memory_id
    on conflict do nothing
)
insert into memory.embeddings (agent_id, model_id, kind, memory_id, embedding)
select $1, $2, m.kind, m.memory_id, v.embedding
from delivered as l
join memory.memories as m on m.agent_id = $1 and m.memory_id = l.memory_id
join unnest($3::uuid[], $4::halfvec[]) as v (memory_id, embedding) on v.memory_id = l.memory_id
on conflict do nothing;

-- name: record_failure(agent_id, memory_id, error)
update memory.outbox
set attempts = attempts + 1, error = $3
where agent_id = $1 and memory_id = $2;

-- name: count_backlog(agent_id, attempts)
select
    count(*) filter (where attempts < $2) as waiting,
    count(*) filter (where attempts >= $2) as given_up,
    max(error) as error
from memory.outbox
where agent_id = $1;

-- name: register_model(model_id, identity, dimensions)
insert into memory.models (model_id, identity, dimensions)
values ($1, $2, $3)
on conflict do nothing;

-- name: set_first_model(agent_id, model_id)
-- The first model to embed something becomes the active one.
insert into memory.active_models (agent_id, model_id, activated_at)
values ($1, $2, now())
on conflict do nothing;

-- name: count_without_vector(agent_id, model_id)
-- Number of memories with a vector of another model and none of this one.
select count(distinct v.memory_id)::integer as memories
from memory.embeddings as v
where
    v.agent_id = $1
    and v.model_id <> $2
    and not exists (
        select
        from memory.embeddings as own
        where own.agent_id = $1 and own.model_id = $2 and own.kind = v.kind and own.memory_id = v.memory_id
    );
