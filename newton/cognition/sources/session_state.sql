-- name: get_session_frame(agent_id, session_id, moment)
-- Of the last bundle by a moment, or of all. Bundles rebuilt for a past moment are skipped.
select frame
from cognition.bundles
where agent_id = $1 and session_id = $2 and as_of is null and ($3::timestamptz is null or created_at <= $3)
order by created_at desc, bundle_id desc
limit 1;

-- name: list_working_messages(agent_id, thread_id, position, max_rows)
-- Messages of a session before a position that its working memory contains, the last used first. Times and uses are
-- those within the session.
select
    m.memory_id, m.kind, m.state, m.micro, m.summary, m.micro_tokens, m.summary_tokens, m.word_count, m.confidence,
    m.importance, m.outcome, w.access_count as uses, m.occurred_at, w.added_at as created_at, w.accessed_at,
    m.confirmed_at, m.trust, m.quarantined, m.ref, m.thread_id, m.position
from cognition.working_set as w
join memory.memories as m on m.agent_id = $1 and m.memory_id = w.memory_id
where
    w.agent_id = $1
    and w.session_id = $2
    and m.kind = 'exchange'
    and m.thread_id = $2
    and m.position < $3
    and not m.quarantined
order by w.accessed_at desc, m.position desc
limit $4;
