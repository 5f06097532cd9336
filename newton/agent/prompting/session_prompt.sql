-- name: list_introductions(agent_id, pattern, max_rows)
-- What a person said first in a conversation, and facts that a person stated, that may tell the name of the user; the
-- latest first.
select m.memory_id, coalesce(m.full_text, m.summary) as text
from memory.memories as m
where
    m.agent_id = $1
    and m.kind in ('fact', 'exchange')
    and (m.kind = 'fact' or m.position = 0)
    and m.trust in ('user', 'operator')
    and not m.quarantined
    and not memory.is_obsolete(m.kind, m.state)
    and m.summary ~* $2
order by m.memory_id desc
limit $3;
