-- A context that held one of these memories goes as a whole: its text cannot be taken apart. Only procedures that erase
-- may call it; row level security holds in it as everywhere.
create procedure cognition.delete_bundles(target_agent uuid, removed_ids uuid[])
language sql
set search_path = pg_catalog
as $$
    delete from cognition.bundles
    where agent_id = target_agent and memory_ids && removed_ids;
$$;

revoke execute on procedure cognition.delete_bundles(uuid, uuid[]) from public;

-- Contexts that were made before a moment go, of the agent in scope.
create function cognition.delete_expired_bundles(target_agent uuid, before timestamptz) returns bigint
language plpgsql
security definer
set search_path = pg_catalog
as $$
declare
    scoped_agent uuid := nullif(current_setting('newton.agent_id', true), '')::uuid; -- the scope counts, whatever was passed
    deleted bigint;
begin
    delete from cognition.bundles where scoped_agent = target_agent and agent_id = scoped_agent and created_at < before;
    get diagnostics deleted = row_count;
    return deleted;
end
$$;

revoke execute on function cognition.delete_expired_bundles(uuid, timestamptz) from public;
grant execute on function cognition.delete_expired_bundles(uuid, timestamptz) to newton_app;

-- Takes away the memories that are in memory.forgotten. The application may delete nothing by itself, and through this
-- only what it has written down first, of the agent in scope.
create procedure memory.forget(target_agent uuid)
language plpgsql
security definer
set search_path = pg_catalog
as $$
declare
    scoped_agent uuid := nullif(current_setting('newton.agent_id', true), '')::uuid; -- the scope counts, whatever was passed
    removed_ids uuid[];
    removed_tenets uuid[];
    table_name text;
    affected record;
    entry record;
