-- name: get_session_frame(agent_id, session_id, moment)
-- Of the last bundle by a moment, or of all. Bundles rebuilt for a past moment are skipped.
select frame
from cognition.bundles
where agent_id = $1 and session_id = $2 and as_of is null and ($3::timestamptz is null or created_at <= $3)
order by created_at desc, bundle_id desc
limit 1;
