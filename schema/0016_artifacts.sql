-- What a session has come to in short: its rolling summary, what of it lasts, what tools put out. Memories of a kind that
-- belongs to its session and is found in no other.
alter table memory.memories drop constraint states;
alter table memory.memories add constraint states check (
    (kind = 'exchange' and state = 'ACTIVE')
    or (kind = 'episode' and state in ('ACTIVE', 'SUMMARIZED', 'ARCHIVED'))
    or (kind = 'fact' and state in ('NEW', 'CONFIRMED', 'CORE', 'SUPERSEDED', 'INACTIVE'))
    or (kind = 'procedure' and state in ('ACTIVE', 'EFFECTIVE', 'INEFFECTIVE', 'RETIRED', 'ARCHIVED'))
    or (kind = 'censor' and state in ('CREATED', 'ACTIVE', 'ESCALATED', 'RETIRED'))
    or (kind in ('event', 'entity', 'relation') and state in ('ACTIVE', 'ARCHIVED'))
    or (kind = 'passage' and state in ('ACTIVE', 'SUPERSEDED', 'ARCHIVED'))
    or (kind = 'decision' and state in ('RECORDED', 'PENDING', 'REVIEWED'))
    or (kind = 'artifact' and state in ('ACTIVE', 'SUPERSEDED'))
);

create table dialogue.artifacts (
    agent_id uuid not null,
    memory_id uuid not null,
    session_id uuid not null,
    type text not null check (type in ('summary', 'facts', 'tools')),
    chunk_index integer not null check (chunk_index >= 0),
    first_position integer check (first_position >= 0),
    last_position integer check (last_position >= first_position),
    source text check (source <> ''),
    made_at timestamptz not null,
    primary key (agent_id, memory_id),
    foreign key (agent_id, session_id) references dialogue.sessions (agent_id, session_id),
    foreign key (agent_id, memory_id) references memory.memories (agent_id, memory_id) on delete cascade,
    check ((first_position is null) = (last_position is null))
);

create index artifacts_session_idx on dialogue.artifacts (agent_id, session_id, type);

comment on table dialogue.artifacts is 'Its memory has thread = session_id; its place there counts the artifacts.';
comment on column dialogue.artifacts.chunk_index is 'Which piece it is of what was cut into several, from 0 on.';
comment on column dialogue.artifacts.first_position is 'The lines it was made of; null when it was made of none, as what the web said.';
comment on column dialogue.artifacts.source is 'The tool that put it out, or the address on the web.';

call runtime.isolate('dialogue.artifacts');
grant select, insert on dialogue.artifacts to newton_app;

-- An artifact only says again what is there already, so it does not count among the texts in which words are rare.
drop index memory.memories_corpus_idx;
create index memories_corpus_idx on memory.memories (agent_id) include (words) where words > 0 and kind <> 'artifact';