begin
    select array_agg(m.memory_id) into removed_ids
    from memory.memories as m
    join memory.forgotten as f on f.agent_id = scoped_agent and f.memory_id = m.memory_id
    where m.agent_id = scoped_agent and scoped_agent = target_agent;

    if removed_ids is null then
        return;
    end if;

    -- a context that was made for a forgotten line says it as its input
    delete from cognition.bundles as b
    using memory.memories as m
    join dialogue.messages as d on d.agent_id = scoped_agent and d.session_id = m.thread_id and d.position = m.position
    where
        m.agent_id = scoped_agent
        and m.memory_id = any(removed_ids)
        and m.kind = 'exchange'
        and b.agent_id = scoped_agent
        and b.session_id = m.thread_id
        and b.input = d.content;

    -- whoever makes one of these conversations shorter is waited for, or sees then what is gone
    for affected in
        select m.thread_id as session_id
        from memory.memories as m
        where m.agent_id = scoped_agent and m.memory_id = any(removed_ids) and m.kind = 'exchange'
        union
        select l.session_id
        from memory.memories as m
        join dialogue.lineage as l
            on l.agent_id = scoped_agent
            and l.ancestor_id = m.thread_id
            and m.position between l.first_position and l.last_position
        where m.agent_id = scoped_agent and m.memory_id = any(removed_ids) and m.kind = 'exchange'
        order by 1
    loop
        perform pg_advisory_xact_lock(hashtextextended(scoped_agent::text || affected.session_id::text, 0));
    end loop;

    -- what tells of it in fewer words goes, in its session and in those that branch off behind it; of what was dropped
    -- before it stays known that it was, without its words
    for entry in
        select distinct e.session_id, e.entry_id, r.entry_id is not null as dropped
        from memory.memories as m
        join dialogue.compaction_entries as e on e.agent_id = scoped_agent and m.position between e.first_position and e.last_position
        left join dialogue.entry_restorations as r
            on r.agent_id = scoped_agent and r.session_id = e.session_id and r.entry_id = e.entry_id
        where
            m.agent_id = scoped_agent
            and m.memory_id = any(removed_ids)
            and m.kind = 'exchange'
            and (
                e.session_id = m.thread_id
                or exists (
                    select
                    from dialogue.lineage as l
                    where
                        l.agent_id = scoped_agent
                        and l.session_id = e.session_id
                        and l.ancestor_id = m.thread_id
                        and m.position between l.first_position and l.last_position
                )
            )
    loop
        if entry.dropped then
            update dialogue.compaction_entries as e
            set text = '[forgotten]', tokens = 1
            where e.agent_id = scoped_agent and e.session_id = entry.session_id and e.entry_id = entry.entry_id;
        else
            delete from dialogue.compaction_entries as e
            where e.agent_id = scoped_agent and e.session_id = entry.session_id and e.entry_id = entry.entry_id;
        end if;
    end loop;

    -- of a task its place in the tree stays; what told it in short may tell it no more, and is told anew without it
    delete from dialogue.compaction_entries as e
    using dialogue.tasks as t
    join dialogue.task_transitions as s
        on s.agent_id = scoped_agent
        and s.session_id = t.session_id
        and s.task_id = t.task_id
        and s.to_status in ('complete', 'failed')
    where
        t.agent_id = scoped_agent
        and t.task_id = any(removed_ids)
        and e.agent_id = scoped_agent
        and e.kind in ('task', 'goals', 'merged')
        and e.first_position <= s.position
        and e.last_position >= t.first_position
        and (
            e.session_id = t.session_id
            or exists (
                select
                from dialogue.lineage as l
                where l.agent_id = scoped_agent and l.session_id = e.session_id and l.ancestor_id = t.session_id
            )
        );
    update dialogue.tasks set goal = '[forgotten]' where agent_id = scoped_agent and task_id = any(removed_ids);
    update dialogue.task_transitions set text = '[forgotten]'
    where agent_id = scoped_agent and task_id = any(removed_ids) and text is not null;

    -- of a line of dialogue its place stays, so that the lines beside it keep theirs; and which call is answered where,
    -- because no model reads a conversation in which they do not match
    update dialogue.messages as d
    set
        content = '[forgotten]',
        name = null,
        tool_calls = (
            select jsonb_agg(jsonb_build_object('id', c.value -> 'id', 'name', 'forgotten', 'arguments', '{}'))
            from jsonb_array_elements(d.tool_calls) as c
        ),
        tokens = 1
    from memory.memories as m
    where
        m.agent_id = scoped_agent
        and m.memory_id = any(removed_ids)
        and m.kind = 'exchange'
        and d.agent_id = scoped_agent
        and d.session_id = m.thread_id
        and d.position = m.position;

    -- what a tool put out may say again what it was called with, and the call has no memory of its own
    update dialogue.messages as d
    set
        tool_calls = (
            select
                jsonb_agg(
                    case
                        when c.value ->> 'id' = tool_message.tool_call_id
                            then jsonb_build_object('id', c.value -> 'id', 'name', 'forgotten', 'arguments', '{}')
                        else c.value
                    end
                )
            from jsonb_array_elements(d.tool_calls) as c
        )
    from memory.memories as m
    join dialogue.messages as tool_message on tool_message.agent_id = scoped_agent and tool_message.session_id = m.thread_id and tool_message.position = m.position
    where
        m.agent_id = scoped_agent
        and m.memory_id = any(removed_ids)
        and m.kind = 'exchange'
        and d.agent_id = scoped_agent
        and d.session_id = tool_message.session_id
        and d.position < tool_message.position
        and d.tool_calls @> jsonb_build_array(jsonb_build_object('id', tool_message.tool_call_id));

    -- what Newton quoted of it, by the context that it quoted from, and by the words where that context is gone
    update dialogue.messages as d
    set content = '[forgotten]', tokens = 1
    where
        d.agent_id = scoped_agent
        and d.is_notice
        and (
            exists (
                select
                from cognition.turns as t
                join cognition.bundles as b on b.agent_id = scoped_agent and b.bundle_id = t.bundle_id
                where
                    t.agent_id = scoped_agent
                    and t.session_id = d.session_id
                    and t.reply_position = d.position
                    and b.memory_ids && removed_ids
            )
            or exists (
                select
                from memory.memories as m
                where
                    m.agent_id = scoped_agent
                    and m.memory_id = any(removed_ids)
                    and strpos(d.content, regexp_replace(m.summary, '^\[[0-9-]+\] ', '')) > 0
            )
        );

    -- what was heard in it and never accepted goes too; what a person took into the identity is theirs to erase
    select array_agg(t.tenet_id) into removed_tenets
    from heart.tenets as t
    join heart.proposals as p on p.agent_id = scoped_agent and p.tenet_id = t.tenet_id and p.state <> 'ACCEPTED'
    join memory.memories as m
        on m.agent_id = scoped_agent and m.memory_id = any(removed_ids) and m.thread_id = t.session_id and m.position = t.position
    where t.agent_id = scoped_agent and m.kind = 'exchange';
    call heart.redact_tenets(scoped_agent, removed_tenets);

    call cognition.delete_bundles(scoped_agent, removed_ids);

    delete from memory.links where agent_id = scoped_agent and (memory_id = any(removed_ids) or other_id = any(removed_ids));
    delete from memory.sources where agent_id = scoped_agent and (memory_id = any(removed_ids) or source_id = any(removed_ids));
    delete from heart.entity_names where agent_id = scoped_agent and entity_id = any(removed_ids);
    delete from heart.mentions where agent_id = scoped_agent and (memory_id = any(removed_ids) or entity_id = any(removed_ids));
    foreach table_name in array array[
        'heart.activations', 'heart.relations', 'heart.entities', 'heart.events', 'heart.passages', 'heart.censors',
        'heart.procedures', 'heart.episodes', 'heart.facts', 'memory.confirmations', 'memory.transitions',
        'memory.archived_texts', 'memory.line_summaries', 'memory.memory_versions', 'memory.postings', 'memory.embeddings',
        'memory.outbox', 'memory.mentioned_times', 'memory.memories'
    ] loop
        execute format('delete from %s where agent_id = $1 and memory_id = any($2)', table_name) using scoped_agent, removed_ids;
    end loop;
