-- Each erasing procedure that the application may call is a function whose first argument is the agent, because a
-- distributed database runs such a function on the node of the agent: there the rights of the owner apply in the same
-- transaction. An expression of a column in an UPDATE is immutable for the same reason.

-- Raises an error if the given agent is not the one in scope. Each function with the rights of the owner, which row level
-- security may not restrict, calls it first.
create function runtime.check_agent_scope(target_agent uuid) returns void
language plpgsql
stable
parallel safe
as $$
begin
    if target_agent is distinct from nullif(current_setting('newton.agent_id', true), '')::uuid then
        raise insufficient_privilege using message = 'The agent is not in scope.';
    end if;
end
$$;

create function dialogue.redact_tool_calls(tool_calls jsonb, call_id text) returns jsonb
language sql
immutable
parallel safe
return (
    select
        jsonb_agg(
            case
                when call_id is null or c.value ->> 'id' = call_id
                    then jsonb_build_object('id', c.value -> 'id', 'name', 'forgotten', 'arguments', '{}')
                else c.value
            end
        )
    from jsonb_array_elements(tool_calls) as c
);

create function dialogue.has_tool_call(tool_calls jsonb, call_id text) returns boolean
language sql
immutable
parallel safe
return tool_calls @> jsonb_build_array(jsonb_build_object('id', call_id));

-- Deletes texts of prompts, and the salts with which the hashes of the prompts that contained them could be checked.
-- Only the erasing procedures may call it. Row level security applies.
create procedure cognition.delete_prompt_texts(target_agent uuid, removed_ids uuid[])
language sql
set search_path = pg_catalog
as $$
    update cognition.prompts set salt = null where agent_id = target_agent and text_ids && removed_ids;
    delete from cognition.prompt_texts where agent_id = target_agent and text_id = any(removed_ids);
$$;

revoke execute on procedure cognition.delete_prompt_texts(uuid, uuid[]) from public;

-- Deletes these bundles, the salts of the prompts that contained them, and the texts of those prompts that repeat the
-- context. Only the erasing procedures may call it. Row level security applies.
create procedure cognition.delete_bundles_by_id(target_agent uuid, removed_ids uuid[])
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

revoke execute on procedure cognition.delete_bundles_by_id(uuid, uuid[]) from public;

-- Deletes every bundle that contains one of these memories; a bundle's text cannot be edited. Only the erasing
-- procedures may call it. Row level security applies.
create procedure cognition.delete_bundles(target_agent uuid, removed_ids uuid[])
language plpgsql
set search_path = pg_catalog
as $$
declare
    bundle_ids uuid[];
begin
    select array_agg(b.bundle_id) into bundle_ids
    from cognition.bundles as b
    where b.agent_id = target_agent and b.memory_ids && removed_ids;

    call cognition.delete_bundles_by_id(target_agent, bundle_ids);
end
$$;

revoke execute on procedure cognition.delete_bundles(uuid, uuid[]) from public;

-- Deletes records of prompts of the agent in scope that are older than a moment, and the texts that were last used a day
-- or more before it, because used_at is updated once a day.
create function cognition.delete_expired_prompts(target_agent uuid, before timestamptz) returns bigint
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
    return deleted;
end
$$;

revoke execute on function cognition.delete_expired_prompts(uuid, timestamptz) from public;
grant execute on function cognition.delete_expired_prompts(uuid, timestamptz) to newton_app;

-- Deletes bundles of the agent in scope that are older than a moment, except those that a record of a prompt needs.
create function cognition.delete_expired_bundles(target_agent uuid, before timestamptz) returns bigint
language plpgsql
security definer
set search_path = pg_catalog
as $$
declare
    removed_ids uuid[];
begin
    perform runtime.check_agent_scope(target_agent);
    removed_ids := array(
        select b.bundle_id
        from cognition.bundles as b
        where
            b.agent_id = target_agent
            and b.created_at < before
            and b.bundle_id not in (
                select p.bundle_id
                from cognition.prompts as p
                where p.agent_id = target_agent and p.bundle_id is not null
            )
        for update
    );
    update cognition.turns set bundle_id = null where agent_id = target_agent and bundle_id = any(removed_ids);
    delete from cognition.bundles where agent_id = target_agent and bundle_id = any(removed_ids);
    return cardinality(removed_ids);
end
$$;

