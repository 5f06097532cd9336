-- name: apply_transitions(agent_id, memory_ids, transition_ids, events, from_states, to_states, reasons, releases, now, origin)
-- Applies each transition if the memory is still in from_state, and records it.
with step as materialized (
    select *
    from unnest($2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[], $8::boolean[]) as s (
        memory_id, transition_id, event, from_state, to_state, reason, releases
    )
),
moved as (
    update memory.memories as m
    set state = s.to_state, quarantined = m.quarantined and not s.releases
    from step as s
    where
        m.agent_id = $1
        and m.memory_id = s.memory_id
        and m.state = s.from_state
        and (not s.releases or m.quarantined)
    returning m.memory_id
)
insert into memory.transitions (
    agent_id, memory_id, transition_id, changed_at, event, from_state, to_state, reason, origin
)
select $1, s.memory_id, s.transition_id, $9, s.event, s.from_state, s.to_state, s.reason, $10
from step as s
join moved as m on m.memory_id = s.memory_id
returning memory_id;

-- name: list_transitions(agent_id, memory_id)
select changed_at, event, from_state, to_state, reason, origin
from memory.transitions
where agent_id = $1 and memory_id = $2
order by transition_id;

-- name: list_changed_since(agent_id, origin, since)
select t.memory_id, t.event, t.from_state, t.to_state, t.reason, t.event = 'released', m.micro
from memory.transitions as t
join memory.memories as m on m.agent_id = $1 and m.memory_id = t.memory_id
where t.agent_id = $1 and t.origin = $2 and t.changed_at >= $3
order by t.transition_id;

-- name: insert_memories(agent_id, drafts)
-- Writes memories, postings, times, marks of standing statements, windows and outbox rows in one statement; memories that exist already are skipped.
with draft as materialized (
    select *
    from jsonb_to_recordset($2::jsonb) as d (
        memory_id uuid, kind text, state text, micro text, summary text, full_text text,
        micro_tokens integer, summary_tokens integer, language text, words text[], cue text,
        occurred_at timestamptz, created_at timestamptz, origin text, trust text, quarantined boolean,
        content_hash text, ref text, prefix_length integer, full_tokens integer, windows jsonb,
        confidence double precision, importance double precision, outcome text, thread uuid, place integer, times jsonb,
        standing text
    )
),
lexed as materialized (
    select d.memory_id, w.lexeme, cardinality(w.positions) as tf
    from draft as d
    cross join lateral unnest(memory.search_words(d.words)) as w
),
sized as (
    select memory_id, sum(tf)::integer as word_count
    from lexed
    group by memory_id
),
written as (
    insert into memory.memories (
        agent_id, memory_id, kind, state, micro, summary, full_text, micro_tokens, summary_tokens, word_count,
        prefix_length, full_tokens,
        confidence, importance, outcome, occurred_at, created_at, origin, trust, quarantined, ref, thread_id,
        position, content_hash, language
    )
    select
        $1, d.memory_id, d.kind, d.state, d.micro, d.summary, d.full_text, d.micro_tokens, d.summary_tokens,
        coalesce(s.word_count, 0), d.prefix_length, d.full_tokens,
        d.confidence, d.importance, d.outcome, d.occurred_at, d.created_at, d.origin, d.trust,
        d.quarantined, d.ref, d.thread, d.place, decode(d.content_hash, 'hex'), d.language
    from draft as d
    left join sized as s on s.memory_id = d.memory_id
    on conflict do nothing
    returning memory_id, kind
),
posted as (
    insert into memory.postings (agent_id, lexeme, memory_id, kind, tf, word_count)
    select $1, l.lexeme, l.memory_id, w.kind, l.tf, s.word_count
    from lexed as l
    join written as w on w.memory_id = l.memory_id
    join sized as s on s.memory_id = l.memory_id
    returning agent_id
),
timed as (
    insert into memory.mentioned_times (agent_id, memory_id, starts_at, ends_at)
    select $1, w.memory_id, t.starts, t.ends
    from draft as d
    join written as w on w.memory_id = d.memory_id
    cross join lateral jsonb_to_recordset(d.times) as t (starts timestamptz, ends timestamptz)
    on conflict do nothing
),
marked as (
    insert into memory.standing_statements (agent_id, memory_id, standing)
    select $1, w.memory_id, d.standing
    from draft as d
    join written as w on w.memory_id = d.memory_id
    where d.standing is not null
    returning agent_id
),
cut as (
    insert into memory.windows (agent_id, memory_id, position, text, tokens, lexemes)
    select
        $1,
        w.memory_id,
        o.ordinal - 1,
        o.entry ->> 0,
        (o.entry ->> 1)::integer,
        tsvector_to_array(memory.search_words(array(select jsonb_array_elements_text(o.entry -> 2))))
    from draft as d
    join written as w on w.memory_id = d.memory_id
    cross join lateral jsonb_array_elements(d.windows) with ordinality as o (entry, ordinal)
    returning agent_id
),
queued as (
    insert into memory.outbox (agent_id, memory_id, text)
    select $1, d.memory_id, d.cue
    from draft as d
    join written as w on w.memory_id = d.memory_id
    where d.cue is not null
    returning agent_id
)
select memory_id
from written;

-- name: insert_sources(agent_id, memory_ids, source_ids)
insert into memory.sources (agent_id, memory_id, source_id)
select $1, s.memory_id, s.source_id
from unnest($2::uuid[], $3::uuid[]) as s (memory_id, source_id)
on conflict do nothing;

