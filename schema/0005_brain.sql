-- The decision ledger: append-only records, each with the hash of the one before.

-- Times in a body are ISO 8601 with an offset, so the conversion does not depend on a setting and is immutable.
create function brain.parse_time(iso_time text) returns timestamptz
language sql immutable strict parallel safe
return iso_time::timestamptz;

create table brain.decision_records (
    agent_id uuid not null references runtime.agents (agent_id),
    seq bigint not null check (seq > 0),
    record_id uuid not null,
    kind text not null check (kind in ('decision', 'thought', 'amendment', 'outcome', 'link', 'erasure')),
    decision_id uuid not null,
    recorded_at timestamptz not null,
    origin text not null check (origin <> ''),
    body jsonb not null check (jsonb_typeof(body) = 'object'),
    texts_hash bytea check (length(texts_hash) = 32),
    hash bytea not null check (length(hash) = 32),
    decided_at timestamptz generated always as (
        case when kind = 'decision' then brain.parse_time(body ->> 'at') end
    ) stored,
    confidence double precision generated always as ((body ->> 'confidence')::double precision) stored,
    category text generated always as (body ->> 'category') stored,
    stakes text generated always as (body ->> 'stakes') stored,
    frame text generated always as (body ->> 'frame') stored,
    reason_kinds text generated always as (body ->> 'reason_kinds') stored,
    review_due_at timestamptz generated always as (brain.parse_time(body ->> 'look_again_at')) stored,
    outcome text generated always as (body ->> 'outcome') stored,
    reviewed_at timestamptz generated always as (
        case when kind = 'outcome' then brain.parse_time(body ->> 'at') end
    ) stored,
    review_method text generated always as (body ->> 'how') stored,
    primary key (agent_id, seq),
    unique (agent_id, record_id),
    foreign key (agent_id, decision_id) references memory.memories (agent_id, memory_id),
    foreign key (agent_id, decision_id) references brain.decision_records (agent_id, record_id),
    check ((kind = 'decision') = (record_id = decision_id)),
    check (kind = 'decision' or coalesce(confidence::text, stakes, frame) is null),
    check (kind in ('decision', 'amendment') or coalesce(category, review_due_at::text) is null),
    check (kind = 'outcome' or coalesce(outcome, review_method) is null),
    constraint decision_fields check (
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
    constraint outcome_fields check (
        kind <> 'outcome'
        or (
            reviewed_at is not null
            and outcome is not null
            and outcome in ('success', 'partial', 'failure')
            and review_method is not null
            and review_method in ('hand', 'api', 'superseded', 'verifier', 'import')
        )
    )
);

comment on table brain.decision_records is
'The hash of a record covers the hash of the record before it and all columns that are not generated from the body.';
comment on column brain.decision_records.seq is 'Position in the agent''s hash chain, from 1, without gaps.';
comment on column brain.decision_records.decision_id is
'The decision that the record is about; for a decision its own id, which is also its memory_id.';
comment on column brain.decision_records.body is
'Everything except texts written by a person. The canonical JSON is hashed, so its keys must not change.';
comment on column brain.decision_records.texts_hash is 'Hash of the texts and their salt; null if the record has none.';
comment on column brain.decision_records.review_method is 'How the outcome was determined.';
comment on column brain.decision_records.reason_kinds is 'JSON array: the kinds of the reasons.';

create unique index decision_records_outcome_key on brain.decision_records (agent_id, decision_id) where kind = 'outcome';
-- covers everything that lists and statistics read, without heap access
create index decision_records_decision_idx on brain.decision_records (agent_id, decision_id, seq desc)
include (
    kind, decided_at, confidence, category, stakes, frame, reason_kinds, review_due_at, outcome, reviewed_at,
    review_method
);

call runtime.isolate('brain.decision_records');
grant select, insert on brain.decision_records to newton_app;

-- Texts written by a person, outside of the chain so that they can be erased. The salt prevents guessing an erased text
-- from its hash.
create table brain.decision_texts (
    agent_id uuid not null,
    record_id uuid not null,
    salt bytea not null check (length(salt) = 32),
    texts jsonb not null check (jsonb_typeof(texts) = 'object'),
    primary key (agent_id, record_id),
    foreign key (agent_id, record_id) references brain.decision_records (agent_id, record_id)
);

call runtime.isolate('brain.decision_texts');
grant select, insert on brain.decision_texts to newton_app;

-- The last record of each chain. An append locks this row, so there is one writer at a time.
create table brain.chain_heads (
    agent_id uuid primary key references runtime.agents (agent_id),
    seq bigint not null check (seq >= 0),
    hash bytea not null check (length(hash) = 32),
    origin_agent_id uuid not null
);

call runtime.isolate('brain.chain_heads');
grant select, insert on brain.chain_heads to newton_app;
grant update (seq, hash) on brain.chain_heads to newton_app;

comment on column brain.chain_heads.origin_agent_id is
'The id of the agent that the first record was hashed with; it differs from agent_id after an import under another name.';

-- The current version of each decision: the recorded one with the last amendment of each field and its outcome. One scan
-- without a join, so its speed does not depend on statistics of a table that was just filled.
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
        (array_agg(review_due_at order by seq desc) filter (where kind = 'amendment' and review_due_at is not null))[1],
        max(review_due_at)
    ) as review_due_at,
    max(outcome) as outcome,
    max(reviewed_at) as reviewed_at,
    max(review_method) as review_method
from brain.decision_records
group by agent_id, decision_id;

grant select on brain.decisions to newton_app;

-- Changes that a person made to the guardrails of an agent. Shipped guardrails are not copied: the last change of a name
-- decides between the agent's own expression, the shipped one, and none.
create table brain.guardrails (
    agent_id uuid not null references runtime.agents (agent_id),
    name text not null check (name ~ '^[a-z][a-z0-9_-]*$' and length(name) <= 60),
    version integer not null check (version >= 1),
    changed_at timestamptz not null,
    origin text not null check (origin <> ''),
    change text not null check (change in ('added', 'retired', 'restored')),
    expression text check (expression <> ''),
    severity text check (severity in ('warn', 'block')),
    message text check (message <> ''),
    description text,
    primary key (agent_id, name, version),
    check (num_nulls(expression, severity, message, description) = case change when 'added' then 0 else 4 end)
);

comment on column brain.guardrails.expression is 'CEL; true if a decision violates the rule.';
comment on column brain.guardrails.change is
'added: this expression applies; retired: none applies; restored: the shipped one applies again.';

call runtime.isolate('brain.guardrails');
grant select, insert on brain.guardrails to newton_app;

-- Calibration statistics at a moment, so that a context does not have to compute them.
create table brain.calibration_snapshots (
    agent_id uuid not null references runtime.agents (agent_id),
    seq bigint not null check (seq > 0),
    created_at timestamptz not null,
    reviewed_count integer not null check (reviewed_count > 0),
    brier double precision not null check (brier between 0 and 1),
    bias double precision not null check (bias between -1 and 1),
    note text check (note <> '' and note !~ '[\n\r]'),
    note_tokens integer check (note_tokens > 0),
    primary key (agent_id, seq),
    check ((note is null) = (note_tokens is null))
);

comment on column brain.calibration_snapshots.seq is 'The last record of the ledger at that time.';
comment on column brain.calibration_snapshots.bias is 'Mean stated confidence minus mean outcome.';
comment on column brain.calibration_snapshots.note is
'The calibration note as shown in a context; null while there are too few reviews.';

call runtime.isolate('brain.calibration_snapshots');
grant select, insert on brain.calibration_snapshots to newton_app;

