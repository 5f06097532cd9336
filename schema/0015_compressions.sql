-- Long words told shorter by a model: the same words are never told shorter twice.
create table memory.compressions (
    agent_id uuid not null,
    memory_id uuid not null,
    content_hash bytea not null check (length(content_hash) = 32),
    most integer not null check (most > 0),
    words text check (words <> '' and words !~ '[\n\r]'),
    at timestamptz not null,
    primary key (agent_id, memory_id, most),
    foreign key (agent_id, memory_id) references memory.memories (agent_id, memory_id)
);

create index compressions_content_idx on memory.compressions (agent_id, content_hash, most);

comment on column memory.compressions.memory_id is 'The memory that it was made for, with which it is forgotten.';
comment on column memory.compressions.most is 'So many tokens it may have.';
comment on column memory.compressions.words is 'Null when what the model gave was of no use: empty, or not short enough.';

call runtime.isolate('memory.compressions');
grant select, insert on memory.compressions to newton_app;
