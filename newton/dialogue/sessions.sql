-- name: open_session(agent_id, session_id, ref, now)
insert into dialogue.sessions (agent_id, session_id, ref, created_at)
values ($1, $2, $3, $4)
on conflict (agent_id, ref) do nothing;

-- name: session_by_ref(agent_id, ref)
select session_id
from dialogue.sessions
where agent_id = $1 and ref = $2;

-- name: known_lines(agent_id, session_id, refs)
select ref, role, name, content
from dialogue.messages
where agent_id = $1 and session_id = $2 and ref = any($3::text[]);

-- name: last_lines(agent_id, session_id, most)
select position, ref, role, name, content, tokens, said_at
from dialogue.messages
where agent_id = $1 and session_id = $2
order by position desc
limit $3;

-- name: insert_lines(agent_id, session_id, lines)
insert into dialogue.messages (
    agent_id, session_id, position, ref, role, name, content, tokens, said_at, recorded_at
)
select $1, $2, d.position, d.ref, d.role, d.name, d.content, d.tokens, d.said_at, d.recorded_at
from jsonb_to_recordset($3::jsonb) as d (
    position integer, ref text, role text, name text, content text, tokens integer, said_at timestamptz, recorded_at timestamptz
);