revoke execute on function cognition.delete_expired_bundles(uuid, timestamptz) from public;
grant execute on function cognition.delete_expired_bundles(uuid, timestamptz) to newton_app;

-- Deletes the rows of these memories in all tables that hold them by their id. Only the erasing procedures may call it. Row
-- level security applies.
create procedure memory.delete_memories(target_agent uuid, removed_ids uuid[])
language plpgsql
set search_path = pg_catalog
as $$
declare
    table_name text;
begin
    delete from memory.links where agent_id = target_agent and (memory_id = any(removed_ids) or other_id = any(removed_ids));
    delete from memory.sources where agent_id = target_agent and (memory_id = any(removed_ids) or source_id = any(removed_ids));
    delete from heart.entity_names where agent_id = target_agent and entity_id = any(removed_ids);
    delete from heart.mentions where agent_id = target_agent and (memory_id = any(removed_ids) or entity_id = any(removed_ids));
    foreach table_name in array array[
        'heart.activations', 'heart.relations', 'heart.entities', 'heart.events', 'heart.passages', 'heart.items',
        'heart.censors', 'heart.procedures', 'heart.episodes', 'heart.facts', 'memory.confirmations', 'memory.transitions', 'memory.edits',
        'memory.archived_texts', 'memory.line_summaries', 'memory.memory_versions', 'memory.postings',
        'memory.window_embeddings', 'memory.windows', 'memory.embeddings', 'memory.outbox', 'memory.mentioned_times', 'memory.standing_statements',
        'memory.memories'
    ] loop
        execute format('delete from %s where agent_id = $1 and memory_id = any($2)', table_name) using target_agent, removed_ids;
    end loop;
end
$$;

revoke execute on procedure memory.delete_memories(uuid, uuid[]) from public;

-- Deletes the memories listed in memory.forgotten, of the agent in scope. The application has no right to delete
-- memories itself; it must record a tombstone first.
create function memory.forget(target_agent uuid) returns void
language plpgsql
security definer
set search_path = pg_catalog
as $$
declare
    removed_ids uuid[];
    removed_tenets uuid[];
    removed_bundles uuid[];
    removed_texts uuid[];
    affected record;
    entry record;
