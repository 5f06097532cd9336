-- What a model is shown of a conversation is its log, with entries in the place of what they tell shorter. The log stays
-- as it is, and dropping an entry brings back what stood there before it.
create table dialogue.entries (
    agent_id uuid not null,
    session_id uuid not null,
    entry_id uuid not null,
    kind text not null check (kind in ('mask', 'tools', 'turn', 'goals', 'merged', 'task')),
    first_position integer not null check (first_position >= 0),
    last_position integer not null,
    text text not null check (text <> ''),
    tokens integer not null check (tokens > 0),
    before integer not null,
    strategy text not null check (strategy <> ''),
    prompt text not null,
    model text check (model <> ''),
    made_at timestamptz not null,
    primary key (agent_id, session_id, entry_id),
    foreign key (agent_id, session_id) references dialogue.sessions (agent_id, session_id),
    check (last_position >= first_position),
    constraint an_entry_is_shorter check (tokens < before)
);

create index entries_place_idx
on dialogue.entries (agent_id, session_id, first_position, last_position desc, made_at desc, entry_id desc);

comment on column dialogue.entries.before is 'Tokens of what was shown there until then.';
comment on column dialogue.entries.prompt is 'The version of the prompt or of the rules that made it.';
comment on column dialogue.entries.model is 'Who wrote it; none when it was put together from the words themselves.';

call runtime.isolate('dialogue.entries');
grant select, insert on dialogue.entries to newton_app;

-- Entries that a person, or a program in their name, has dropped.
create table dialogue.restorations (
    agent_id uuid not null,
    session_id uuid not null,
    entry_id uuid not null,
    pinned boolean not null,
    at timestamptz not null,
    origin text not null check (origin <> ''),
    primary key (agent_id, session_id, entry_id),
    foreign key (agent_id, session_id, entry_id)
        references dialogue.entries (agent_id, session_id, entry_id) on delete cascade
);

comment on column dialogue.restorations.pinned is
    'What it covered is not told shorter again; false of an entry that went because it covered the one that was meant.';

call runtime.isolate('dialogue.restorations');
grant select, insert on dialogue.restorations to newton_app;

-- The lines of other sessions that a branch begins with: one row for each session it descends from.
create table dialogue.lineage (
    agent_id uuid not null,
    session_id uuid not null,
    ancestor_id uuid not null,
    first_position integer not null check (first_position >= 0),
    last_position integer not null,
    primary key (agent_id, session_id, ancestor_id),
    foreign key (agent_id, session_id) references dialogue.sessions (agent_id, session_id),
    foreign key (agent_id, ancestor_id) references dialogue.sessions (agent_id, session_id),
    check (last_position >= first_position)
);

call runtime.isolate('dialogue.lineage');
grant select, insert on dialogue.lineage to newton_app;

create table dialogue.checkpoints (
    agent_id uuid not null,
    session_id uuid not null,
    name text not null check (name <> ''),
    position integer not null check (position >= 0),
    at timestamptz not null,
    primary key (agent_id, session_id, name),
    foreign key (agent_id, session_id) references dialogue.sessions (agent_id, session_id)
);

call runtime.isolate('dialogue.checkpoints');
grant select, insert on dialogue.checkpoints to newton_app;

-- Lines of one session that are shown in another, behind a place there.
create table dialogue.injections (
    agent_id uuid not null,
    session_id uuid not null,
    injection_id uuid not null,
    place integer not null check (place >= 0),
    other_id uuid not null,
    first_position integer not null,
    last_position integer not null,
    tokens integer not null check (tokens > 0),
    at timestamptz not null,
    primary key (agent_id, session_id, injection_id),
    foreign key (agent_id, session_id) references dialogue.sessions (agent_id, session_id),
    foreign key (agent_id, other_id) references dialogue.sessions (agent_id, session_id),
    check (last_position >= first_position)
);

call runtime.isolate('dialogue.injections');
grant select, insert on dialogue.injections to newton_app;

-- Injections that a person, or a program in their name, has taken out again.
create table dialogue.ejections (
    agent_id uuid not null,
    session_id uuid not null,
    injection_id uuid not null,
    at timestamptz not null,
    origin text not null check (origin <> ''),
    primary key (agent_id, session_id, injection_id),
    foreign key (agent_id, session_id, injection_id)
        references dialogue.injections (agent_id, session_id, injection_id)
);

call runtime.isolate('dialogue.ejections');
grant select, insert on dialogue.ejections to newton_app;

-- Who alone may do something with a session right now, until when at the latest by the clock of the database: one whose
-- process was killed is waited for no longer.
create table dialogue.leases (
    agent_id uuid not null,
    session_id uuid not null,
    right_to text not null check (right_to in ('turn', 'compaction')),
    holder uuid not null,
    until timestamptz not null,
    primary key (agent_id, session_id, right_to),
    foreign key (agent_id, session_id) references dialogue.sessions (agent_id, session_id)
);

call runtime.isolate('dialogue.leases');
grant select, insert, update (holder, until) on dialogue.leases to newton_app;

-- How each run of a strategy went.
create table dialogue.compactions (
    agent_id uuid not null,
    session_id uuid not null,
    compaction_id uuid not null,
    strategy text not null check (strategy <> ''),
    at timestamptz not null,
    duration_ms real not null check (duration_ms >= 0),
    tokens_before integer not null,
    tokens_after integer not null,
    error text check (error <> ''),
    primary key (agent_id, session_id, compaction_id),
    foreign key (agent_id, session_id) references dialogue.sessions (agent_id, session_id)
);

call runtime.isolate('dialogue.compactions');
grant select, insert on dialogue.compactions to newton_app;
