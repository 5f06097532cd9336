-- name: insert_events(agent_id, events)
insert into heart.events (agent_id, memory_id, session_id, type, payload)
select $1, d.memory_id, d.session_id, d.type, d.payload
from jsonb_to_recordset($2::jsonb) as d (memory_id uuid, session_id uuid, type text, payload jsonb);
