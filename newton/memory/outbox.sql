-- name: waiting(agent_id, after, most, attempts)
select memory_id, parts
from memory.outbox
where agent_id = $1 and memory_id > $2 and attempts < $4
order by memory_id
limit $3;

-- name: deliver(agent_id, model_id, memory_ids, parts, vectors)
with landed as (
    select v.memory_id, v.part, v.embedding, m.kind
    from unnest($3::uuid[], $4::smallint[], $5::halfvec[]) as v (memory_id, part, embedding)
    join memory.memories as m on m.agent_id = $1 and m.memory_id = v.memory_id
),
stored as (
    insert into memory.embeddings (agent_id, model_id, kind, memory_id, part, embedding)
    select $1, $2, kind, memory_id, part, embedding
    from landed
    on conflict do nothing
)
delete from memory.outbox
where agent_id = $1 and memory_id = any($3::uuid[]);

-- name: fail(agent_id, memory_ids, error)
update memory.outbox
set attempts = attempts + 1, error = $3
where agent_id = $1 and memory_id = any($2::uuid[]);

-- name: backlog(agent_id, attempts)
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