end
$$;

revoke execute on procedure memory.forget(uuid) from public;
grant execute on procedure memory.forget(uuid) to newton_app;

-- Takes away the words of the decisions of which the chain says that they are erased, of the agent in scope. The
-- application may delete nothing by itself. The rows and their hashes stay, so the chain verifies as before.
create procedure brain.erase_decisions(target_agent uuid)
language plpgsql
security definer
set search_path = pg_catalog
as $$
declare
    scoped_agent uuid := nullif(current_setting('newton.agent_id', true), '')::uuid; -- the scope counts, whatever was passed
    removed_ids uuid[];
    table_name text;
begin
    delete from brain.decision_texts as t
    using brain.decision_records as e
    where
        scoped_agent = target_agent
        and t.agent_id = scoped_agent
        and e.agent_id = scoped_agent
        and e.kind = 'erasure'
        and e.body -> 'erased' ? t.record_id::text;

    -- of the words of a decision everything on the spine is made
    select array_agg(d.record_id) into removed_ids
    from brain.decision_records as d
    where
        scoped_agent = target_agent
        and d.agent_id = scoped_agent
        and d.kind = 'decision'
        and exists (
            select
            from brain.decision_records as e
            where
                e.agent_id = scoped_agent
                and e.kind = 'erasure'
                and e.decision_id = d.record_id
                and e.body -> 'erased' ? d.record_id::text
        );

    if removed_ids is null then
        return;
    end if;

    update memory.memories
    set micro = '[erased]', summary = '[erased]', full_text = '[erased]', word_count = 0
    where agent_id = scoped_agent and memory_id = any(removed_ids) and full_text <> '[erased]';

    call cognition.delete_bundles(scoped_agent, removed_ids);

    foreach table_name in array array[
        'memory.archived_texts', 'memory.memory_versions', 'memory.postings', 'memory.embeddings', 'memory.outbox'
    ] loop
        execute format('delete from %s where agent_id = $1 and memory_id = any($2)', table_name) using scoped_agent, removed_ids;
    end loop;
end
$$;

revoke execute on procedure brain.erase_decisions(uuid) from public;
grant execute on procedure brain.erase_decisions(uuid) to newton_app;

-- Takes away the words of these tenets, and what was said about changing them. Only procedures that erase may call it;
-- row level security holds in it as everywhere.
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

-- Of the tenets that some version says were erased, of the agent in scope. The application may take nothing away by itself.
create procedure heart.erase_tenets(target_agent uuid)
language plpgsql
security definer
set search_path = pg_catalog
as $$
declare
    scoped_agent uuid := nullif(current_setting('newton.agent_id', true), '')::uuid; -- the scope counts, whatever was passed
    removed_ids uuid[];
