-- Returns whose word a relation is: the highest trust among those who declared it and the facts that state it, as a
-- person confirmed or stated them, at a moment. Null if nothing states it any more. Row level security applies to the
-- caller.
create function heart.relation_trust(target_agent uuid, relation_id uuid, moment timestamptz) returns text
language sql
stable
set search_path = pg_catalog
as $$
    select stated.trust
    from (
        select c.trust
        from memory.confirmations as c
        where c.agent_id = target_agent and c.memory_id = relation_id and c.confirmed_at <= moment
        union all
        select coalesce(
            (
                select 'user'
                from memory.confirmations as c
                where
                    c.agent_id = target_agent
                    and c.memory_id = f.memory_id
                    and c.trust in ('operator', 'user')
                    and c.confirmed_at <= moment
                limit 1
            ),
            f.trust
        )
        from memory.links as l
        join memory.memories as f on f.agent_id = target_agent and f.memory_id = l.memory_id
        where
            l.agent_id = target_agent
            and l.other_id = relation_id
            and l.link = 'evidence'
            and l.created_at <= moment
            and not f.quarantined
            and not memory.is_obsolete(f.kind, f.state)
    ) as stated
    order by array_position(array['operator', 'user', 'agent', 'tool', 'web'], stated.trust)
    limit 1
$$;

-- Which readers have been given text of tools and the web, and when last. What a model stores afterwards by itself has
-- at most this trust.
create table memory.foreign_readings (
    agent_id uuid not null references runtime.agents (agent_id),
    reader text not null check (reader <> ''),
    trust text not null check (trust in ('tool', 'web')),
    read_at timestamptz not null,
    primary key (agent_id, reader, trust)
);

comment on column memory.foreign_readings.reader is
'The session (its id) or the interface through which models called. Contains no text of a person.';

call runtime.isolate('memory.foreign_readings');
grant select, insert, update (read_at) on memory.foreign_readings to newton_app;

-- Facts that have left quarantine are indexed for entities.
create index transitions_released_idx on memory.transitions (agent_id, transition_id) where event = 'released';
