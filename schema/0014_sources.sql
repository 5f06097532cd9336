-- The words by which an entity may be meant: its names, and its first and last name alone. An input is looked up here,
-- so that a context reads only the entities that it may name.
create table heart.names (
    agent_id uuid not null,
    spelling text not null check (spelling <> ''),
    entity_id uuid not null,
    primary key (agent_id, spelling, entity_id),
    foreign key (agent_id, entity_id) references heart.entities (agent_id, memory_id)
);

create index names_entity_idx on heart.names (agent_id, entity_id);

call runtime.isolate('heart.names');
grant select, insert on heart.names to newton_app;

create index events_session_idx on heart.events (agent_id, session_id, memory_id) where session_id is not null;

-- Whether a relation was held to be so at a moment: a person had said so, or a fact that is evidence for it was current
-- knowledge. Row level security holds in it as everywhere.
create function heart.is_held(own uuid, relation uuid, moment timestamptz) returns boolean
language sql
stable
set search_path = pg_catalog
as $$
    select exists (
        select
        from memory.confirmations as c
        where c.agent_id = own and c.memory_id = relation and c.at <= moment
    )
    or exists (
        select
        from memory.links as l
        join memory.memories as f on f.agent_id = own and f.memory_id = l.memory_id
        where
            l.agent_id = own
            and l.other_id = relation
            and l.link = 'evidence'
            and l.at <= moment
            and not memory.is_past(
                f.kind,
                coalesce(
                    (
                        select t.from_state
                        from memory.transitions as t
                        where t.agent_id = own and t.memory_id = f.memory_id and t.at > moment
                        order by t.at, t.transition_id
                        limit 1
                    ),
                    f.state
                )
            )
    )
$$;
