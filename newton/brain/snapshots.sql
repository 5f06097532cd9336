-- name: insert_snapshot(agent_id, seq, at, judged, brier, bias, note, note_tokens)
insert into brain.snapshots (agent_id, seq, at, judged, brier, bias, note, note_tokens)
values ($1, $2, $3, $4, $5, $6, $7, $8)
on conflict do nothing;

-- name: latest(agent_id, moment)
-- By a moment, or of all.
select note, note_tokens
from brain.snapshots
where agent_id = $1 and ($2::timestamptz is null or at <= $2)
order by seq desc
limit 1;

-- name: last_judged(agent_id)
select judged
from brain.snapshots
where agent_id = $1
order by seq desc
limit 1;
