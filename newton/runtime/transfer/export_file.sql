-- name: list_tables()
-- The agent tables in foreign key order.
select part::text as part
from runtime.agent_tables() as part;

-- name: count_rows(agent_id, table_name)
select runtime.count_rows($1, $2::text::regclass) as rows;

-- name: count_indexed(agent_id)
select count(distinct memory_id) as rows
from memory.postings
where agent_id = $1;

-- name: export_rows(agent_id, table_name)
select runtime.export_rows($1, $2::text::regclass) as line;

-- name: export_postings(agent_id)
-- The postings of each memory, which cannot be recomputed if the original text is gone.
select jsonb_build_object('memory_id', memory_id, 'lexemes', jsonb_object_agg(lexeme, tf))::text as line
from memory.postings
where agent_id = $1
group by memory_id
order by memory_id;

-- name: export_embeddings(agent_id)
-- Embeddings are exported, because the embedded text may be gone and a model may cost money.
select model_id, memory_id, embedding
from memory.embeddings
where agent_id = $1
order by model_id, kind, memory_id;

-- name: export_window_embeddings(agent_id)
select model_id, memory_id, position, embedding
from memory.window_embeddings
where agent_id = $1
order by model_id, memory_id, position;

-- name: list_models()
select model_id, identity, dimensions
from memory.models;

-- name: has_data(agent_id)
-- Whether the agent has any data beyond the procedures found on disk.
select exists (select from dialogue.sessions where agent_id = $1)
    or exists (select from memory.memories where agent_id = $1 and origin <> 'skills')
    or exists (select from heart.activations where agent_id = $1)
    or exists (select from heart.tenets where agent_id = $1)
    or exists (select from memory.forgotten where agent_id = $1)
    or exists (select from brain.guardrails where agent_id = $1)
    or exists (select from runtime.usage where agent_id = $1) as begun;

-- name: erase_agent(agent_id)
select runtime.erase_agent($1);

-- name: defer_constraints()
set constraints all deferred;

-- name: import_rows(agent_id, table_name, rows, max_trust, higher_trusts)
call runtime.import_rows($1, $2::text::regclass, $3::jsonb, $4::text, $5::text[]);

-- name: import_postings(agent_id, rows)
insert into memory.postings (agent_id, lexeme, memory_id, kind, tf, word_count)
select $1, l.key, m.memory_id, m.kind, l.value::integer, m.word_count
from jsonb_to_recordset($2::jsonb) as g (memory_id uuid, lexemes jsonb)
join memory.memories as m on m.agent_id = $1 and m.memory_id = g.memory_id
cross join lateral jsonb_each_text(g.lexemes) as l
returning agent_id;

-- name: import_models(model_ids, identities, dimensions)
insert into memory.models (model_id, identity, dimensions)
select *
from unnest($1::uuid[], $2::text[], $3::integer[])
on conflict do nothing;

-- name: import_embeddings(agent_id, model_ids, memory_ids, vectors)
insert into memory.embeddings (agent_id, model_id, kind, memory_id, embedding)
select $1, g.model_id, m.kind, m.memory_id, g.embedding
from unnest($2::uuid[], $3::uuid[], $4::halfvec[]) as g (model_id, memory_id, embedding)
join memory.memories as m on m.agent_id = $1 and m.memory_id = g.memory_id
returning agent_id;

-- name: import_window_embeddings(agent_id, model_ids, memory_ids, vectors, positions)
insert into memory.window_embeddings (agent_id, model_id, memory_id, position, embedding)
select $1, g.model_id, g.memory_id, g.position, g.embedding
from unnest($2::uuid[], $3::uuid[], $4::halfvec[], $5::integer[]) as g (model_id, memory_id, embedding, position)
returning agent_id;
