-- name: record(agent_id, readers, trust, now)
insert into memory.foreign_readings (agent_id, reader, trust, read_at)
select $1, r.reader, $3, $4
from unnest($2::text[]) as r (reader)
on conflict (agent_id, reader, trust) do update set read_at = excluded.read_at;

-- name: find(agent_id, sessions, tokens, since)
-- What a session has been given counts for good, what a token has been given for a while.
select distinct trust
from memory.foreign_readings
where agent_id = $1 and (reader = any($2::text[]) or (reader = any($3::text[]) and read_at >= $4));
