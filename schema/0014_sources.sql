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
