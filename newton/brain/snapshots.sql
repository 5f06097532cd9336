-- name: insert_snapshot(agent_id, seq, at, judged, brier, bias, note, note_tokens)
insert into brain.snapshots (agent_id, seq, at, judged, brier, bias, note, note_tokens)
values ($1, $2, $3, $4, $5, $6, $7, $8)
on conflict do nothing;

-- name: latest(agent_id)
select note, note_tokens
from brain.snapshots
where agent_id = $1
order by seq desc
limit 1;
