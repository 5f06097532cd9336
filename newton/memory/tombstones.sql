-- name: insert(agent_id, tombstones, now)
insert into memory.tombstones (agent_id, tombstone, forgotten_at)
select $1, t.tombstone, $3
from unnest($2::bytea[]) as t (tombstone)
on conflict do nothing;

-- name: find(agent_id, tombstones)
select tombstone, forgotten_at
from memory.tombstones
where agent_id = $1 and tombstone = any($2::bytea[]);

-- name: delete(agent_id, tombstones)
delete from memory.tombstones
where agent_id = $1 and tombstone = any($2::bytea[]);