begin
    perform runtime.check_agent_scope(target_agent);
    select array_agg(m.memory_id) into removed_ids
    from memory.memories as m
    join memory.forgotten as f on f.agent_id = target_agent and f.memory_id = m.memory_id
    where m.agent_id = target_agent;

    if removed_ids is null then
        return;
    end if;

    -- a bundle whose input was a forgotten message repeats it
    select array_agg(b.bundle_id) into removed_bundles
    from cognition.bundles as b
    cross join memory.memories as m
    join dialogue.messages as d on d.agent_id = target_agent and d.session_id = m.thread_id and d.position = m.position
    where
        m.agent_id = target_agent
        and m.memory_id = any(removed_ids)
        and m.kind = 'exchange'
        and b.agent_id = target_agent
        and b.session_id = m.thread_id
        and b.input = d.content;
    call cognition.delete_bundles_by_id(target_agent, removed_bundles);

    -- texts of prompts that were made from a forgotten message, that are a part of it, or that repeat it or another
    -- forgotten memory
    select array_agg(t.text_id) into removed_texts
    from cognition.prompt_texts as t
    where
        t.agent_id = target_agent
        and t.kind not in ('edition', 'fixed')
        and exists (
            select
            from memory.memories as m
            left join dialogue.messages as d
                on m.kind = 'exchange' and d.agent_id = target_agent and d.session_id = m.thread_id and d.position = m.position
            where
                m.agent_id = target_agent
                and m.memory_id = any(removed_ids)
                and (
                    (
                        m.position between t.first_position and t.last_position
                        and (
                            t.session_id = m.thread_id
                            or exists (
                                select
                                from dialogue.lineage as l
                                where
                                    l.agent_id = target_agent
                                    and l.session_id = t.session_id
                                    and l.ancestor_id = m.thread_id
                                    and m.position between l.first_position and l.last_position
                            )
                        )
                    )
                    or (t.kind = 'own' and strpos(d.content, t.content) > 0)
                    -- a short text occurs in others by chance
                    or (
                        (t.kind = 'injected' or length(d.content) >= 8)
                        and strpos(t.content, nullif(d.content, '')) > 0
                    )
                    or strpos(t.content, nullif(regexp_replace(m.summary, '^\[[0-9-]+\] ', ''), '')) > 0
                    or strpos(t.content, nullif(m.full_text, '')) > 0
                )
        );
    call cognition.delete_prompt_texts(target_agent, removed_texts);

    -- the hash of a prompt that contained a forgotten message, or a message after it
    update cognition.prompts as p
    set salt = null
    from memory.memories as m
    where
        m.agent_id = target_agent
        and m.memory_id = any(removed_ids)
        and m.kind = 'exchange'
        and p.agent_id = target_agent
        and p.input_position >= m.position
        and (
            p.session_id = m.thread_id
            or exists (
                select
                from dialogue.lineage as l
                where
                    l.agent_id = target_agent
                    and l.session_id = p.session_id
                    and l.ancestor_id = m.thread_id
                    and m.position between l.first_position and l.last_position
            )
        );

    -- wait for a running compaction of these sessions, or make it see the deletion
    for affected in
        select m.thread_id as session_id
        from memory.memories as m
        where m.agent_id = target_agent and m.memory_id = any(removed_ids) and m.kind = 'exchange'
        union
        select l.session_id
        from memory.memories as m
        join dialogue.lineage as l
            on l.agent_id = target_agent
            and l.ancestor_id = m.thread_id
            and m.position between l.first_position and l.last_position
        where m.agent_id = target_agent and m.memory_id = any(removed_ids) and m.kind = 'exchange'
        order by 1
    loop
        perform pg_advisory_xact_lock(hashtextextended(target_agent::text || affected.session_id::text, 0));
    end loop;

    -- delete compaction entries that cover the message, in its session and in branches that begin after it; of an entry
    -- that was already removed the record stays, without its text
    for entry in
        select distinct e.session_id, e.entry_id, r.entry_id is not null as dropped
        from memory.memories as m
        join dialogue.compaction_entries as e on e.agent_id = target_agent and m.position between e.first_position and e.last_position
        left join dialogue.entry_restorations as r
            on r.agent_id = target_agent and r.session_id = e.session_id and r.entry_id = e.entry_id
        where
            m.agent_id = target_agent
            and m.memory_id = any(removed_ids)
            and m.kind = 'exchange'
            and (
                e.session_id = m.thread_id
                or exists (
                    select
                    from dialogue.lineage as l
                    where
                        l.agent_id = target_agent
                        and l.session_id = e.session_id
                        and l.ancestor_id = m.thread_id
                        and m.position between l.first_position and l.last_position
                )
            )
    loop
        if entry.dropped then
            update dialogue.compaction_entries as e
            set text = '[forgotten]', tokens = 1
            where e.agent_id = target_agent and e.session_id = entry.session_id and e.entry_id = entry.entry_id;
        else
            delete from dialogue.compaction_entries as e
            where e.agent_id = target_agent and e.session_id = entry.session_id and e.entry_id = entry.entry_id;
        end if;
    end loop;

    -- an item of a brief is deleted with the message that said it; one whose closing message is deleted is open again
    delete from dialogue.brief_closings as c
    where
        c.agent_id = target_agent
        and (
            c.memory_id = any(removed_ids)
            or exists (
                select
                from dialogue.brief_items as i
                where
                    i.agent_id = target_agent
                    and i.memory_id = any(removed_ids)
                    and (i.item_id = c.item_id or i.item_id = c.replaced_by)
            )
        );
    delete from dialogue.brief_items as i where i.agent_id = target_agent and i.memory_id = any(removed_ids);

    -- a task keeps its place in the tree; entries that summarize it are deleted and written again later without it
    delete from dialogue.compaction_entries as e
    using dialogue.tasks as t
    join dialogue.task_transitions as s
        on s.agent_id = target_agent
        and s.session_id = t.session_id
        and s.task_id = t.task_id
        and s.to_status in ('complete', 'failed')
    where
        t.agent_id = target_agent
        and t.task_id = any(removed_ids)
        and e.agent_id = target_agent
        and e.kind in ('task', 'goals', 'merged')
        and e.first_position <= s.position
        and e.last_position >= t.first_position
        and (
            e.session_id = t.session_id
            or exists (
                select
                from dialogue.lineage as l
                where l.agent_id = target_agent and l.session_id = e.session_id and l.ancestor_id = t.session_id
            )
        );
    update cognition.prompts as p
    set salt = null
    from dialogue.tasks as t
    where
        t.agent_id = target_agent
        and t.task_id = any(removed_ids)
        and p.agent_id = target_agent
        and (
            p.session_id = t.session_id
            or exists (
                select
                from dialogue.lineage as l
                where l.agent_id = target_agent and l.session_id = p.session_id and l.ancestor_id = t.session_id
            )
        );
    update dialogue.tasks set goal = '[forgotten]' where agent_id = target_agent and task_id = any(removed_ids);
    update dialogue.task_transitions set text = '[forgotten]'
    where agent_id = target_agent and task_id = any(removed_ids) and text is not null;

    delete from dialogue.artifact_versions as a
    using memory.memories as m
    where
        m.agent_id = target_agent
        and m.memory_id = any(removed_ids)
        and m.kind = 'exchange'
        and a.agent_id = target_agent
        and a.session_id = m.thread_id
        and a.position = m.position;

    -- a message keeps its position, so that the positions of others stay valid, and its tool call ids, because models
    -- reject a conversation whose calls and results do not match
    update dialogue.messages as d
    set
        content = '[forgotten]',
        name = null,
        tool_calls = dialogue.redact_tool_calls(d.tool_calls, null),
        tokens = 1
    from memory.memories as m
    where
        m.agent_id = target_agent
        and m.memory_id = any(removed_ids)
        and m.kind = 'exchange'
        and d.agent_id = target_agent
        and d.session_id = m.thread_id
        and d.position = m.position;

    -- a tool result may repeat the arguments of its call, and a call has no memory of its own
    update dialogue.messages as d
    set
        tool_calls = dialogue.redact_tool_calls(d.tool_calls, tool_message.tool_call_id)
    from memory.memories as m
    join dialogue.messages as tool_message on tool_message.agent_id = target_agent and tool_message.session_id = m.thread_id and tool_message.position = m.position
    where
        m.agent_id = target_agent
        and m.memory_id = any(removed_ids)
        and m.kind = 'exchange'
        and d.agent_id = target_agent
        and d.session_id = tool_message.session_id
        and d.position < tool_message.position
        and dialogue.has_tool_call(d.tool_calls, tool_message.tool_call_id);

    -- notices that quote a forgotten memory: found by the bundle they quote from, or by their text if that bundle is
    -- gone
    with notice as (
        update dialogue.messages as d
        set content = '[forgotten]', tokens = 1
        where
            d.agent_id = target_agent
            and d.is_notice
            and (
                exists (
                    select
                    from cognition.turns as t
                    join cognition.bundles as b on b.agent_id = target_agent and b.bundle_id = t.bundle_id
                    where
                        t.agent_id = target_agent
                        and t.session_id = d.session_id
                        and t.reply_position = d.position
                        and b.memory_ids && removed_ids
                )
                or exists (
                    select
                    from memory.memories as m
                    where
                        m.agent_id = target_agent
                        and m.memory_id = any(removed_ids)
                        and strpos(d.content, regexp_replace(m.summary, '^\[[0-9-]+\] ', '')) > 0
                )
            )
        returning d.session_id, d.position
    )
    update cognition.prompts as p
    set salt = null
    from notice as n
    where p.agent_id = target_agent and p.session_id = n.session_id and p.input_position <= n.position;

    -- proposals from the message that were never accepted; what a person accepted into the identity is erased separately
    select array_agg(t.tenet_id) into removed_tenets
    from heart.tenets as t
    join heart.proposals as p on p.agent_id = target_agent and p.tenet_id = t.tenet_id and p.state <> 'ACCEPTED'
    join memory.memories as m
        on m.agent_id = target_agent and m.memory_id = any(removed_ids) and m.thread_id = t.session_id and m.position = t.position
    where t.agent_id = target_agent and m.kind = 'exchange';
    call heart.redact_tenets(target_agent, removed_tenets);

    call cognition.delete_bundles(target_agent, removed_ids);

    call memory.delete_memories(target_agent, removed_ids);
