-- name: list_pairs(agent_id, links, decisions, memory_id, max_rows, last_found_at, last_first_id, last_second_id)
-- Pairs of current facts with one of the links, and without a decision on it, newest first; all, or those of one fact.
-- With the last three arguments, those after the pair that they identify.
with sides as (
    select
        l.link, l.memory_id as first_id, l.other_id as second_id, l.created_at as found_at,
        greatest(a.valid_from, a.reconfirmed_at) as first_since, greatest(b.valid_from, b.reconfirmed_at) as second_since
    from memory.links as l
    join heart.facts as a on a.agent_id = $1 and a.memory_id = l.memory_id and a.is_current
    join heart.facts as b on b.agent_id = $1 and b.memory_id = l.other_id and b.is_current
    where
        l.agent_id = $1
        and l.link = any($2::text[])
        and ($4::uuid is null or $4 in (l.memory_id, l.other_id))
        and (
            $6::timestamptz is null
            or (l.created_at, l.memory_id, l.other_id) < ($6, $7::uuid, $8::uuid)
        )
        and not exists (
            select
            from memory.links as d
            where
                d.agent_id = $1
                and d.memory_id = l.memory_id
                and d.other_id = l.other_id
                and d.link = any($3::text[])
        )
    order by l.created_at desc, l.memory_id desc, l.other_id desc, l.link
    limit $5
)
select
    s.first_id, s.second_id, s.link, s.found_at,
    newer.memory_id as newer_id, newer.full_text as newer_text, newer.state as newer_state, newer.trust as newer_trust,
    greatest(s.first_since, s.second_since) as newer_since,
    exists (
        select
        from memory.confirmations as c
        where c.agent_id = $1 and c.memory_id = newer.memory_id and c.trust in ('operator', 'user')
    ) as newer_is_vouched,
    older.memory_id as older_id, older.full_text as older_text, older.state as older_state, older.trust as older_trust,
    least(s.first_since, s.second_since) as older_since,
    exists (
        select
        from memory.confirmations as c
        where c.agent_id = $1 and c.memory_id = older.memory_id and c.trust in ('operator', 'user')
    ) as older_is_vouched
from sides as s
join memory.memories as newer
    on
        newer.agent_id = $1
        and newer.memory_id = case when s.first_since >= s.second_since then s.first_id else s.second_id end
join memory.memories as older
    on
        older.agent_id = $1
        and older.memory_id = case when s.first_since >= s.second_since then s.second_id else s.first_id end
order by s.found_at desc, s.first_id desc, s.second_id desc, s.link;

-- name: count_pairs(agent_id, link, decision)
-- The number of pairs of current facts with a link and without a decision on it.
select count(*) as number
from memory.links as l
join heart.facts as a on a.agent_id = $1 and a.memory_id = l.memory_id and a.is_current
join heart.facts as b on b.agent_id = $1 and b.memory_id = l.other_id and b.is_current
where
    l.agent_id = $1
    and l.link = $2
    and not exists (
        select
        from memory.links as d
        where d.agent_id = $1 and d.memory_id = l.memory_id and d.other_id = l.other_id and d.link = $3
    );
