-- name: list_facts(agent_id, names, now, moment, max_rows)
-- The current facts, those stated last first: all, or those that name somebody by the pattern `names`. Texts of tools and
-- of the web are not among them. Their words are compared in the process, which is several times as fast.
select
    m.memory_id, m.summary as text, m.language, f.subject, m.state, m.trust, f.valid_to,
    greatest(f.valid_from, f.reconfirmed_at) as told_at, count(*) over ()::integer as total
from memory.memories as m
join heart.facts as f on f.agent_id = $1 and f.memory_id = m.memory_id
where
    m.agent_id = $1
    and m.kind = 'fact'
    and m.trust in ('user', 'operator', 'agent')
    and not m.quarantined
    and (f.valid_to is null or f.valid_to > $3)
    and (not memory.is_obsolete(m.kind, m.state) or $4::timestamptz is not null)
    and ($4::timestamptz is null or m.created_at <= $4)
    and ($2::text is null or m.summary ~* $2 or f.subject ~* $2)
order by told_at desc, m.memory_id desc
limit $5;

-- name: list_introductions(agent_id, max_subjects, max_candidates)
-- What a person said first in a conversation, lines of the identity, and facts that a person stated, which may tell the
-- name of the user; the latest first, each with the most frequent subjects of the latest facts, which may be the name too.
-- Only the first and the latest facts, and the latest conversations: people introduce themselves early, and say another
-- name in a new conversation.
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
named as materialized (
    select array_agg(t.subject) as subjects
    from (
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
        limit $2
    ) as t
),
candidate as (
    (select memory_id, full_text, summary, false as is_wish from stated order by memory_id limit $3)
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
    (select memory_id, full_text, summary, false as is_wish from stated order by memory_id desc limit $3)
    union all
    (
        select memory_id, full_text, summary, false as is_wish
        from memory.memories
        where agent_id = $1 and kind = 'exchange' and position = 0 and trust in ('user', 'operator') and not quarantined
        order by memory_id desc
        limit $3
    )
)
select distinct c.memory_id, left(coalesce(c.full_text, c.summary), 1000) as text, c.is_wish, n.subjects
from candidate as c
cross join named as n
order by c.is_wish desc, c.memory_id desc;
