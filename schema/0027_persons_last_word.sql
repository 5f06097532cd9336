-- A person's outcome of a decision takes the place of one that a model recorded, which stays in the ledger.
drop index brain.decision_records_outcome_key;
create unique index decision_records_outcome_key on brain.decision_records (agent_id, decision_id, (body ? 'trust'))
where kind = 'outcome';

alter table brain.decision_records
add constraint outcome_trust check (
    kind <> 'outcome' or not body ? 'trust' or body ->> 'trust' in ('agent', 'tool', 'web')
);

comment on constraint outcome_trust on brain.decision_records is 'An outcome without a trust is that of a person.';

-- As before, with the last outcome of each decision.
create or replace view brain.decisions with (security_invoker = true) as
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
    (array_agg(outcome order by seq desc) filter (where kind = 'outcome'))[1] as outcome,
    (array_agg(reviewed_at order by seq desc) filter (where kind = 'outcome'))[1] as reviewed_at,
    (array_agg(review_method order by seq desc) filter (where kind = 'outcome'))[1] as review_method,
    max(seq) filter (where kind = 'outcome') as review_seq
from brain.decision_records
group by agent_id, decision_id;

-- Moves of memories to another scope that models propose. A person makes or rejects each once.
create table memory.proposed_moves (
    agent_id uuid not null,
    move_id uuid not null,
    memory_id uuid not null,
    target text not null check (target <> ''),
    trust text not null check (trust in ('operator', 'user', 'agent', 'tool', 'web')),
    is_open boolean not null,
    primary key (agent_id, move_id),
    unique (agent_id, memory_id),
    foreign key (agent_id, memory_id) references memory.memories (agent_id, memory_id) on delete cascade
);

comment on column memory.proposed_moves.target is 'The name of a project, which need not exist, or ''person''.';

call runtime.isolate('memory.proposed_moves');
grant select, insert on memory.proposed_moves to newton_app;
grant update (is_open) on memory.proposed_moves to newton_app;