end
$$;

revoke execute on function memory.forget(uuid) from public;
grant execute on function memory.forget(uuid) to newton_app;

-- Merges an entity into another one, of the agent in scope: its mentions and relations become those of the kept entity, and
-- the entity is deleted. A relation that the kept entity has already receives the evidence instead, and a relation between
-- both is deleted. `hashes` are the new content hashes of the relations `relation_ids`. The application has no right to
-- delete entities itself; names, aliases and texts are its part. Deleted memories leave a tombstone.
create function heart.merge_entities(
    target_agent uuid, kept uuid, merged uuid, relation_ids uuid[], hashes bytea[], merged_at timestamptz, merged_through text
) returns void
language plpgsql
security definer
set search_path = pg_catalog
as $$
declare
    known record;
    removed_ids uuid[] := array[merged];
begin
    perform runtime.check_agent_scope(target_agent);
    if kept = merged then
        return;
    end if;

    for known in
        select r.memory_id, k.memory_id as kept_relation
        from heart.relations as r
        left join heart.relations as k
            on k.agent_id = target_agent
            and k.source_id = case r.source_id when merged then kept else r.source_id end
            and k.type = r.type
            and k.target_id = case r.target_id when merged then kept else r.target_id end
        where
            r.agent_id = target_agent
            and (r.source_id = merged or r.target_id = merged)
            and (k.memory_id is not null or r.source_id = kept or r.target_id = kept)
    loop
        removed_ids := removed_ids || known.memory_id;
        insert into memory.links (agent_id, memory_id, link, other_id, created_at)
        select target_agent, l.memory_id, l.link, known.kept_relation, l.created_at
        from memory.links as l
        where l.agent_id = target_agent and l.other_id = known.memory_id and l.link = 'evidence' and known.kept_relation is not null
        on conflict do nothing;
        insert into memory.confirmations (agent_id, memory_id, ref, confirmed_at, origin, trust, source)
        select target_agent, known.kept_relation, c.ref, c.confirmed_at, c.origin, c.trust, c.source
        from memory.confirmations as c
        where c.agent_id = target_agent and c.memory_id = known.memory_id and known.kept_relation is not null
        on conflict do nothing;
    end loop;

    update heart.relations set source_id = kept
    where agent_id = target_agent and source_id = merged and memory_id <> all(removed_ids);
    update heart.relations set target_id = kept
    where agent_id = target_agent and target_id = merged and memory_id <> all(removed_ids);
    update memory.memories as m
    set content_hash = h.hash
    from unnest(relation_ids, hashes) as h (memory_id, hash)
    where
        m.agent_id = target_agent
        and m.memory_id = h.memory_id
        and m.kind = 'relation'
        and m.memory_id <> all(removed_ids);

    insert into heart.mentions (agent_id, entity_id, memory_id)
    select target_agent, kept, n.memory_id
    from heart.mentions as n
    where n.agent_id = target_agent and n.entity_id = merged
    on conflict do nothing;
    update heart.entities as e
    set
        mentions = (
            select count(*)
            from heart.mentions as n
            where n.agent_id = target_agent and n.entity_id = kept
        ),
        mentioned_at = greatest(e.mentioned_at, o.mentioned_at)
    from heart.entities as o
    where e.agent_id = target_agent and e.memory_id = kept and o.agent_id = target_agent and o.memory_id = merged;

    insert into memory.forgotten (agent_id, memory_id, kind, forgotten_at, reason, origin)
    select target_agent, m.memory_id, m.kind, merged_at, 'merged into the entity ' || kept, merged_through
    from memory.memories as m
    where m.agent_id = target_agent and m.memory_id = any(removed_ids)
    on conflict do nothing;
    call memory.delete_memories(target_agent, removed_ids);
