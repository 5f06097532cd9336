-- name: lock_head(agent_id, hash)
-- Locks the last record of the agent's chain until the transaction ends. A new chain starts with the given hash.
insert into brain.chain_heads (agent_id, seq, hash, origin_agent_id)
values ($1, 0, $2, $1)
on conflict (agent_id) do update set seq = chain_heads.seq
returning seq, hash;

-- name: get_origin_agent(agent_id)
-- The agent id that the chain was started with; it differs after an import under another name.
select origin_agent_id as began
from brain.chain_heads
where agent_id = $1;

-- name: append_records(agent_id, records)
with record as materialized (
    select *
    from jsonb_to_recordset($2::jsonb) as r (
        seq bigint, record_id uuid, kind text, decision_id uuid, recorded_at timestamptz, origin text, body jsonb,
        words_hash text, hash text, salt text, words jsonb
    )
),
kept as (
    insert into brain.decision_records (
        agent_id, seq, record_id, kind, decision_id, recorded_at, origin, body, texts_hash, hash
    )
    select
        $1, r.seq, r.record_id, r.kind, r.decision_id, r.recorded_at, r.origin, r.body,
        decode(r.words_hash, 'hex'), decode(r.hash, 'hex')
    from record as r
    returning agent_id
)
insert into brain.decision_texts (agent_id, record_id, salt, texts)
select $1, r.record_id, decode(r.salt, 'hex'), r.words
from record as r
where r.words is not null
returning agent_id;

-- name: advance_head(agent_id, seq, hash)
update brain.chain_heads
set seq = $2, hash = $3
where agent_id = $1;

-- name: get_head(agent_id)
select seq, hash
from brain.chain_heads
where agent_id = $1;

-- name: get_hash_at(agent_id, seq)
select hash
from brain.decision_records
where agent_id = $1 and seq = $2;

-- name: list_records(agent_id, after, max_rows)
select
    r.seq, r.record_id, r.kind, r.decision_id, r.recorded_at, r.origin, r.body, r.texts_hash as words_hash, r.hash,
    t.salt, t.texts as words
from brain.decision_records as r
left join brain.decision_texts as t on t.agent_id = $1 and t.record_id = r.record_id
where r.agent_id = $1 and r.seq > $2
order by r.seq
limit $3;

-- name: list_by_decision(agent_id, decision_id)
select
    r.seq, r.record_id, r.kind, r.decision_id, r.recorded_at, r.origin, r.body, r.texts_hash as words_hash, r.hash,
    t.salt, t.texts as words
from brain.decision_records as r
left join brain.decision_texts as t on t.agent_id = $1 and t.record_id = r.record_id
where r.agent_id = $1 and r.decision_id = $2
order by r.seq;

-- name: find_by_ref(agent_id, refs)
select
    m.ref, r.seq, r.record_id, r.kind, r.decision_id, r.recorded_at, r.origin, r.body, r.texts_hash as words_hash,
    r.hash, t.salt,
    t.texts as words
from memory.memories as m
join brain.decision_records as r on r.agent_id = $1 and r.decision_id = m.memory_id and r.kind in ('decision', 'outcome')
left join brain.decision_texts as t on t.agent_id = $1 and t.record_id = r.record_id
where m.agent_id = $1 and m.kind = 'decision' and m.ref = any($2::text[])
order by r.seq;

-- name: find_mismatch(agent_id)
-- The earliest decision for which memory.memories differs from the chain.
select d.seq
from brain.decisions as d
join memory.memories as m on m.agent_id = $1 and m.memory_id = d.decision_id
where
    d.agent_id = $1
    and (
        m.kind <> 'decision'
        or m.confidence is null
        or abs(m.confidence::double precision - d.confidence) > 1e-5
        or m.occurred_at is distinct from d.decided_at
        or m.outcome is distinct from coalesce(d.outcome, 'pending')
        or (m.state = 'REVIEWED') is distinct from (d.outcome is not null)
    )
order by d.seq
limit 1;

-- name: list_versions(agent_id, refs, records)
-- The decisions with one of these refs; for the ref of a decision record its versions, the latest recorded last.
select w.ref as name, m.memory_id, m.ref, m.occurred_at as decided_at
from unnest($2::text[]) as w (ref)
join memory.memories as m
    on
        m.agent_id = $1
        and m.kind = 'decision'
        and (m.ref = w.ref or (w.ref ~ $3 and starts_with(m.ref, w.ref || '#')))
order by w.ref, m.memory_id;
