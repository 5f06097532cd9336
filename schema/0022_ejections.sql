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
