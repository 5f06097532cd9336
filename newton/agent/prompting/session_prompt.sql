-- name: list_introductions(agent_id, pattern, max_rows, max_candidates)
-- What a person said first in a conversation, lines of the identity, and facts that a person stated, that may tell the
-- name of the user; the latest first. Only the first and the latest facts, and the latest conversations, are compared with
-- the pattern, which is slow: people introduce themselves early, and say another name in a new conversation.
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
    (select memory_id, full_text, summary, false as is_wish from stated order by memory_id limit $4)
    union all
    (
        select tenet_id as memory_id, text as full_text, text as summary, true as is_wish
        from heart.tenets
        where
            agent_id = $1
            and tenet_id = any(
                (select active_tenets from heart.identity_versions where agent_id = $1 order by version desc limit 1)::uuid[]
            )
    )
    union all
    (select memory_id, full_text, summary, false as is_wish from stated order by memory_id desc limit $4)
    union all
    (
        select memory_id, full_text, summary, false as is_wish
        from memory.memories
        where agent_id = $1 and kind = 'exchange' and position = 0 and trust in ('user', 'operator') and not quarantined
        order by memory_id desc
        limit $4
    )
)
select distinct memory_id, coalesce(full_text, summary) as text, is_wish
from candidate
where summary ~* $2
order by is_wish desc, memory_id desc
limit $3;

-- name: list_subjects(agent_id, max_rows, max_candidates)
-- The subjects of the latest current facts, other than the user, the most frequent first.
select f.subject
from (
    select memory_id
    from memory.memories
    where agent_id = $1 and kind = 'fact' and not quarantined and not memory.is_obsolete(kind, state)
    order by memory_id desc
    limit $3
) as m
join heart.facts as f on f.agent_id = $1 and f.memory_id = m.memory_id
where f.subject <> 'user'
group by f.subject
order by count(*) desc, f.subject
limit $2;
