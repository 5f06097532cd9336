-- name: insert_injection(agent_id, session_id, injection_id, memory_id, text, line_tokens, trust, origin, now)
-- Inserts nothing if the memory is in the context of the session already.
insert into dialogue.context_injections (
    agent_id, session_id, injection_id, memory_id, text, line_tokens, trust, origin, created_at
)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
on conflict do nothing
returning injection_id;

-- name: list_injections(agent_id, session_id, moment)
-- The injections of a session, at a moment or now, oldest first.
select injection_id, memory_id, text, line_tokens, trust, created_at
from dialogue.context_injections
where
    agent_id = $1
    and session_id = $2
    and (removed_at is null or removed_at > $3::timestamptz)
    and ($3::timestamptz is null or created_at <= $3)
order by created_at, injection_id;

-- name: remove_injection(agent_id, session_id, injection_id, now)
update dialogue.context_injections
set removed_at = $4
where agent_id = $1 and session_id = $2 and injection_id = $3 and removed_at is null
returning injection_id;
