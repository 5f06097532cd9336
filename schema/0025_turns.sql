-- Who is taking a turn of a session now. It is held on the database's time and renewed while the turn goes on, so that
-- one whose process was killed holds it for seconds.
create table dialogue.turns (
    agent_id uuid not null,
    session_id uuid not null,
    holder uuid not null,
    until timestamptz not null,
    primary key (agent_id, session_id),
    foreign key (agent_id, session_id) references dialogue.sessions (agent_id, session_id)
);

call runtime.isolate('dialogue.turns');
grant select, insert, update (holder, until) on dialogue.turns to newton_app;
