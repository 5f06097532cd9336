-- name: list_facts(agent_id, names, now, moment, max_rows)
-- The current facts, those stated last first: all, or those that name somebody by the pattern `names`. Texts of tools and
-- of the web are not among them. Their words are compared in the process, which is several times as fast. `rivals` are the
-- facts that contradict one, unless somebody decided that both hold.
with pairs as materialized (
    select memory_id, other_id
    from memory.links as l
    where
        l.agent_id = $1
        and l.link = 'contradicts'
        and not exists (
            select
            from memory.links as c
            where c.agent_id = $1 and c.link = 'compatible' and c.memory_id = l.memory_id and c.other_id = l.other_id
        )
),
rivals as materialized (
    select p.memory_id, array_agg(p.other_id) as other_ids
    from (select memory_id, other_id from pairs union select other_id, memory_id from pairs) as p
    group by p.memory_id
)
select
    m.memory_id, m.summary as text, m.language, f.subject, m.state, m.trust, f.valid_to,
    greatest(f.valid_from, f.reconfirmed_at) as told_at, count(*) over ()::integer as total,
    coalesce(r.other_ids, '{}') as rivals
from memory.memories as m
join heart.facts as f on f.agent_id = $1 and f.memory_id = m.memory_id
left join rivals as r on r.memory_id = m.memory_id
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

-- name: list_ended(agent_id, now, max_rows, min_age)
-- What a person stated and what holds no longer, the latest first, with what replaced it: not what was wrong, which was
-- retracted, or replaced soon after it was said.
select
    m.memory_id, m.summary as text, m.language, f.subject, m.state, m.trust, f.valid_to, f.valid_from as told_at,
    0 as total, coalesce(r.texts, '') as before
from memory.memories as m
join heart.facts as f on f.agent_id = $1 and f.memory_id = m.memory_id
left join lateral (
    select string_agg(n.summary, ' ') as texts, min(n.created_at) as replaced_at
    from memory.links as l
    join memory.memories as n on n.agent_id = $1 and n.memory_id = l.memory_id
    where l.agent_id = $1 and l.other_id = m.memory_id and l.link = 'supersedes'
) as r on true
where
    m.agent_id = $1
    and m.kind = 'fact'
    and m.trust in ('user', 'operator')
    and not m.quarantined
    and f.duplicate_of is null
    and (m.state = 'SUPERSEDED' or (not memory.is_obsolete(m.kind, m.state) and f.valid_to <= $2))
    and coalesce(r.replaced_at > m.created_at + $4::interval, true)
order by told_at desc, m.memory_id desc
limit $3;

-- name: list_changes(agent_id, now, moment, starts_at, ends_at, max_rows)
-- What a person or the agent changed in a time, the latest first: facts that were first told then, known facts that one told
-- then replaced, and those whose validity ended then. A fact that is deduced, or that a merge left, is told by nobody.
with told as materialized (
    select m.memory_id, m.state, f.valid_to, coalesce(t.told_at, least(f.valid_from, m.created_at)) as told_at
    from memory.memories as m
    join heart.facts as f on f.agent_id = $1 and f.memory_id = m.memory_id
    cross join lateral (
        select min(x.occurred_at) as told_at
        from memory.sources as s
        join memory.memories as x on x.agent_id = $1 and x.memory_id = s.source_id and x.kind = 'exchange'
        where s.agent_id = $1 and s.memory_id = m.memory_id
    ) as t
    where
        m.agent_id = $1
        and m.kind = 'fact'
        and m.trust in ('user', 'operator', 'agent')
        and m.state <> 'INACTIVE'
        and not m.quarantined
        and ($3::timestamptz is null or m.created_at <= $3)
),
replaced as (
    select o.memory_id, max(n.told_at) as changed_at
    from memory.links as l
    join told as n on n.memory_id = l.memory_id
    join told as o on o.memory_id = l.other_id and o.told_at < n.told_at
    where l.agent_id = $1 and l.link = 'supersedes' and o.state = 'SUPERSEDED'
    group by o.memory_id
),
changed as (
    select
        t.memory_id,
        case when r.memory_id is not null then 'replaced' when t.valid_to <= $2 then 'ended' else 'added' end as section,
        case
            when r.memory_id is not null then r.changed_at
            when t.valid_to <= $2 then t.valid_to
            when t.state <> 'SUPERSEDED' then t.told_at
        end as changed_at
    from told as t
    left join replaced as r on r.memory_id = t.memory_id
)
select memory_id, section
from changed
where changed_at >= coalesce($4::timestamptz, '-infinity') and changed_at < coalesce($5::timestamptz, 'infinity')
order by changed_at desc, memory_id desc
limit $6;

-- name: list_introductions(agent_id, max_subjects, max_candidates, speaker, unnamed)
-- What a person said first in a conversation, at first, and lately, without the date and the speaker, with the place in its
-- session, lines of the identity, and facts that a person stated, which may tell the name of the user; the latest first,
-- each with the most frequent subjects of the latest facts, which may be the name too.
-- Only the first and the latest facts, the latest conversations, and the first and the latest messages of who has no name
-- in their session: people introduce themselves early, and say another name in a new conversation.
with stated as not materialized (
    select
        memory_id, full_text, summary, false as is_wish, false as is_said, null::uuid as thread_id,
        null::integer as position
    from memory.memories
    where
        agent_id = $1
        and kind = 'fact'
        and trust in ('user', 'operator')
        and not quarantined
        and not memory.is_obsolete(kind, state)
),
said as not materialized (
    select
        memory_id, null as full_text, regexp_replace(summary, $4, '') as summary, false as is_wish, true as is_said,
        thread_id, position, summary ~ $5 as is_unnamed
    from memory.memories
    where agent_id = $1 and kind = 'exchange' and trust in ('user', 'operator') and not quarantined
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
    (select * from stated order by memory_id limit $3)
    union all
    (
        select
            tenet_id as memory_id, text as full_text, text as summary, true as is_wish, false as is_said,
            null as thread_id, null as position
        from heart.tenets
        where
            agent_id = $1
            and text is not null
            and tenet_id = any(
                (select active_tenets from heart.identity_versions where agent_id = $1 order by version desc limit 1)::uuid[]
            )
    )
    union all
    (select * from stated order by memory_id desc limit $3)
    union all
    (
        select memory_id, full_text, summary, is_wish, is_said, thread_id, position
        from said
        where position = 0
        order by memory_id desc
        limit $3
    )
    union all
    (
        select memory_id, full_text, summary, is_wish, is_said, thread_id, position
        from said
        where is_unnamed
        order by memory_id
        limit $3
    )
    union all
    (
        select memory_id, full_text, summary, is_wish, is_said, thread_id, position
        from said
        where is_unnamed
        order by memory_id desc
        limit $3
    )
)
select distinct
    c.memory_id, left(coalesce(c.full_text, c.summary), 1000) as text, c.is_wish, c.is_said, c.thread_id, c.position,
    n.subjects
from candidate as c
cross join named as n
order by c.is_wish desc, c.memory_id desc;