begin
    select array_agg(t.tenet_id) into removed_ids
    from heart.tenets as t
    join heart.identity_versions as i on i.agent_id = scoped_agent and i.tenet_id = t.tenet_id and i.change = 'erased'
    where t.agent_id = scoped_agent and scoped_agent = target_agent and t.text is not null;

    if removed_ids is not null then
        call heart.redact_tenets(scoped_agent, removed_ids);
    end if;
end
$$;

revoke execute on procedure heart.erase_tenets(uuid) from public;
grant execute on procedure heart.erase_tenets(uuid) to newton_app;

-- Takes an agent away with all that it was, of the agent in scope; what was told of it goes by `runtime.silence`, which is
-- for the end. Who calls it says so first, outside.
create procedure runtime.erase_agent(target_agent uuid)
language plpgsql
security definer
set search_path = pg_catalog
as $$
declare
    scoped_agent uuid := nullif(current_setting('newton.agent_id', true), '')::uuid; -- the scope counts, whatever was passed
    target_table regclass;
begin
    if scoped_agent is distinct from target_agent then
        return;
    end if;
    for target_table in select target from runtime.agent_tables() with ordinality as t (target, ordinal) order by ordinal desc loop
        continue when target_table in ('runtime.agents'::regclass, 'runtime.tokens'::regclass, 'runtime.events'::regclass);
        execute format('delete from %s where agent_id = $1', target_table) using scoped_agent;
    end loop;
end
$$;

revoke execute on procedure runtime.erase_agent(uuid) from public;
grant execute on procedure runtime.erase_agent(uuid) to newton_app;

-- Vectors of models that are not active any more go, of the agent in scope.
create procedure memory.delete_inactive_embeddings(target_agent uuid)
language sql
security definer
set search_path = pg_catalog
as $$
    delete from memory.embeddings as e
    using memory.active_models as a
    where
        a.agent_id = target_agent
        and target_agent = nullif(current_setting('newton.agent_id', true), '')::uuid
        and e.agent_id = target_agent
        and e.model_id <> a.model_id;
$$;

revoke execute on procedure memory.delete_inactive_embeddings(uuid) from public;
grant execute on procedure memory.delete_inactive_embeddings(uuid) to newton_app;

-- Words about somebody stand in what is no memory, too: the goals of tasks, the titles of documents, contexts, which hold
-- the input that they were made for, and, where they match the pattern, the names of sessions and of places in them and
-- the reasons why something was forgotten. Of the agent in scope, only what is in memory.forgotten.
create procedure memory.redact_references(target_agent uuid, ids uuid[], pattern text)
language plpgsql
security definer
set search_path = pg_catalog
as $$
declare
    scoped_agent uuid := nullif(current_setting('newton.agent_id', true), '')::uuid; -- the scope counts, whatever was passed
    redacted_ids uuid[];
begin
    select array_agg(f.memory_id) into redacted_ids
    from memory.forgotten as f
    where f.agent_id = scoped_agent and scoped_agent = target_agent and f.memory_id = any(ids);

    delete from cognition.bundles where agent_id = scoped_agent and bundle_id = any(redacted_ids);
    update dialogue.tasks set goal = '[forgotten]' where agent_id = scoped_agent and task_id = any(redacted_ids);
    update dialogue.task_transitions set text = '[forgotten]'
    where agent_id = scoped_agent and task_id = any(redacted_ids) and text is not null;
    update heart.documents set title = '[forgotten]', ref = '[forgotten] ' || document_id
    where agent_id = scoped_agent and document_id = any(redacted_ids);
    update dialogue.sessions set ref = '[forgotten] ' || session_id
    where agent_id = scoped_agent and session_id = any(redacted_ids) and ref ~* pattern;
    update dialogue.checkpoints set name = '[forgotten] ' || gen_random_uuid()
    where agent_id = scoped_agent and session_id = any(redacted_ids) and name ~* pattern;
    update memory.forgotten set reason = '[forgotten]'
    where agent_id = scoped_agent and memory_id = any(redacted_ids) and reason ~* pattern;
end
$$;

revoke execute on procedure memory.redact_references(uuid, uuid[], text) from public;
grant execute on procedure memory.redact_references(uuid, uuid[], text) to newton_app;

