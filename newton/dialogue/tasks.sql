-- name: list_tasks(agent_id, session_id, moment)
-- All tasks of a session, with their state at a moment or now.
select
    t.task_id, t.number, t.parent_id, t.replaces_task_id as instead_of, t.depth, t.goal,
    coalesce(s.to_status, case when t.is_step then 'planned' else 'active' end) as status, s.text as words,
    coalesce(b.position + 1, t.first_position) as first,
    case when s.to_status in ('complete', 'failed') then s.position end as last, t.pushed_at,
    coalesce(s.changed_at, t.pushed_at) as changed_at, t.is_step, b.changed_at as began_at
from dialogue.tasks as t
left join dialogue.task_transitions as b
    on
        b.agent_id = $1
        and b.session_id = $2
        and b.task_id = t.task_id
        and b.event = 'started'
        and ($3::timestamptz is null or b.changed_at <= $3)
left join lateral (
    select to_status, text, position, changed_at
    from dialogue.task_transitions
    where
        agent_id = $1
        and session_id = $2
        and task_id = t.task_id
        and ($3::timestamptz is null or changed_at <= $3)
    order by step desc
    limit 1
) as s on true
where t.agent_id = $1 and t.session_id = $2 and ($3::timestamptz is null or t.pushed_at <= $3)
order by t.number;

-- name: insert_task(agent_id, session_id, task_id, number, parent_id, instead_of, depth, goal, first, now)
insert into dialogue.tasks (
    agent_id, session_id, task_id, number, parent_id, replaces_task_id, depth, goal, first_position, pushed_at
)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);

-- name: insert_steps(agent_id, session_id, parent_id, depth, task_ids, last_number, goals, first, now)
-- The steps of a plan, which follow the task with the last number.
insert into dialogue.tasks (
    agent_id, session_id, task_id, number, parent_id, depth, goal, status, is_step, first_position, pushed_at
)
select $1, $2, s.task_id, $6::integer + s.place::integer, $3, $4, s.goal, 'planned', true, $8, $9
from unnest($5::uuid[], $7::text[]) with ordinality as s (task_id, goal, place)
returning task_id;

-- name: transition_task(agent_id, session_id, task_id, event, from_status, to_status, text, position, now, origin)
with moved as (
    update dialogue.tasks
    set status = $6
    where agent_id = $1 and session_id = $2 and task_id = $3 and status = $5
    returning task_id
)
insert into dialogue.task_transitions (
    agent_id, session_id, task_id, step, event, from_status, to_status, text, position, changed_at, origin
)
select
    $1, $2, m.task_id,
    1 + (select count(*) from dialogue.task_transitions as s where s.agent_id = $1 and s.session_id = $2 and s.task_id = $3),
    $4, $5, $6, $7, $8, $9, $10
from moved as m
returning agent_id;

-- name: get_latest_session(agent_id)
-- The session of the last pushed task; if there is none, the newest session.
select s.session_id
from dialogue.sessions as s
left join lateral (
    select max(t.pushed_at) as at
    from dialogue.tasks as t
    where t.agent_id = $1 and t.session_id = s.session_id
) as t on true
where s.agent_id = $1
order by t.at desc nulls last, s.created_at desc, s.session_id desc
limit 1;

-- name: find_remembered(agent_id, task_ids)
-- Tasks whose episode was not forgotten.
select m.memory_id as task_id
from memory.memories as m
where m.agent_id = $1 and m.memory_id = any($2::uuid[])
order by m.memory_id;
