-- name: insert_bundle(agent_id, bundle_id, session_id, created_at, input, frame, profile, budget, tokens, text, trace)
insert into cognition.bundles (
    agent_id, bundle_id, session_id, created_at, input, frame, profile, budget, tokens, text, trace
)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11::jsonb);

-- name: session_frame(agent_id, session_id)
select frame
from cognition.bundles
where agent_id = $1 and session_id = $2
order by created_at desc, bundle_id desc
limit 1;

-- name: insert_turn(agent_id, turn_id, session_id, bundle_id, at, how, because, answered_by, asked, replied)
insert into cognition.turns (agent_id, turn_id, session_id, bundle_id, at, how, because, answered_by, asked, replied)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);