end
$$;

revoke execute on function heart.merge_entities(uuid, uuid, uuid, uuid[], bytea[], timestamptz, text) from public;
grant execute on function heart.merge_entities(uuid, uuid, uuid, uuid[], bytea[], timestamptz, text) to newton_app;

-- Erases the texts of decisions with an erasure record, of the agent in scope. The application has no right to delete
-- them itself. Records and hashes stay, so the chain still verifies.
create function brain.erase_decisions(target_agent uuid) returns void
language plpgsql
security definer
set search_path = pg_catalog
as $$
declare
    removed_ids uuid[];
    table_name text;
begin
    perform runtime.check_agent_scope(target_agent);
    delete from brain.decision_texts as t
    using brain.decision_records as e
    where
        t.agent_id = target_agent
        and e.agent_id = target_agent
        and e.kind = 'erasure'
        and e.body -> 'erased' ? t.record_id::text;

    -- all texts in memory.memories are derived from the decision's texts
    select array_agg(d.record_id) into removed_ids
    from brain.decision_records as d
    where
        d.agent_id = target_agent
        and d.kind = 'decision'
        and exists (
            select
            from brain.decision_records as e
            where
                e.agent_id = target_agent
                and e.kind = 'erasure'
                and e.decision_id = d.record_id
                and e.body -> 'erased' ? d.record_id::text
        );

    if removed_ids is null then
        return;
    end if;

    update memory.memories
    set micro = '[erased]', summary = '[erased]', full_text = '[erased]', word_count = 0
    where agent_id = target_agent and memory_id = any(removed_ids) and full_text <> '[erased]';

    call cognition.delete_bundles(target_agent, removed_ids);

    foreach table_name in array array[
        'memory.archived_texts', 'memory.memory_versions', 'memory.postings', 'memory.window_embeddings', 'memory.windows',
        'memory.embeddings', 'memory.outbox'
    ] loop
        execute format('delete from %s where agent_id = $1 and memory_id = any($2)', table_name) using target_agent, removed_ids;
    end loop;
