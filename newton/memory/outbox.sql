-- name: waiting(agent_id, after, most, attempts)
select memory_id, text
from memory.outbox
where agent_id = $1 and memory_id > $2 and attempts < $4
order by memory_id
limit $3;

-- name: deliver(agent_id, model_id, memory_ids, vectors)
with landed as (
    select v.memory_id, v.embedding, m.kind
    from unnest($3::uuid[], $4::halfvec[]) as v (memory_id, embedding)
    join memory.memories as m on m.agent_id = $1 and m.memory_id = v.memory_id
),
stored as (
    insert into memory.embeddings (agent_id, model_id, kind, memory_id, embedding)
    select $1, $2, kind, memory_id, embedding
    from landed
    on conflict do nothing
)
delete from memory.outbox
where agent_id = $1 and memory_id = any($3::uuid[]);

-- name: fail(agent_id, memory_id, error)
update memory.outbox
set attempts = attempts + 1, error = $3
where agent_id = $1 and memory_id = $2;

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
