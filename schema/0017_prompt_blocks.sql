-- What Newton put into the prompts of a session besides its messages: the system message, and the block before an input.
-- It is sent again in the same place with each later prompt, so that the model's server can reuse its prompt cache.
create table dialogue.prompt_blocks (
    agent_id uuid not null,
    session_id uuid not null,
    position integer not null,
    kind text not null check (kind in ('system', 'memory')),
    edition text not null,
    text text not null,
    tokens integer not null check (tokens >= 0),
    min_trust text,
    created_at timestamptz not null,
    bundle_id uuid,
    memory_ids uuid[] not null,
    primary key (agent_id, session_id, position, kind),
    foreign key (agent_id, session_id, position) references dialogue.messages (agent_id, session_id, position)
);

comment on column dialogue.prompt_blocks.position is
'Of the input before which it was sent first. A system message holds from there on, until the next one.';
comment on column dialogue.prompt_blocks.edition is
'Of a system message: the template and the last compaction for which it was made; it is made anew for others.';
comment on column dialogue.prompt_blocks.text is 'As it was sent. "[forgotten]" after a memory in it was forgotten.';
comment on column dialogue.prompt_blocks.min_trust is
'The lowest trust of the quarantined memories in it; null without any.';
comment on column dialogue.prompt_blocks.bundle_id is 'The context that it is a part of.';
comment on column dialogue.prompt_blocks.memory_ids is 'The memories that it may state.';

call runtime.isolate('dialogue.prompt_blocks');
grant select, insert on dialogue.prompt_blocks to newton_app;

-- Removes the text of the blocks of these contexts, and of those that state one of these memories or repeat it; and the
-- salts of the prompts that may have contained such a block. Only the erasing procedures may call it. Row level security
-- applies.
create procedure dialogue.erase_prompt_blocks(target_agent uuid, bundle_ids uuid[], removed_ids uuid[])
language sql
set search_path = pg_catalog
as $$
    with erased as (
        update dialogue.prompt_blocks as b
        set text = '[forgotten]', tokens = 0, bundle_id = null, memory_ids = '{}'
        where
            b.agent_id = target_agent
            and (
                b.bundle_id = any(bundle_ids)
                or b.memory_ids && removed_ids
                or exists (
                    select
                    from memory.memories as m
                    where
                        m.agent_id = target_agent
                        and m.memory_id = any(removed_ids)
                        and length(m.summary) >= 8  -- a short text occurs in others by chance
                        and strpos(b.text, regexp_replace(m.summary, '^\[[0-9-]+\] ', '')) > 0
                )
            )
        returning b.session_id, b.position
    )
    update cognition.prompts as p
    set salt = null
    from erased as e
    where
        p.agent_id = target_agent
        and p.input_position >= e.position
        and (
            p.session_id = e.session_id
            or exists (
                select
                from dialogue.lineage as l
                where
                    l.agent_id = target_agent
                    and l.session_id = p.session_id
                    and l.ancestor_id = e.session_id
                    and e.position between l.first_position and l.last_position
            )
        );
$$;

revoke execute on procedure dialogue.erase_prompt_blocks(uuid, uuid[], uuid[]) from public;

-- Deletes these bundles, as `delete_bundles_by_id`, but not their blocks.
create procedure cognition.delete_bundle_rows(target_agent uuid, removed_ids uuid[])
language plpgsql
set search_path = pg_catalog
as $$
declare
    repeated_ids uuid[];
begin
    select array_agg(t.text_id) into repeated_ids
    from cognition.prompts as p
    join cognition.prompt_texts as t on t.agent_id = target_agent and t.text_id = any(p.text_ids) and t.kind = 'parts'
    where p.agent_id = target_agent and p.bundle_id = any(removed_ids);

    call cognition.delete_prompt_texts(target_agent, repeated_ids);
    update cognition.prompts set salt = null where agent_id = target_agent and bundle_id = any(removed_ids);
    -- wait for turns that are being stored with one of them
    perform from cognition.bundles where agent_id = target_agent and bundle_id = any(removed_ids) for update;
    update cognition.turns set bundle_id = null where agent_id = target_agent and bundle_id = any(removed_ids);
    delete from cognition.bundles where agent_id = target_agent and bundle_id = any(removed_ids);
end
$$;

revoke execute on procedure cognition.delete_bundle_rows(uuid, uuid[]) from public;

-- As before, and with the blocks of the bundles.
create or replace procedure cognition.delete_bundles_by_id(target_agent uuid, removed_ids uuid[])
language sql
set search_path = pg_catalog
as $$
    call dialogue.erase_prompt_blocks(target_agent, removed_ids, null);
    call cognition.delete_bundle_rows(target_agent, removed_ids);
$$;

-- As before, and with the blocks that state one of the memories; those that only were made from such a context stay.
create or replace procedure cognition.delete_bundles(target_agent uuid, removed_ids uuid[])
language plpgsql
set search_path = pg_catalog
as $$
declare
    bundle_ids uuid[];
begin
    select array_agg(b.bundle_id) into bundle_ids
    from cognition.bundles as b
    where b.agent_id = target_agent and b.memory_ids && removed_ids;

    call dialogue.erase_prompt_blocks(target_agent, null, removed_ids);
    call cognition.delete_bundle_rows(target_agent, bundle_ids);
end
$$;

-- As before, and with the texts of the blocks of that age, except in sessions of which a record of a prompt is left.
create or replace function cognition.delete_expired_prompts(target_agent uuid, before timestamptz) returns bigint
language plpgsql
security definer
set search_path = pg_catalog
as $$
declare
    deleted bigint;
begin
    perform runtime.check_agent_scope(target_agent);
    delete from cognition.prompts where agent_id = target_agent and created_at < before;
    get diagnostics deleted = row_count;
    delete from cognition.prompt_texts where agent_id = target_agent and used_at < before - interval '1 day';
    update dialogue.prompt_blocks
    set text = '[forgotten]', tokens = 0, bundle_id = null, memory_ids = '{}'
    where
        agent_id = target_agent
        and created_at < before
        and text <> '[forgotten]'
        and session_id not in (select p.session_id from cognition.prompts as p where p.agent_id = target_agent);
    return deleted;
end
$$;

alter table cognition.prompt_texts
    drop constraint prompt_texts_kind_check,
    add constraint prompt_texts_kind_check check (
        kind in ('edition', 'fixed', 'instructions', 'tools', 'options', 'cut', 'calls', 'parts', 'injected', 'own', 'block')
    );

comment on column cognition.prompt_texts.kind is
'edition: the messages before an input, as references. fixed: a constant of Newton. instructions, tools, options: of
the request of an API caller. cut, calls: a shortened message, or its tool calls. parts: a message with attachments.
injected: messages of another session. own: a text that the model wrote before it called a tool. block: a system message
or a memory block that was not sent again, because the model refused the prompt.';

-- How much of a prompt the one before it in the session had, and what was the first to differ.
alter table cognition.prompts
    add column message_chars integer check (message_chars >= 0),
    add column identical_chars integer check (identical_chars between 0 and message_chars),
    add column difference text check (difference <> '');

comment on column cognition.prompts.message_chars is
'Characters of the messages as JSON; null, with identical_chars, if there was no earlier prompt to compare with.';
comment on column cognition.prompts.identical_chars is 'Of the messages at the start that the prompt before it had too.';
comment on column cognition.prompts.difference is
'Why a message of the prompt before it was not sent in its place; null if all were.';
