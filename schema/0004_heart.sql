-- What is known, and what was lived through.
create table heart.facts (
    agent_id uuid not null,
    memory_id uuid not null,
    subject text check (subject <> ''),
    attribute text check (attribute <> ''),
    valid_from timestamptz not null,
    valid_to timestamptz check (valid_to > valid_from),
    primary key (agent_id, memory_id),
    foreign key (agent_id, memory_id) references memory.memories (agent_id, memory_id)
);

create index facts_subject_idx on heart.facts (agent_id, subject, attribute);

comment on column heart.facts.valid_from is 'When it became true in the world; when Newton learnt it is memories.created_at.';

call runtime.isolate('heart.facts');
grant select, insert on heart.facts to newton_app;

create table heart.episodes (
    agent_id uuid not null,
    memory_id uuid not null,
    session_id uuid,
    title text not null check (title <> ''),
    started_at timestamptz not null,
    ended_at timestamptz not null check (ended_at >= started_at),
    participants text[] not null,
    primary key (agent_id, memory_id),
    foreign key (agent_id, memory_id) references memory.memories (agent_id, memory_id),
    foreign key (agent_id, session_id) references dialogue.sessions (agent_id, session_id)
);

create index episodes_session_idx on heart.episodes (agent_id, session_id);

call runtime.isolate('heart.episodes');
grant select, insert on heart.episodes to newton_app;
