-- name: lock_document(agent_id, ref)
-- Serializes concurrent ingestion of the same document.
select pg_advisory_xact_lock(hashtextextended($1::uuid::text || $2, 1))
from (select count(*) from runtime.agents where agent_id = $1) as node;

-- name: find_document(agent_id, ref)
select
    d.document_id, d.content_hash,
    array(
        select distinct coalesce(c.trust, m.trust)::text
        from heart.passages as p
        join memory.memories as m on m.agent_id = $1 and m.memory_id = p.memory_id
        left join memory.confirmations as c
            on c.agent_id = $1 and c.memory_id = m.memory_id and c.trust in ('operator', 'user')
        where p.agent_id = $1 and p.document_id = d.document_id and m.state <> 'SUPERSEDED'
    ) as trusts
from heart.documents as d
where d.agent_id = $1 and d.ref = $2;

-- name: count_unchanged(agent_id, ref, source_hash, trusted)
-- The number of passages of a document that was read from the same file; no row if any of them is missing or, for a
-- trusted reader, is neither of a person nor vouched for by one.
select d.passage_count
from heart.documents as d
where
    d.agent_id = $1
    and d.ref = $2
    and d.source_hash = $3
    and d.passage_count = (
        select count(*)
        from heart.passages as p
        join memory.memories as m on m.agent_id = $1 and m.memory_id = p.memory_id
        where
            p.agent_id = $1
            and p.document_id = d.document_id
            and m.state <> 'SUPERSEDED'
            and not (
                $4::boolean
                and m.trust not in ('operator', 'user')
                and not exists (
                    select
                    from memory.confirmations as c
                    where c.agent_id = $1 and c.memory_id = m.memory_id and c.trust in ('operator', 'user')
                )
            )
    );

-- name: upsert_document(agent_id, document_id, ref, title, format, content_hash, source_hash, passages, dated_at, now)
insert into heart.documents (
    agent_id, document_id, ref, title, format, content_hash, source_hash, passage_count, dated_at, ingested_at
)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
on conflict (agent_id, ref) do update
set title = excluded.title, format = excluded.format, content_hash = excluded.content_hash,
source_hash = excluded.source_hash, passage_count = excluded.passage_count, dated_at = excluded.dated_at,
ingested_at = excluded.ingested_at;

-- name: list_passages(agent_id, document_id)
select m.content_hash, m.memory_id, m.state, m.quarantined, p.location
from heart.passages as p
join memory.memories as m on m.agent_id = $1 and m.memory_id = p.memory_id
where p.agent_id = $1 and p.document_id = $2;

-- name: insert_passages(agent_id, document_id, memory_ids, positions, headings, locations)
insert into heart.passages (agent_id, memory_id, document_id, position, heading, location)
select $1, p.memory_id, $2, p.position, p.heading, p.location
from unnest($3::uuid[], $4::integer[], $5::text[], $6::text[]) as p (memory_id, position, heading, location)
returning agent_id;

-- name: reorder_passages(agent_id, memory_ids, positions, locations)
update heart.passages as p
set position = g.position, location = g.location
from unnest($2::uuid[], $3::integer[], $4::text[]) as g (memory_id, position, location)
where p.agent_id = $1 and p.memory_id = g.memory_id and (p.position, p.location) <> (g.position, g.location);

-- name: list_documents(agent_id)
select
    d.document_id, d.ref, d.title, d.format, d.dated_at, d.ingested_at, count(m.memory_id)::integer as passages
from heart.documents as d
left join heart.passages as p on p.agent_id = $1 and p.document_id = d.document_id
left join memory.memories as m on m.agent_id = $1 and m.memory_id = p.memory_id and m.state = 'ACTIVE'
where d.agent_id = $1
group by d.document_id, d.ref, d.title, d.format, d.dated_at, d.ingested_at
order by d.ref;

-- name: resolve_document(agent_id, document_ref)
-- By its ref, its whole id, or at least six digits of the end of its id.
select d.document_id, d.ref, d.title, d.format, d.dated_at, d.ingested_at
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
select p.memory_id, p.position, p.heading, p.location, m.state, m.quarantined, m.trust, m.full_text as text
from heart.passages as p
join memory.memories as m on m.agent_id = $1 and m.memory_id = p.memory_id
where p.agent_id = $1 and p.document_id = $2
order by p.position, p.memory_id;

-- name: delete_document(agent_id, document_id)
select heart.delete_document($1, $2);
