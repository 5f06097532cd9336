-- name: insert_snapshot(agent_id, seq, created_at, reviewed_count, brier, bias, note, note_tokens)
insert into brain.calibration_snapshots (agent_id, seq, created_at, reviewed_count, brier, bias, note, note_tokens)
values ($1, $2, $3, $4, $5, $6, $7, $8)
on conflict do nothing;

-- name: get_latest_note(agent_id, moment)
-- By a moment, or the latest of all if it is null.
select note, note_tokens
from brain.calibration_snapshots
where agent_id = $1 and ($2::timestamptz is null or created_at <= $2)
order by seq desc
limit 1;

-- name: get_last_reviewed_count(agent_id)
select reviewed_count as judged
from brain.calibration_snapshots
where agent_id = $1
order by seq desc
limit 1;
