-- One turn: which context was given with which line, how that context came about, and which line answered.
create table cognition.turns (
    agent_id uuid not null references runtime.agents (agent_id),
    turn_id uuid not null,
    session_id uuid not null,
    bundle_id uuid,
    at timestamptz not null,
    how text not null check (how in ('built', 'updated', 'evicted', 'stood')),
    because text not null check (because <> ''),
    answered_by text not null check (answered_by in ('model', 'memory', 'censor')),
    asked integer not null,
    replied integer not null check (replied > asked),
    primary key (agent_id, turn_id),
    foreign key (agent_id, bundle_id) references cognition.bundles (agent_id, bundle_id) on delete set null (bundle_id),
    foreign key (agent_id, session_id, asked) references dialogue.messages (agent_id, session_id, position),
    foreign key (agent_id, session_id, replied) references dialogue.messages (agent_id, session_id, position)
);

create index turns_at_idx on cognition.turns (agent_id, at);
create index turns_bundle_idx on cognition.turns (agent_id, bundle_id);

comment on column cognition.turns.bundle_id is 'Null once a memory that the context had looked at was forgotten.';
comment on column cognition.turns.how is
'built from scratch; stood, as it was made for an earlier line; updated with what is new; evicted: made smaller.';
comment on column cognition.turns.because is 'Why it stood, or did not; no words of anybody.';
comment on column cognition.turns.answered_by is 'memory: the reply only quotes the context; censor: it says what forbids it.';
comment on column cognition.turns.asked is 'The position of the line that was answered in its session; of the reply: replied.';

call runtime.isolate('cognition.turns');
grant select, insert on cognition.turns to newton_app;
