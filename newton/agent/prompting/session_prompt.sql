-- name: list_introductions(agent_id, pattern, max_rows, max_candidates)
-- What a person said first in a conversation, and facts that a person stated, that may tell the name of the user; the
-- latest first. Only the first and the latest facts, and the latest conversations, are compared with the pattern, which
-- is slow: people introduce themselves early, and say another name in a new conversation.
with stated as not materialized (
    select memory_id, full_text, summary
    from memory.memories
    where
        agent_id = $1
        and kind = 'fact'
        and trust in ('user', 'operator')
        and not quarantined
        and not memory.is_obsolete(kind, state)
),
candidate as (
    (select memory_id, full_text, summary from stated order by memory_id limit $4)
    union all
    (select memory_id, full_text, summary from stated order by memory_id desc limit $4)
    union all
    (
        select memory_id, full_text, summary
        from memory.memories
        where agent_id = $1 and kind = 'exchange' and position = 0 and trust in ('user', 'operator') and not quarantined
        order by memory_id desc
        limit $4
    )
)
select distinct memory_id, coalesce(full_text, summary) as text
from candidate
where summary ~* $2
order by memory_id desc
limit $3;