end
$$;

revoke execute on function brain.erase_decisions(uuid) from public;
grant execute on function brain.erase_decisions(uuid) to newton_app;

-- Removes the text of these tenets and the reasons for changing them. Only the erasing procedures may call it. Row level
-- security applies.
create procedure heart.redact_tenets(target_agent uuid, tenet_ids uuid[])
language sql
set search_path = pg_catalog
as $$
    update heart.tenets set text = null, tokens = null where agent_id = target_agent and tenet_id = any(tenet_ids);
    update heart.identity_versions set reason = null where agent_id = target_agent and tenet_id = any(tenet_ids) and change <> 'erased';
    update heart.proposals set state = 'REJECTED', normalized_hash = null
    where agent_id = target_agent and tenet_id = any(tenet_ids) and state = 'PROPOSED';
    call cognition.delete_bundles(target_agent, tenet_ids);
$$;

revoke execute on procedure heart.redact_tenets(uuid, uuid[]) from public;

-- Erases the tenets that an identity version marks as erased, of the agent in scope. The application has no right to do
-- so itself.
create function heart.erase_tenets(target_agent uuid) returns void
language plpgsql
security definer
set search_path = pg_catalog
as $$
declare
    removed_ids uuid[];
begin
    perform runtime.check_agent_scope(target_agent);
    select array_agg(t.tenet_id) into removed_ids
    from heart.tenets as t
    join heart.identity_versions as i on i.agent_id = target_agent and i.tenet_id = t.tenet_id and i.change = 'erased'
    where t.agent_id = target_agent and t.text is not null;

    if removed_ids is not null then
        call heart.redact_tenets(target_agent, removed_ids);
    end if;
end
$$;

revoke execute on function heart.erase_tenets(uuid) from public;
grant execute on function heart.erase_tenets(uuid) to newton_app;

-- Deletes everything of the agent in scope except its events, which `runtime.clear_events` deletes at the end. The
-- caller logs the deletion elsewhere first.
create function runtime.erase_agent(target_agent uuid) returns void
language plpgsql
security definer
set search_path = pg_catalog
as $$
declare
    target_table regclass;
begin
    perform runtime.check_agent_scope(target_agent);
    for target_table in select target from runtime.agent_tables() with ordinality as t (target, ordinal) order by ordinal desc loop
        continue when target_table in ('runtime.agents'::regclass, 'runtime.tokens'::regclass, 'runtime.events'::regclass);
        execute format('delete from %s where agent_id = $1', target_table) using target_agent;
    end loop;
end
$$;

revoke execute on function runtime.erase_agent(uuid) from public;
grant execute on function runtime.erase_agent(uuid) to newton_app;

-- Deletes the agent in scope: everything that `runtime.erase_agent` deletes, its tokens, its events and its name.
create function runtime.delete_agent(target_agent uuid) returns void
language plpgsql
security definer
set search_path = pg_catalog
as $$
begin
    perform runtime.check_agent_scope(target_agent);
    perform runtime.erase_agent(target_agent);
    delete from runtime.tokens where agent_id = target_agent;
    delete from runtime.events where agent_id = target_agent;
    delete from runtime.agents where agent_id = target_agent;
end
$$;

