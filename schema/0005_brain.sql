-- Decisions as a ledger: rows that are only ever added, each carrying the hash of the one before.

-- Times in a body are ISO 8601 with their offset, so what they mean depends on no setting.
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

comment on table brain.decision_records is 'The hash of a row covers the hash of the row before it and all of the row but what is generated from its body.';
comment on column brain.decision_records.seq is 'The place in the chain of the agent, from 1, without a gap.';
comment on column brain.decision_records.decision_id is 'What it is about; of a decision its own id, which is also that of its memory.';
comment on column brain.decision_records.body is 'All that is not a person''s words. Its canonical JSON is what is hashed.';
comment on column brain.decision_records.texts_hash is 'Of the words with their salt; null when it has none.';
comment on column brain.decision_records.review_method is 'By whom the outcome was given.';
comment on column brain.decision_records.reason_kinds is 'A JSON array: of what kinds its reasons are.';

create unique index decision_records_outcome_key on brain.decision_records (agent_id, decision_id) where kind = 'outcome';
-- all that lists and figures ask for, decision by decision, without a look at the rows
create index decision_records_decision_idx on brain.decision_records (agent_id, decision_id, seq desc)
include (
    kind, decided_at, confidence, category, stakes, frame, reason_kinds, review_due_at, outcome, reviewed_at, review_method
);

call runtime.isolate('brain.decision_records');
grant select, insert on brain.decision_records to newton_app;

-- A person's words, apart from the chain so that they can be erased. The salt keeps them from being guessed.
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

-- The end of each chain. Whoever appends holds its row, so there is one writer at a time.
create table brain.chain_heads (
    agent_id uuid primary key references runtime.agents (agent_id),
    seq bigint not null check (seq >= 0),
    hash bytea not null check (length(hash) = 32),
    origin_agent_id uuid not null
);

call runtime.isolate('brain.chain_heads');
grant select, insert on brain.chain_heads to newton_app;
grant update (seq, hash) on brain.chain_heads to newton_app;

comment on column brain.chain_heads.origin_agent_id is 'The id of the agent with which its first record begins.';

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
        (array_agg(review_due_at order by seq desc) filter (where kind = 'amendment' and review_due_at is not null))[1],
        max(review_due_at)
    ) as review_due_at,
    max(outcome) as outcome,
    max(reviewed_at) as reviewed_at,
    max(review_method) as review_method
from brain.decision_records
group by agent_id, decision_id;

grant select on brain.decisions to newton_app;

-- What a person has changed about the guardrails of an agent. Those that ship as files are not copied: the last change of
-- a name says whether the agent's own expression holds, the file's, or none.
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

comment on column brain.guardrails.expression is 'CEL; true when a choice breaks the rule.';
comment on column brain.guardrails.change is 'added: this expression holds; retired: none; restored: the file''s again.';

call runtime.isolate('brain.guardrails');
grant select, insert on brain.guardrails to newton_app;

-- What the record of decisions said at a moment, so that no context has to work it out.
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

comment on column brain.calibration_snapshots.seq is 'The end of the ledger at that moment.';
comment on column brain.calibration_snapshots.bias is 'What was stated on average, less what came true.';
comment on column brain.calibration_snapshots.note is 'The calibration note, as a context shows it; null while too little was judged.';

call runtime.isolate('brain.calibration_snapshots');
grant select, insert on brain.calibration_snapshots to newton_app;

