-- A context that held one of these memories goes as a whole: its text cannot be taken apart. Only procedures that erase
-- may call it; row level security holds in it as everywhere.
create procedure cognition.let_go(own uuid, gone uuid[])
language sql
set search_path = pg_catalog
as $$
    delete from cognition.bundles
    where agent_id = own and memory_ids && gone;
$$;

revoke execute on procedure cognition.let_go(uuid, uuid[]) from public;

-- Contexts that were made before a moment go, of the agent in scope.
create function cognition.expire(agent uuid, moment timestamptz) returns bigint
language plpgsql
security definer
set search_path = pg_catalog
as $$
declare
    own uuid := nullif(current_setting('newton.agent_id', true), '')::uuid; -- the scope counts, whatever was passed
    gone bigint;
begin
    delete from cognition.bundles where own = agent and agent_id = own and created_at < moment;
    get diagnostics gone = row_count;
    return gone;
end
$$;

revoke execute on function cognition.expire(uuid, timestamptz) from public;
grant execute on function cognition.expire(uuid, timestamptz) to newton_app;

-- Takes away the memories that are in memory.forgotten. The application may delete nothing by itself, and through this
-- only what it has written down first, of the agent in scope.
create procedure memory.forget(agent uuid)
language plpgsql
security definer
set search_path = pg_catalog
as $$
declare
    own uuid := nullif(current_setting('newton.agent_id', true), '')::uuid; -- the scope counts, whatever was passed
    gone uuid[];
    unsaid uuid[];
    part text;
    place record;
    told record;
