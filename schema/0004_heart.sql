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
    first_position integer,
    last_position integer,
    title text not null check (title <> ''),
    started_at timestamptz not null,
    ended_at timestamptz not null check (ended_at >= started_at),
    participants text[] not null,
    primary key (agent_id, memory_id),
    foreign key (agent_id, memory_id) references memory.memories (agent_id, memory_id),
    foreign key (agent_id, session_id) references dialogue.sessions (agent_id, session_id),
    unique (agent_id, session_id, first_position),
    check (
        (session_id is null and first_position is null and last_position is null)
        or (session_id is not null and first_position >= 0 and last_position >= first_position)
    )
);

create index episodes_covered_idx on heart.episodes (agent_id, session_id, last_position);

comment on column heart.episodes.first_position is 'An episode made from a session covers these lines of it; no line is in two.';

call runtime.isolate('heart.episodes');
grant select, insert on heart.episodes to newton_app;
