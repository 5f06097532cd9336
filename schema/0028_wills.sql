-- A person's will over memory: what is not to be kept, and what was forgotten.

-- What holds for the next messages of a session.
create table dialogue.session_wills (
    agent_id uuid not null references runtime.agents (agent_id),
    session_id uuid not null,
    veil text check (veil in ('next', 'session')),
    lifted_by bytea,
    choices jsonb not null default '[]',
    primary key (agent_id, session_id),
    foreign key (agent_id, session_id) references dialogue.sessions (agent_id, session_id)
);

comment on column dialogue.session_wills.veil is
'What is not to be kept: the next message of the person, or all of the session. Null for neither.';
comment on column dialogue.session_wills.lifted_by is 'A keyed hash of the words that end a veil over the session.';
comment on column dialogue.session_wills.choices is
'The ids of the memories that the person was asked to choose from, each with the sentences that stay. Contains no text.';

call runtime.isolate('dialogue.session_wills');
grant select, insert, update (veil, lifted_by, choices) on dialogue.session_wills to newton_app;

-- Statements and sources of what was forgotten, so that an import or a model does not bring them back.
create table memory.tombstones (
    agent_id uuid not null references runtime.agents (agent_id),
    tombstone bytea not null check (length(tombstone) = 32),
    forgotten_at timestamptz not null,
    primary key (agent_id, tombstone)
);

comment on column memory.tombstones.tombstone is
'A keyed hash of a normalized statement or of the id of a source. The key is in the data folder, not in the database.';

call runtime.isolate('memory.tombstones');
grant select, insert, delete on memory.tombstones to newton_app;

-- Gives a forgotten message of the agent in scope the sentences back that were not to be forgotten.
create function dialogue.restore_rest(
    target_agent uuid, target_session uuid, target_position integer, rest text, speaker text, size integer
) returns void
language plpgsql
security definer
set search_path = pg_catalog
as $$
begin
    perform runtime.check_agent_scope(target_agent);
    update dialogue.messages as d
    set content = rest, name = speaker, tokens = size
    where
        d.agent_id = target_agent
        and d.session_id = target_session
        and d.position = target_position
        and d.content = '[forgotten]';
end
$$;

revoke execute on function dialogue.restore_rest(uuid, uuid, integer, text, text, integer) from public;
grant execute on function dialogue.restore_rest(uuid, uuid, integer, text, text, integer) to newton_app;

-- Deletes the texts of replies of models and tools, of the agent in scope, that repeat what was forgotten and are no memories.
create function dialogue.forget_answers(target_agent uuid, session_ids uuid[], positions integer[]) returns void
language plpgsql
security definer
set search_path = pg_catalog
as $$
begin
    perform runtime.check_agent_scope(target_agent);
    update dialogue.messages as d
    set content = '[forgotten]', tool_calls = dialogue.redact_tool_calls(d.tool_calls, null), tokens = 1
    from unnest(session_ids, positions) as a (session_id, position)
    where
        d.agent_id = target_agent
        and d.session_id = a.session_id
        and d.position = a.position
        and d.role in ('assistant', 'tool');
end
$$;

revoke execute on function dialogue.forget_answers(uuid, uuid[], integer[]) from public;
grant execute on function dialogue.forget_answers(uuid, uuid[], integer[]) to newton_app;
