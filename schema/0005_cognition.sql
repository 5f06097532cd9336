-- One assembled context with everything needed to explain it.
create table cognition.bundles (
    agent_id uuid not null references runtime.agents (agent_id),
    bundle_id uuid not null,
    session_id uuid,
    created_at timestamptz not null,
    input text not null,
    frame text not null,
    profile text not null,
    budget integer not null check (budget > 0),
    tokens integer not null check (tokens between 0 and budget),
    text text not null,
    trace jsonb not null,
    primary key (agent_id, bundle_id),
    foreign key (agent_id, session_id) references dialogue.sessions (agent_id, session_id)
);

create index bundles_recent_idx on cognition.bundles (agent_id, created_at);
create index bundles_session_idx on cognition.bundles (agent_id, session_id, created_at, bundle_id);

comment on column cognition.bundles.trace is 'Every candidate with its features, score and verdict; the frame''s reasons; timings.';

call runtime.isolate('cognition.bundles');
grant select, insert on cognition.bundles to newton_app;

-- A context that held one of these memories goes as a whole: its text cannot be taken apart. Only procedures that erase
-- may call it; row level security holds in it as everywhere.
create procedure cognition.let_go(own uuid, gone uuid[])
language sql
set search_path = pg_catalog
as $$
    delete from cognition.bundles
    where agent_id = own and exists (
        select from unnest(gone) as g (id) where position(g.id::text in trace::text) > 0
    );
$$;

revoke execute on procedure cognition.let_go(uuid, uuid[]) from public;
