-- The times other than its own that a memory speaks of: what was said on 8 May of yesterday is of 7 May too.
create table memory.times (
    agent_id uuid not null,
    memory_id uuid not null,
    starts timestamptz not null,
    ends timestamptz not null,
    primary key (agent_id, starts, memory_id, ends),
    foreign key (agent_id, memory_id) references memory.memories (agent_id, memory_id),
    check (starts < ends and ends - starts <= interval '366 days')
);

comment on table memory.times is
'Resolved against the memory''s own time when it is written. None is longer than a year, so that a span has a first one.';

create index times_memory_idx on memory.times (agent_id, memory_id);

call runtime.isolate('memory.times');
grant select, insert on memory.times to newton_app;

-- What happened or was said in a span.
create index memories_when_idx on memory.memories (agent_id, kind, occurred_at);
