-- How far each session has been read for what of it lasts. Forgetting an artifact does not lower it, so none comes back.
create table dialogue.noted (
    agent_id uuid not null,
    session_id uuid not null,
    last_position integer not null check (last_position >= 0),
    primary key (agent_id, session_id),
    foreign key (agent_id, session_id) references dialogue.sessions (agent_id, session_id)
);

call runtime.isolate('dialogue.noted');
grant select, insert, update (last_position) on dialogue.noted to newton_app;