begin
    select array_agg(m.memory_id) into gone
    from memory.memories as m
    join memory.forgotten as f on f.agent_id = own and f.memory_id = m.memory_id
    where m.agent_id = own and own = agent;

    if gone is null then
        return;
    end if;

    -- a context that was made for a forgotten line says it as its input
    delete from cognition.bundles as b
    using memory.memories as m
    join dialogue.messages as d on d.agent_id = own and d.session_id = m.thread and d.position = m.place
    where
        m.agent_id = own
        and m.memory_id = any(gone)
        and m.kind = 'exchange'
        and b.agent_id = own
        and b.session_id = m.thread
        and b.input = d.content;

    -- whoever makes one of these conversations shorter is waited for, or sees then what is gone
    for place in
        select m.thread as session_id
        from memory.memories as m
        where m.agent_id = own and m.memory_id = any(gone) and m.kind = 'exchange'
        union
        select l.session_id
        from memory.memories as m
        join dialogue.lineage as l
            on l.agent_id = own
            and l.ancestor_id = m.thread
            and m.place between l.first_position and l.last_position
        where m.agent_id = own and m.memory_id = any(gone) and m.kind = 'exchange'
        order by 1
    loop
        perform pg_advisory_xact_lock(hashtextextended(own::text || place.session_id::text, 0));
    end loop;

    -- what tells of it in fewer words goes, in its session and in those that branch off behind it; of what was dropped
    -- before it stays known that it was, without its words
    for told in
        select distinct e.session_id, e.entry_id, r.entry_id is not null as dropped
        from memory.memories as m
        join dialogue.entries as e on e.agent_id = own and m.place between e.first_position and e.last_position
        left join dialogue.restorations as r
            on r.agent_id = own and r.session_id = e.session_id and r.entry_id = e.entry_id
        where
            m.agent_id = own
            and m.memory_id = any(gone)
            and m.kind = 'exchange'
            and (
                e.session_id = m.thread
                or exists (
                    select
                    from dialogue.lineage as l
                    where
                        l.agent_id = own
                        and l.session_id = e.session_id
                        and l.ancestor_id = m.thread
                        and m.place between l.first_position and l.last_position
                )
            )
    loop
        if told.dropped then
            update dialogue.entries as e
            set text = '[forgotten]', tokens = 1
            where e.agent_id = own and e.session_id = told.session_id and e.entry_id = told.entry_id;
        else
            delete from dialogue.entries as e
            where e.agent_id = own and e.session_id = told.session_id and e.entry_id = told.entry_id;
        end if;
    end loop;

    -- of a task its place in the tree stays; what told it in short may tell it no more, and is told anew without it
    delete from dialogue.entries as e
    using dialogue.tasks as t
    join dialogue.task_steps as s
        on s.agent_id = own
        and s.session_id = t.session_id
        and s.task_id = t.task_id
        and s.after in ('complete', 'failed')
    where
        t.agent_id = own
        and t.task_id = any(gone)
        and e.agent_id = own
        and e.kind in ('task', 'goals', 'merged')
        and e.first_position <= s.position
        and e.last_position >= t.first_position
        and (
            e.session_id = t.session_id
            or exists (
                select
                from dialogue.lineage as l
                where l.agent_id = own and l.session_id = e.session_id and l.ancestor_id = t.session_id
            )
        );
    update dialogue.tasks set goal = '[forgotten]' where agent_id = own and task_id = any(gone);
    update dialogue.task_steps set words = '[forgotten]'
    where agent_id = own and task_id = any(gone) and words is not null;

    -- of a line of dialogue its place stays, so that the lines beside it keep theirs; and which call is answered where,
    -- because no model reads a conversation in which they do not match
    update dialogue.messages as d
    set
        content = '[forgotten]',
        name = null,
        calls = (
            select jsonb_agg(jsonb_build_object('id', c.value -> 'id', 'name', 'forgotten', 'arguments', '{}'))
            from jsonb_array_elements(d.calls) as c
        ),
        tokens = 1
    from memory.memories as m
    where
        m.agent_id = own
        and m.memory_id = any(gone)
        and m.kind = 'exchange'
        and d.agent_id = own
        and d.session_id = m.thread
        and d.position = m.place;

    -- what a tool put out may say again what it was called with, and the call has no memory of its own
    update dialogue.messages as d
    set
        calls = (
            select
                jsonb_agg(
                    case
                        when c.value ->> 'id' = given.answers
                            then jsonb_build_object('id', c.value -> 'id', 'name', 'forgotten', 'arguments', '{}')
                        else c.value
                    end
                )
            from jsonb_array_elements(d.calls) as c
        )
    from memory.memories as m
    join dialogue.messages as given on given.agent_id = own and given.session_id = m.thread and given.position = m.place
    where
        m.agent_id = own
        and m.memory_id = any(gone)
        and m.kind = 'exchange'
        and d.agent_id = own
        and d.session_id = given.session_id
        and d.position < given.position
        and d.calls @> jsonb_build_array(jsonb_build_object('id', given.answers));

    -- what Newton quoted of it, by the context that it quoted from, and by the words where that context is gone
    update dialogue.messages as d
    set content = '[forgotten]', tokens = 1
    where
        d.agent_id = own
        and d.aside
        and (
            exists (
                select
                from cognition.turns as t
                join cognition.bundles as b on b.agent_id = own and b.bundle_id = t.bundle_id
                where
                    t.agent_id = own
                    and t.session_id = d.session_id
                    and t.replied = d.position
                    and b.memory_ids && gone
            )
            or exists (
                select
                from memory.memories as m
                where
                    m.agent_id = own
                    and m.memory_id = any(gone)
                    and strpos(d.content, regexp_replace(m.summary, '^\[[0-9-]+\] ', '')) > 0
            )
        );

    -- what was heard in it and never accepted goes too; what a person took into the identity is theirs to erase
    select array_agg(t.tenet_id) into unsaid
    from heart.tenets as t
    join heart.proposals as p on p.agent_id = own and p.tenet_id = t.tenet_id and p.state <> 'ACCEPTED'
    join memory.memories as m
        on m.agent_id = own and m.memory_id = any(gone) and m.thread = t.session_id and m.place = t.position
    where t.agent_id = own and m.kind = 'exchange';
    call heart.unsay(own, unsaid);

    call cognition.let_go(own, gone);

    delete from memory.links where agent_id = own and (memory_id = any(gone) or other_id = any(gone));
    delete from memory.sources where agent_id = own and (memory_id = any(gone) or source_id = any(gone));
    delete from heart.names where agent_id = own and entity_id = any(gone);
    delete from heart.mentions where agent_id = own and (memory_id = any(gone) or entity_id = any(gone));
    foreach part in array array[
        'heart.activations', 'heart.relations', 'heart.entities', 'heart.events', 'heart.passages', 'heart.censors',
        'heart.procedures', 'heart.episodes', 'heart.facts', 'memory.confirmations', 'memory.transitions',
        'memory.cold', 'memory.compressions', 'memory.former_forms', 'memory.postings', 'memory.embeddings',
        'memory.outbox', 'memory.times', 'memory.memories'
    ] loop
        execute format('delete from %s where agent_id = $1 and memory_id = any($2)', part) using own, gone;
    end loop;
end
$$;

revoke execute on procedure memory.forget(uuid) from public;
grant execute on procedure memory.forget(uuid) to newton_app;

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

