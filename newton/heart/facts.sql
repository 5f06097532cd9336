-- name: insert_facts(agent_id, facts)
insert into heart.facts (agent_id, memory_id, subject, attribute, valid_from)
select $1, d.memory_id, d.subject, d.attribute, d.valid_from
from jsonb_to_recordset($2::jsonb) as d (memory_id uuid, subject text, attribute text, valid_from timestamptz);
