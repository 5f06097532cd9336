-- name: list_permissions(agent_id)
select
    p.permission_id, p.server, p.tool, p.verdict, p.fingerprint, p.session_id, s.ref as session, p.source, p.created_at
from runtime.tool_permissions as p
left join dialogue.sessions as s on s.agent_id = $1 and s.session_id = p.session_id
where p.agent_id = $1
order by p.server, p.tool, p.created_at;

-- name: find_permissions(agent_id, server, tool)
select
    p.permission_id, p.server, p.tool, p.verdict, p.fingerprint, p.session_id, null as session, p.source, p.created_at
from runtime.tool_permissions as p
where p.agent_id = $1 and p.server = $2 and p.tool = $3;

-- name: set_permission(agent_id, permission_id, server, tool, verdict, fingerprint, session_id, source, created_at)
-- A new answer of a person replaces the earlier one for the same tool and session.
insert into runtime.tool_permissions as p (
    agent_id, permission_id, server, tool, verdict, fingerprint, session_id, source, created_at
)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
on conflict (agent_id, server, tool, session_id) do update
set verdict = excluded.verdict, fingerprint = excluded.fingerprint, source = excluded.source,
    created_at = excluded.created_at
returning p.permission_id;

-- name: delete_permission(agent_id, permission_id)
delete from runtime.tool_permissions where agent_id = $1 and permission_id = $2 returning permission_id;

-- name: use_permission(agent_id, server, tool, fingerprint)
delete from runtime.tool_permissions
where agent_id = $1 and server = $2 and tool = $3 and fingerprint = $4 and verdict = 'allow'
returning permission_id;

-- name: delete_session_permissions(agent_id, server, tool)
delete from runtime.tool_permissions where agent_id = $1 and server = $2 and tool = $3 and session_id is not null;