-- Takes away the words of these tenets, and what was said about changing them. Only procedures that erase may call it;
-- row level security holds in it as everywhere.
create procedure heart.unsay(own uuid, gone uuid[])
language sql
set search_path = pg_catalog
as $$
    update heart.tenets set words = null, tokens = null where agent_id = own and tenet_id = any(gone);
    update heart.identity set because = null where agent_id = own and tenet_id = any(gone) and change <> 'erased';
    update heart.proposals set state = 'REJECTED', gist = null
    where agent_id = own and tenet_id = any(gone) and state = 'PROPOSED';
    call cognition.let_go(own, gone);
$$;

revoke execute on procedure heart.unsay(uuid, uuid[]) from public;

-- Of the tenets that some version says were erased, of the agent in scope. The application may take nothing away by itself.
create procedure heart.erase_tenets(agent uuid)
language plpgsql
security definer
set search_path = pg_catalog
as $$
declare
    own uuid := nullif(current_setting('newton.agent_id', true), '')::uuid; -- the scope counts, whatever was passed
    gone uuid[];
begin
    select array_agg(t.tenet_id) into gone
    from heart.tenets as t
    join heart.identity as i on i.agent_id = own and i.tenet_id = t.tenet_id and i.change = 'erased'
    where t.agent_id = own and own = agent and t.words is not null;

    if gone is not null then
        call heart.unsay(own, gone);
    end if;
end
$$;

revoke execute on procedure heart.erase_tenets(uuid) from public;
grant execute on procedure heart.erase_tenets(uuid) to newton_app;

-- Takes an agent away with all that it was, of the agent in scope; what was told of it goes by `runtime.silence`, which is
-- for the end. Who calls it says so first, outside.
create procedure runtime.wipe(agent uuid)
language plpgsql
security definer
set search_path = pg_catalog
as $$
declare
    own uuid := nullif(current_setting('newton.agent_id', true), '')::uuid; -- the scope counts, whatever was passed
    part regclass;
begin
    if own is distinct from agent then
        return;
    end if;
    for part in select p from runtime.parts() with ordinality as t (p, place) order by place desc loop
        continue when part in ('runtime.agents'::regclass, 'runtime.tokens'::regclass, 'runtime.events'::regclass);
        execute format('delete from %s where agent_id = $1', part) using own;
    end loop;
end
$$;

revoke execute on procedure runtime.wipe(uuid) from public;
grant execute on procedure runtime.wipe(uuid) to newton_app;

-- Vectors of models that are not active any more go, of the agent in scope.
create procedure memory.drop_old_vectors(agent uuid)
language sql
security definer
set search_path = pg_catalog
as $$
    delete from memory.embeddings as e
    using memory.active_models as a
    where
        a.agent_id = agent
        and agent = nullif(current_setting('newton.agent_id', true), '')::uuid
        and e.agent_id = agent
        and e.model_id <> a.model_id;
$$;

revoke execute on procedure memory.drop_old_vectors(uuid) from public;
grant execute on procedure memory.drop_old_vectors(uuid) to newton_app;

-- Words about somebody stand in what is no memory, too: the goals of tasks, the titles of documents, contexts, which hold
-- the input that they were made for, and, where they match the pattern, the names of sessions and of places in them and
-- the reasons why something was forgotten. Of the agent in scope, only what is in memory.forgotten.
create procedure memory.unsay(agent uuid, ids uuid[], pattern text)
language plpgsql
security definer
set search_path = pg_catalog
as $$
declare
    own uuid := nullif(current_setting('newton.agent_id', true), '')::uuid; -- the scope counts, whatever was passed
    noted uuid[];
begin
    select array_agg(f.memory_id) into noted
    from memory.forgotten as f
    where f.agent_id = own and own = agent and f.memory_id = any(ids);

    delete from cognition.bundles where agent_id = own and bundle_id = any(noted);
    update dialogue.tasks set goal = '[forgotten]' where agent_id = own and task_id = any(noted);
    update dialogue.task_steps set words = '[forgotten]'
    where agent_id = own and task_id = any(noted) and words is not null;
    update heart.documents set title = '[forgotten]', ref = '[forgotten] ' || document_id
    where agent_id = own and document_id = any(noted);
    update dialogue.sessions set ref = '[forgotten] ' || session_id
    where agent_id = own and session_id = any(noted) and ref ~* pattern;
    update dialogue.checkpoints set name = '[forgotten] ' || gen_random_uuid()
    where agent_id = own and session_id = any(noted) and name ~* pattern;
    update memory.forgotten set because = '[forgotten]'
    where agent_id = own and memory_id = any(noted) and because ~* pattern;
end
$$;

revoke execute on procedure memory.unsay(uuid, uuid[], text) from public;
grant execute on procedure memory.unsay(uuid, uuid[], text) to newton_app;
