-- name: record_deletion(agent_id, ids, now, reason, origin)
insert into memory.forgotten (agent_id, memory_id, kind, forgotten_at, reason, origin)
select $1, g.id, 'artifact', $3, $4, $5
from unnest($2::uuid[]) as g (id)
on conflict do nothing;

-- name: delete_recorded(agent_id, ids)
select memory.redact_references($1, $2, '');
