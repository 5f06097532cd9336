-- What the reconciling call has read, proposed and changed.
alter table dialogue.episode_watermarks
    add column reconciled_position integer not null default -1 check (reconciled_position >= -1),
    add column failed_readings integer not null default 0 check (failed_readings >= 0);

comment on column dialogue.episode_watermarks.reconciled_position is
    'The last message that the reconciling call has read, or that it need not read.';
comment on column dialogue.episode_watermarks.failed_readings is
    'Answers in a row to the messages after it that had no readable item.';

grant update (reconciled_position, failed_readings) on dialogue.episode_watermarks to newton_app;
grant update (valid_to) on heart.facts to newton_app;

-- The latest items that each model proposed, and whether they were kept. Without the texts, which may be forgotten.
create table heart.proposed_items (
    agent_id uuid not null references runtime.agents (agent_id),
    proposal_id uuid not null,
    model text not null check (model <> ''),
    operation text not null check (operation <> ''),
    drop_reason text check (drop_reason <> ''),
    proposed_at timestamptz not null,
    primary key (agent_id, proposal_id)
);

comment on column heart.proposed_items.drop_reason is 'Null if the item was kept.';

call runtime.isolate('heart.proposed_items');
grant select, insert, delete on heart.proposed_items to newton_app;

-- What was changed because a message says it, so that it can be told and undone.
create table heart.line_changes (
    agent_id uuid not null references runtime.agents (agent_id),
    change_id uuid not null,
    line_id uuid,
    effect text not null check (effect in (
        'learnt', 'confirmed', 'replaced', 'ended', 'retracted', 'merged', 'unsettled', 'ruled', 'lifted', 'proposed'
    )),
    target_id uuid not null,
    former_valid_to timestamptz,
    changed_at timestamptz not null,
    undone_at timestamptz,
    primary key (agent_id, change_id)
);

comment on table heart.line_changes is 'Changes of facts, rules, procedures and decisions by what a message says.';
comment on column heart.line_changes.line_id is 'The memory of the message, null for a merge; without a foreign key, because it may be forgotten.';
comment on column heart.line_changes.target_id is 'The fact, procedure or decision, or the line of the identity.';
comment on column heart.line_changes.former_valid_to is 'The end of validity of an ended fact before the change.';

create index line_changes_line_idx on heart.line_changes (agent_id, line_id);

call runtime.isolate('heart.line_changes');
grant select, insert on heart.line_changes to newton_app;
grant update (undone_at) on heart.line_changes to newton_app;
