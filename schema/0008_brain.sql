-- Decisions as a ledger: rows that are only ever added, each carrying the hash of the one before.
create schema brain;
grant usage on schema brain to newton_app;

-- Times in a body are ISO 8601 with their offset, so what they mean depends on no setting.
create function brain.moment(written text) returns timestamptz
language sql immutable strict parallel safe
return written::timestamptz;

create table brain.records (
    agent_id uuid not null references runtime.agents (agent_id),
    seq bigint not null check (seq > 0),
    record_id uuid not null,
    kind text not null check (kind in ('decision', 'thought', 'amendment', 'outcome', 'link', 'erasure')),
    decision_id uuid not null,
    recorded_at timestamptz not null,
    origin text not null check (origin <> ''),
    body jsonb not null check (jsonb_typeof(body) = 'object'),
    words_hash bytea check (length(words_hash) = 32),
    hash bytea not null check (length(hash) = 32),
    decided_at timestamptz generated always as (
        case when kind = 'decision' then brain.moment(body ->> 'at') end
    ) stored,
    confidence double precision generated always as ((body ->> 'confidence')::double precision) stored,
    category text generated always as (body ->> 'category') stored,
    stakes text generated always as (body ->> 'stakes') stored,
    frame text generated always as (body ->> 'frame') stored,
    reason_kinds text generated always as (body ->> 'reason_kinds') stored,
    look_again_at timestamptz generated always as (brain.moment(body ->> 'look_again_at')) stored,
    outcome text generated always as (body ->> 'outcome') stored,
    reviewed_at timestamptz generated always as (
        case when kind = 'outcome' then brain.moment(body ->> 'at') end
    ) stored,
    how text generated always as (body ->> 'how') stored,
    primary key (agent_id, seq),
    unique (agent_id, record_id),
    foreign key (agent_id, decision_id) references memory.memories (agent_id, memory_id),
    foreign key (agent_id, decision_id) references brain.records (agent_id, record_id),
    check ((kind = 'decision') = (record_id = decision_id)),
    check (kind = 'decision' or coalesce(confidence::text, stakes, frame) is null),
    check (kind in ('decision', 'amendment') or coalesce(category, look_again_at::text) is null),
    check (kind = 'outcome' or coalesce(outcome, how) is null),
    constraint decisions check (
        kind <> 'decision'
        or (
            decided_at is not null
            and confidence is not null
            and confidence between 0 and 1
            and category is not null
            and category <> ''
            and stakes is not null
            and stakes in ('low', 'medium', 'high', 'critical')
        )
    ),
    constraint outcomes check (
        kind <> 'outcome'
        or (
            reviewed_at is not null
            and outcome is not null
            and outcome in ('success', 'partial', 'failure')
            and how is not null
            and how in ('hand', 'api', 'superseded', 'verifier', 'import')
        )
    )
);

comment on table brain.records is 'The hash of a row covers the hash of the row before it and all of the row but what is generated from its body.';
comment on column brain.records.seq is 'The place in the chain of the agent, from 1, without a gap.';
comment on column brain.records.decision_id is 'What it is about; of a decision its own id, which is also that of its memory.';
comment on column brain.records.body is 'All that is not a person''s words. Its canonical JSON is what is hashed.';
comment on column brain.records.words_hash is 'Of the words with their salt; null when it has none.';
comment on column brain.records.how is 'By whom the outcome was given.';
comment on column brain.records.reason_kinds is 'A JSON array: of what kinds its reasons are.';

create unique index records_outcome_key on brain.records (agent_id, decision_id) where kind = 'outcome';
-- all that lists and figures ask for, decision by decision, without a look at the rows
create index records_about_idx on brain.records (agent_id, decision_id, seq desc)
include (
    kind, decided_at, confidence, category, stakes, frame, reason_kinds, look_again_at, outcome, reviewed_at, how
);

call runtime.isolate('brain.records');
grant select, insert on brain.records to newton_app;

-- A person's words, apart from the chain so that they can be erased. The salt keeps them from being guessed.
create table brain.texts (
    agent_id uuid not null,
    record_id uuid not null,
    salt bytea not null check (length(salt) = 32),
    words jsonb not null check (jsonb_typeof(words) = 'object'),
    primary key (agent_id, record_id),
    foreign key (agent_id, record_id) references brain.records (agent_id, record_id)
);

call runtime.isolate('brain.texts');
grant select, insert on brain.texts to newton_app;

-- The end of each chain. Whoever appends holds its row, so there is one writer at a time.
create table brain.heads (
    agent_id uuid primary key references runtime.agents (agent_id),
    seq bigint not null check (seq >= 0),
    hash bytea not null check (length(hash) = 32)
);

call runtime.isolate('brain.heads');
grant select, insert on brain.heads to newton_app;
grant update (seq, hash) on brain.heads to newton_app;

-- A decision as it stands: as it was recorded, with the last amendment of each part, and its outcome. One scan without a
-- join: how long it takes does not depend on what the planner knows of a table that was just filled.
create view brain.decisions with (security_invoker = true) as
select
    agent_id,
    decision_id,
    min(seq) as seq,
    max(decided_at) as decided_at,
    max(confidence) as confidence,
    coalesce(
        (array_agg(category order by seq desc) filter (where kind = 'amendment' and category is not null))[1],
        max(category)
    ) as category,
    max(stakes) as stakes,
    max(frame) as frame,
    max(reason_kinds) as reason_kinds,
    coalesce(
        (array_agg(look_again_at order by seq desc) filter (where kind = 'amendment' and look_again_at is not null))[1],
        max(look_again_at)
    ) as look_again_at,
    max(outcome) as outcome,
    max(reviewed_at) as reviewed_at,
    max(how) as how
from brain.records
group by agent_id, decision_id;

grant select on brain.decisions to newton_app;

-- Takes away the words of the decisions of which the chain says that they are erased, of the agent in scope. The
-- application may delete nothing by itself. The rows and their hashes stay, so the chain verifies as before.
create procedure brain.erase(agent uuid)
language plpgsql
security definer
set search_path = pg_catalog
as $$
declare
    own uuid := nullif(current_setting('newton.agent_id', true), '')::uuid; -- the scope counts, whatever was passed
    gone uuid[];
    part text;
begin
    delete from brain.texts as t
    using brain.records as e
    where
        own = agent
        and t.agent_id = own
        and e.agent_id = own
        and e.kind = 'erasure'
        and e.body -> 'erased' ? t.record_id::text;

    -- of the words of a decision everything on the spine is made
    select array_agg(d.record_id) into gone
    from brain.records as d
    where
        own = agent
        and d.agent_id = own
        and d.kind = 'decision'
        and exists (
            select
            from brain.records as e
            where
                e.agent_id = own
                and e.kind = 'erasure'
                and e.decision_id = d.record_id
                and e.body -> 'erased' ? d.record_id::text
        );

    if gone is null then
        return;
    end if;

    update memory.memories
    set micro = '[erased]', summary = '[erased]', full_text = '[erased]', words = 0
    where agent_id = own and memory_id = any(gone) and full_text <> '[erased]';

    call cognition.let_go(own, gone);

    foreach part in array array[
        'memory.cold', 'memory.former_forms', 'memory.postings', 'memory.embeddings', 'memory.outbox'
    ] loop
        execute format('delete from %s where agent_id = $1 and memory_id = any($2)', part) using own, gone;
    end loop;
end
$$;

revoke execute on procedure brain.erase(uuid) from public;
grant execute on procedure brain.erase(uuid) to newton_app;
