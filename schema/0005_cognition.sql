-- One assembled context with everything needed to explain it.
create table cognition.bundles (
    agent_id uuid not null references runtime.agents (agent_id),
    bundle_id uuid not null,
    session_id uuid,
    created_at timestamptz not null,
    as_of timestamptz,
    input text not null,
    frame text not null,
    profile text not null,
    budget integer not null check (budget > 0),
    tokens integer not null check (tokens between 0 and budget),
    text text not null,
    memory_ids uuid[] not null,
    candidates bytea not null,
    trace jsonb not null,
    primary key (agent_id, bundle_id),
    foreign key (agent_id, session_id) references dialogue.sessions (agent_id, session_id)
);

create index bundles_recent_idx on cognition.bundles (agent_id, created_at);
create index bundles_session_idx on cognition.bundles (agent_id, session_id, created_at, bundle_id);

comment on column cognition.bundles.as_of is 'The moment it was rebuilt for; null when it was made for the present.';
comment on column cognition.bundles.memory_ids is
'Whatever it holds words of: the candidates, best first, then what stands in it unasked, a line of the identity too.';
comment on column cognition.bundles.candidates is
'zlib of columns in the order of memory_ids: features, score, verdict, tokens, state, checksum of the words.';
comment on column cognition.bundles.trace is
'What the candidates were placed into, the frame with its evidence, the sources that were missing, the timings.';

call runtime.isolate('cognition.bundles');
grant select, insert on cognition.bundles to newton_app;

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
