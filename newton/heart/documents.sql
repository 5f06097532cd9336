-- name: lock_document(agent_id, ref)
-- Serializes concurrent ingestion of the same document.
select pg_advisory_xact_lock(hashtextextended($1::uuid::text || $2, 1));

-- name: find_document(agent_id, ref)
select document_id, content_hash
from heart.documents
where agent_id = $1 and ref = $2;

-- name: upsert_document(agent_id, document_id, ref, title, format, content_hash, now)
insert into heart.documents (agent_id, document_id, ref, title, format, content_hash, ingested_at)
values ($1, $2, $3, $4, $5, $6, $7)
on conflict (agent_id, ref) do update
set title = excluded.title, format = excluded.format, content_hash = excluded.content_hash,
ingested_at = excluded.ingested_at;

-- name: list_passages(agent_id, document_id)
select m.memory_id, m.content_hash, m.state, m.quarantined
from heart.passages as p
join memory.memories as m on m.agent_id = $1 and m.memory_id = p.memory_id
where p.agent_id = $1 and p.document_id = $2;

-- name: insert_passages(agent_id, document_id, memory_ids, positions, headings)
insert into heart.passages (agent_id, memory_id, document_id, position, heading)
select $1, p.memory_id, $2, p.position, p.heading
from unnest($3::uuid[], $4::integer[], $5::text[]) as p (memory_id, position, heading);

-- name: reorder_passages(agent_id, memory_ids, positions)
update heart.passages as p
set position = g.position
from unnest($2::uuid[], $3::integer[]) as g (memory_id, position)
where p.agent_id = $1 and p.memory_id = g.memory_id and p.position <> g.position;

-- name: list_documents(agent_id)
select
    d.document_id, d.ref, d.title, d.format, d.ingested_at, count(m.memory_id)::integer as passages
from heart.documents as d
left join heart.passages as p on p.agent_id = $1 and p.document_id = d.document_id
left join memory.memories as m on m.agent_id = $1 and m.memory_id = p.memory_id and m.state = 'ACTIVE'
where d.agent_id = $1
group by d.document_id, d.ref, d.title, d.format, d.ingested_at
order by d.ref;

-- name: resolve_document(agent_id, document_ref)
-- By its ref, its whole id, or at least six digits of the end of its id.
select d.document_id, d.ref, d.title, d.format, d.ingested_at
from heart.documents as d
where
    d.agent_id = $1
    and (
        d.ref = $2
        or (
            length(replace($2, '-', '')) >= 6
            and right(replace(d.document_id::text, '-', ''), length(replace($2, '-', ''))) = lower(replace($2, '-', ''))
        )
    )
limit 2;

-- name: read_passages(agent_id, document_id)
select p.memory_id, p.position, p.heading, m.state, m.quarantined, m.full_text as text
from heart.passages as p
join memory.memories as m on m.agent_id = $1 and m.memory_id = p.memory_id
where p.agent_id = $1 and p.document_id = $2
order by p.position, p.memory_id;

-- name: delete_document(agent_id, document_id)
call heart.delete_document($1, $2);
