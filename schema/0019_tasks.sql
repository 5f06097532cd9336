-- What a session is at: goals within goals. The active ones of a session stand one in the other, and the innermost is the
-- current one; so each has at most one active child, and a session at most one active root.
create table dialogue.tasks (
    agent_id uuid not null,
    session_id uuid not null,
    task_id uuid not null,
    number integer not null check (number > 0),
    parent_id uuid,
    instead_of uuid,
    depth integer not null check (depth >= 0),
    goal text not null check (goal <> ''),
    status text not null default 'active',
    first_position integer not null check (first_position >= 0),
    pushed_at timestamptz not null,
    primary key (agent_id, session_id, task_id),
    unique (agent_id, session_id, number),
    foreign key (agent_id, session_id) references dialogue.sessions (agent_id, session_id),
    foreign key (agent_id, session_id, parent_id) references dialogue.tasks (agent_id, session_id, task_id),
    foreign key (agent_id, session_id, instead_of) references dialogue.tasks (agent_id, session_id, task_id),
    constraint statuses check (status in ('active', 'blocked', 'complete', 'failed')),
    constraint a_root_has_no_parent check ((depth = 0) = (parent_id is null))
);

create unique index tasks_active_idx on dialogue.tasks (agent_id, session_id, parent_id) nulls not distinct
where status = 'active';

comment on column dialogue.tasks.task_id is 'Also the id of the episode that tells of it once it has ended.';
comment on column dialogue.tasks.instead_of is 'The task that failed, and in whose place this one was pushed.';
comment on column dialogue.tasks.first_position is 'Where the first line stands that was, or will be, said behind the push.';

call runtime.isolate('dialogue.tasks');
grant select, insert, update (status) on dialogue.tasks to newton_app;

-- Every change of a task's status, so that a stack can be told as it was at any moment.
create table dialogue.task_steps (
    agent_id uuid not null,
    session_id uuid not null,
    task_id uuid not null,
    step integer not null check (step > 0),
    event text not null,
    before text not null,
    after text not null,
    words text check (words <> ''),
    position integer not null check (position >= -1),
    at timestamptz not null,
    origin text not null check (origin <> ''),
    primary key (agent_id, session_id, task_id, step),
    foreign key (agent_id, session_id, task_id) references dialogue.tasks (agent_id, session_id, task_id),
    constraint changes check (
        (before, event, after) in (
            ('active', 'completed', 'complete'),
            ('active', 'failed', 'failed'),
            ('active', 'blocked', 'blocked'),
            ('blocked', 'resumed', 'active'),
            ('blocked', 'abandoned', 'failed')
        )
    ),
    constraint an_end_says_what_came_of_it check (words is not null or event = 'resumed')
);

comment on column dialogue.task_steps.words is 'The result, or why it failed or cannot go on.';
comment on column dialogue.task_steps.position is 'The last line of the session then; -1 when there was none.';

call runtime.isolate('dialogue.task_steps');
grant select, insert on dialogue.task_steps to newton_app;
