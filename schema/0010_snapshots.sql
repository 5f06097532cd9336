-- What the record of decisions said at a moment, so that no context has to work it out.
create table brain.snapshots (
    agent_id uuid not null references runtime.agents (agent_id),
    seq bigint not null check (seq > 0),
    at timestamptz not null,
    judged integer not null check (judged > 0),
    brier double precision not null check (brier between 0 and 1),
    bias double precision not null check (bias between -1 and 1),
    note text check (note <> '' and note !~ '[\n\r]'),
    note_tokens integer check (note_tokens > 0),
    primary key (agent_id, seq),
    check ((note is null) = (note_tokens is null))
);

comment on column brain.snapshots.seq is 'The end of the ledger at that moment.';
comment on column brain.snapshots.bias is 'What was stated on average, less what came true.';
comment on column brain.snapshots.note is 'The calibration note, as a context shows it; null while too little was judged.';

call runtime.isolate('brain.snapshots');
grant select, insert on brain.snapshots to newton_app;

-- Decisions that are being made.
create index memories_open_idx on memory.memories (agent_id, occurred_at desc)
where kind = 'decision' and state = 'RECORDED';