revoke execute on function runtime.delete_agent(uuid) from public;
grant execute on function runtime.delete_agent(uuid) to newton_app;

-- Deletes a document of the agent in scope of which no passage is left. The passages are forgotten first.
create function heart.delete_document(target_agent uuid, target_document uuid) returns void
language sql
security definer
set search_path = pg_catalog
as $$
    select runtime.check_agent_scope(target_agent);
    delete from heart.documents as d
    where
        d.agent_id = target_agent
        and d.document_id = target_document
        and not exists (
            select
            from heart.passages as p
            where p.agent_id = target_agent and p.document_id = target_document
        );
$$;

revoke execute on function heart.delete_document(uuid, uuid) from public;
grant execute on function heart.delete_document(uuid, uuid) to newton_app;

-- Deletes the vectors of inactive models, of the agent in scope.
create function memory.delete_inactive_embeddings(target_agent uuid) returns void
language sql
security definer
set search_path = pg_catalog
as $$
    select runtime.check_agent_scope(target_agent);
    delete from memory.embeddings as e
    using memory.active_models as a
    where
        a.agent_id = target_agent
        and e.agent_id = target_agent
        and e.model_id <> a.model_id;
    delete from memory.window_embeddings as e
    using memory.active_models as a
    where
        a.agent_id = target_agent
        and e.agent_id = target_agent
        and e.model_id <> a.model_id;
    delete from dialogue.artifact_vectors as e
    using memory.active_models as a
    where
        a.agent_id = target_agent
        and e.agent_id = target_agent
        and e.model_id <> a.model_id;
$$;

revoke execute on function memory.delete_inactive_embeddings(uuid) from public;
grant execute on function memory.delete_inactive_embeddings(uuid) to newton_app;

-- Redacts texts about somebody outside of memories: task goals, document titles, items, artifacts, texts in the contexts of
-- sessions, bundles (which contain their input), texts of prompts and, where they match the pattern, names of sessions and
-- checkpoints, labels of responses and the reasons in memory.forgotten. Of the agent in scope; only ids listed in
-- memory.forgotten.
create function memory.redact_references(target_agent uuid, ids uuid[], pattern text) returns void
language plpgsql
security definer
set search_path = pg_catalog
as $$
declare
    redacted_ids uuid[];
    affected record;
begin
    perform runtime.check_agent_scope(target_agent);
    select array_agg(f.memory_id) into redacted_ids
    from memory.forgotten as f
    where f.agent_id = target_agent and f.memory_id = any(ids);

    call cognition.delete_bundles_by_id(target_agent, redacted_ids);
    call cognition.delete_prompt_texts(target_agent, redacted_ids);
    delete from dialogue.context_injections where agent_id = target_agent and injection_id = any(redacted_ids);
    delete from dialogue.artifact_versions where agent_id = target_agent and artifact_id = any(redacted_ids);
    update dialogue.tasks set goal = '[forgotten]' where agent_id = target_agent and task_id = any(redacted_ids);
    update dialogue.task_transitions set text = '[forgotten]'
    where agent_id = target_agent and task_id = any(redacted_ids) and text is not null;
    update heart.documents set title = '[forgotten]', ref = '[forgotten] ' || document_id::text
    where agent_id = target_agent and document_id = any(redacted_ids);
    delete from heart.items where agent_id = target_agent and item_id = any(redacted_ids);
    update dialogue.sessions set ref = '[forgotten] ' || session_id::text
    where agent_id = target_agent and session_id = any(redacted_ids) and ref ~ pattern;
    for affected in
        select c.session_id, c.name, '[forgotten] ' || gen_random_uuid() as redacted_name
        from dialogue.checkpoints as c
        where c.agent_id = target_agent and c.session_id = any(redacted_ids) and c.name ~ pattern
    loop
        update dialogue.checkpoints set name = affected.redacted_name
        where agent_id = target_agent and session_id = affected.session_id and name = affected.name;
    end loop;
    update dialogue.responses set metadata = '{}'
    where agent_id = target_agent and response_id = any(redacted_ids) and metadata::text ~ pattern;
    update memory.forgotten set reason = '[forgotten]'
    where agent_id = target_agent and memory_id = any(redacted_ids) and reason ~ pattern;
end
$$;

revoke execute on function memory.redact_references(uuid, uuid[], text) from public;
grant execute on function memory.redact_references(uuid, uuid[], text) to newton_app;