-- name: find_by_ref(agent_id, kind, refs)
-- The hashes of everything that each ref stated or confirmed before, including duplicates of the confirmed fact.
select ref, content_hash
from memory.memories
where agent_id = $1 and kind = $2 and ref = any($3::text[])
union all
select c.ref, m.content_hash
from memory.confirmations as c
join memory.memories as m on m.agent_id = $1 and m.memory_id = c.memory_id
where c.agent_id = $1 and m.kind = $2 and c.ref = any($3::text[])
union all
select c.ref, m.content_hash
from memory.confirmations as c
join heart.facts as f on f.agent_id = $1 and f.duplicate_of = c.memory_id
join memory.memories as m on m.agent_id = $1 and m.memory_id = f.memory_id
where c.agent_id = $1 and m.kind = $2 and c.ref = any($3::text[])
union all
select o.ref, m.content_hash
from memory.memories as o
join heart.facts as f on f.agent_id = $1 and f.duplicate_of = o.memory_id
join memory.memories as m on m.agent_id = $1 and m.memory_id = f.memory_id
where o.agent_id = $1 and o.kind = $2 and o.ref = any($3::text[]);

-- name: insert_confirmations(agent_id, memory_ids, refs, sources, now, origin, trust)
-- What a person stated, nobody else confirms.
with confirmed as (
    insert into memory.confirmations (agent_id, memory_id, ref, confirmed_at, origin, trust, source)
    select $1, g.memory_id, g.ref, $5, $6, $7, g.source
    from unnest($2::uuid[], $3::text[], $4::text[]) as g (memory_id, ref, source)
    join memory.memories as m on m.agent_id = $1 and m.memory_id = g.memory_id
    where m.kind <> 'fact' or m.trust not in ('operator', 'user') or $7 in ('operator', 'user')
    on conflict do nothing
    returning memory_id, ref
),
counted as (
    select memory_id, count(*)::integer as times
    from confirmed
    group by memory_id
),
updated as (
    update memory.memories as m
    set
        confirmations = m.confirmations + c.times,
        -- quarantined confirmations do not make other memories look fresh
        confirmed_at = case
            when $7 not in ('tool', 'web') or m.trust in ('tool', 'web') then $5
            else m.confirmed_at
        end
    from counted as c
    where m.agent_id = $1 and m.memory_id = c.memory_id
)
select ref
from confirmed;

-- name: insert_links(agent_id, memory_ids, link, other_ids, now)
insert into memory.links (agent_id, memory_id, link, other_id, created_at)
select $1, l.memory_id, $3, l.other_id, $5
from unnest($2::uuid[], $4::uuid[]) as l (memory_id, other_id)
on conflict do nothing;

-- name: lock_texts(agent_id, memory_ids)
-- Apart from the statement that reads and replaces the texts, which a distributed database executes in steps.
select memory_id
from memory.memories
where agent_id = $1 and memory_id = any($2::uuid[])
order by memory_id
for update;

-- name: update_texts(agent_id, version_ids, now, memory_ids, micros, summaries, micro_tokens, summary_tokens, full_texts, outcomes)
-- Keeps the previous texts as a version, because stored contexts still refer to them.
with updates as materialized (
    select *
    from unnest(
        $2::uuid[], $4::uuid[], $5::text[], $6::text[], $7::integer[], $8::integer[], $9::text[], $10::text[]
    ) as t (version_id, memory_id, micro, summary, micro_tokens, summary_tokens, full_text, outcome)
),
previous as materialized (
    select
        t.version_id, m.memory_id, m.micro, m.summary, m.micro_tokens, m.summary_tokens, m.outcome,
        (m.micro, m.summary, m.outcome) is distinct from (t.micro, t.summary, coalesce(t.outcome, m.outcome)) as changes
    from updates as t
    join memory.memories as m on m.agent_id = $1 and m.memory_id = t.memory_id
),
stored_versions as (
    insert into memory.memory_versions (
        agent_id, memory_id, version_id, replaced_at, micro, summary, micro_tokens, summary_tokens, outcome
    )
    select $1, memory_id, version_id, $3, micro, summary, micro_tokens, summary_tokens, outcome
    from previous
    where changes
    returning agent_id
)
update memory.memories as m
set
    micro = t.micro,
    summary = t.summary,
    micro_tokens = t.micro_tokens,
    summary_tokens = t.summary_tokens,
    full_text = coalesce(t.full_text, m.full_text),
    outcome = coalesce(t.outcome, m.outcome)
from updates as t
join previous on previous.memory_id = t.memory_id
where m.agent_id = $1 and m.memory_id = t.memory_id;

-- name: record_access(agent_id, memory_ids, now)
update memory.memories
set uses = uses + 1, accessed_at = $3
where agent_id = $1 and memory_id = any($2::uuid[]);

-- name: count_by_kind(agent_id)
select kind, count(*) as memories
from memory.memories
where agent_id = $1
group by kind
order by kind;

-- name: count_by_language(agent_id)
select language, count(*) as memories
from memory.memories
where agent_id = $1 and word_count > 0
group by language
order by memories desc, language;

-- name: lock_entities(agent_id)
select pg_advisory_xact_lock(hashtextextended($1::uuid::text, 3))
from (select count(*) from runtime.agents where agent_id = $1) as node;
