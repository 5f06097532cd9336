-- name: insert_action(agent_id, action_id, session_id, server, tool, arguments_hash, permission, outcome, started_at, finished_at)
insert into runtime.tool_actions (
    agent_id, action_id, session_id, server, tool, arguments_hash, permission, outcome, started_at, finished_at
)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);

-- name: list_recent_actions(agent_id, server, tool, since, limit)
select a.action_id, a.session_id, a.server, a.tool, a.arguments_hash, a.permission, a.outcome, a.started_at, a.finished_at
from runtime.tool_actions as a
where a.agent_id = $1 and a.server = $2 and a.tool = $3 and a.finished_at >= $4 and a.outcome <> 'interrupted'
order by a.finished_at desc, a.action_id desc
limit $5;

-- name: list_actions(agent_id, limit)
select a.action_id, a.session_id, a.server, a.tool, a.arguments_hash, a.permission, a.outcome, a.started_at, a.finished_at
from runtime.tool_actions as a
where a.agent_id = $1
order by a.finished_at desc, a.action_id desc
limit $2;
