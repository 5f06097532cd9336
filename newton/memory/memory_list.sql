-- name: set_importance(agent_id, memory_ids, importance)
update memory.memories
set importance = $3
where agent_id = $1 and memory_id = any($2::uuid[]);

-- name: insert_edits(agent_id, memory_ids, edit_ids, field, old_values, new_value, now, origin, author)
insert into memory.edits (
    agent_id, memory_id, edit_id, edited_at, field, old_value, new_value, origin, author
)
select $1, e.memory_id, e.edit_id, $7, $4, e.old_value, $6, $8, $9
from unnest($2::uuid[], $3::uuid[], $5::text[]) as e (memory_id, edit_id, old_value)
returning agent_id;

-- name: list_edits(agent_id, memory_id)
select edited_at, field, old_value, new_value, origin, author
from memory.edits
where agent_id = $1 and memory_id = $2
order by edit_id;

-- name: lock_rows(agent_id, memory_ids)
-- The editable fields, locked in the order of the ids, so that two edits wait for each other.
select m.memory_id, m.kind, m.state, m.importance
from memory.memories as m
where m.agent_id = $1 and m.memory_id = any($2::uuid[])
order by m.memory_id
for update of m;

-- name: list_by_created_desc(agent_id, kinds, states, origins, trusts, since, until, created_since, created_until, after_time, after_id, max_rows)
-- Reads at most max_rows matching entries of the index for each kind.
select p.memory_id, p.created_at as position
from unnest($2::text[]) as k (kind)
cross join lateral (
    select m.memory_id, m.created_at
    from memory.memories as m
    where
        m.agent_id = $1
        and m.kind = k.kind
        and memory.matches_filter(
            m.kind, m.state, m.quarantined, m.origin, m.trust, m.occurred_at, m.created_at, $3, $4, $5, $6, $7, $8, $9
        )
        and (m.created_at, m.memory_id) < ($10, $11)
    order by m.created_at desc, m.memory_id desc
    limit $12
) as p
order by p.created_at desc, p.memory_id desc
limit $12;

-- name: list_by_created_asc(agent_id, kinds, states, origins, trusts, since, until, created_since, created_until, after_time, after_id, max_rows)
select p.memory_id, p.created_at as position
from unnest($2::text[]) as k (kind)
cross join lateral (
    select m.memory_id, m.created_at
    from memory.memories as m
    where
        m.agent_id = $1
        and m.kind = k.kind
        and memory.matches_filter(
            m.kind, m.state, m.quarantined, m.origin, m.trust, m.occurred_at, m.created_at, $3, $4, $5, $6, $7, $8, $9
        )
        and (m.created_at, m.memory_id) > ($10, $11)
    order by m.created_at, m.memory_id
    limit $12
) as p
order by p.created_at, p.memory_id
limit $12;

-- name: list_by_occurred_desc(agent_id, kinds, states, origins, trusts, since, until, created_since, created_until, after_time, after_id, max_rows)
select p.memory_id, p.occurred_at as position
from unnest($2::text[]) as k (kind)
cross join lateral (
    select m.memory_id, m.occurred_at
    from memory.memories as m
    where
        m.agent_id = $1
        and m.kind = k.kind
        and memory.matches_filter(
            m.kind, m.state, m.quarantined, m.origin, m.trust, m.occurred_at, m.created_at, $3, $4, $5, $6, $7, $8, $9
        )
        and (m.occurred_at, m.memory_id) < ($10, $11)
    order by m.occurred_at desc, m.memory_id desc
    limit $12
) as p
order by p.occurred_at desc, p.memory_id desc
limit $12;

-- name: list_by_occurred_asc(agent_id, kinds, states, origins, trusts, since, until, created_since, created_until, after_time, after_id, max_rows)
select p.memory_id, p.occurred_at as position
from unnest($2::text[]) as k (kind)
cross join lateral (
    select m.memory_id, m.occurred_at
    from memory.memories as m
    where
        m.agent_id = $1
        and m.kind = k.kind
        and memory.matches_filter(
            m.kind, m.state, m.quarantined, m.origin, m.trust, m.occurred_at, m.created_at, $3, $4, $5, $6, $7, $8, $9
        )
        and (m.occurred_at, m.memory_id) > ($10, $11)
    order by m.occurred_at, m.memory_id
    limit $12
) as p
order by p.occurred_at, p.memory_id
limit $12;

-- name: rank_all(agent_id, kinds, states, origins, trusts, since, until, created_since, created_until, sort, direction, after_key, after_id, max_rows)
-- For keys that change whenever a memory is used: an index on them would slow down every context. Reads all memories of
-- these kinds.
select m.memory_id, s.key as position
from memory.memories as m
cross join lateral (select $11::integer * memory.sort_key(
        m.kind, m.state, m.outcome, m.importance, m.uses, m.created_at, m.occurred_at, m.accessed_at, m.confirmed_at, $10
    ) as key) as s
where
    m.agent_id = $1
    and m.kind = any($2::text[])
    and memory.matches_filter(
        m.kind, m.state, m.quarantined, m.origin, m.trust, m.occurred_at, m.created_at, $3, $4, $5, $6, $7, $8, $9
    )
    and ($12::numeric is null or (s.key, m.memory_id) > ($12, $13::uuid))
order by s.key, m.memory_id
limit $14;

-- name: rank_selected(agent_id, memory_ids, kinds, states, origins, trusts, since, until, created_since, created_until, sort, direction, after_key, after_id, max_rows)
-- The same for the memories of a narrower filter, which are found first.
select m.memory_id, s.key as position
from memory.memories as m
cross join lateral (select $12::integer * memory.sort_key(
        m.kind, m.state, m.outcome, m.importance, m.uses, m.created_at, m.occurred_at, m.accessed_at, m.confirmed_at, $11
    ) as key) as s
where
    m.agent_id = $1
    and m.memory_id = any($2::uuid[])
    and m.kind = any($3::text[])
    and memory.matches_filter(
        m.kind, m.state, m.quarantined, m.origin, m.trust, m.occurred_at, m.created_at, $4, $5, $6, $7, $8, $9, $10
    )
    and ($13::numeric is null or (s.key, m.memory_id) > ($13, $14::uuid))
order by s.key, m.memory_id
limit $15;

-- name: count_all(agent_id, kinds, states, origins, trusts, since, until, created_since, created_until)
select count(*) as memories
from memory.memories as m
where
    m.agent_id = $1
    and m.kind = any($2::text[])
    and memory.matches_filter(
        m.kind, m.state, m.quarantined, m.origin, m.trust, m.occurred_at, m.created_at, $3, $4, $5, $6, $7, $8, $9
    );

-- name: count_selected(agent_id, memory_ids, kinds, states, origins, trusts, since, until, created_since, created_until)
select count(*) as memories
from memory.memories as m
where
    m.agent_id = $1
    and m.memory_id = any($2::uuid[])
    and m.kind = any($3::text[])
    and memory.matches_filter(
        m.kind, m.state, m.quarantined, m.origin, m.trust, m.occurred_at, m.created_at, $4, $5, $6, $7, $8, $9, $10
    );

-- name: find_by_subject(agent_id, subject_keys)
select memory_id
from heart.facts
where agent_id = $1 and subject_key = any($2::text[]);

-- name: find_by_words(agent_id, words)
-- Memories that contain every word of the text, stemmed.
with word as materialized (
    select w.lexeme
    from unnest(memory.search_words($2)) as w
)
select p.memory_id
from memory.postings as p
where p.agent_id = $1 and p.lexeme in (select lexeme from word)
group by p.memory_id
having count(*) = (select count(*) from word);

-- name: find_in_session(agent_id, session_id)
-- What was said in a session, what was made of it, and what was made of that.
with said as materialized (
    select memory_id
    from memory.memories
    where agent_id = $1 and kind in ('exchange', 'artifact') and thread_id = $2
    union
    select memory_id
    from heart.episodes
    where agent_id = $1 and session_id = $2
    union
    select memory_id
    from heart.events
    where agent_id = $1 and session_id = $2
)
select memory_id
from said
union
select s.memory_id
from memory.sources as s
where s.agent_id = $1 and s.source_id in (select memory_id from said);

-- name: find_made_from(agent_id, source_id)
select memory_id
from memory.sources
where agent_id = $1 and source_id = $2;

-- name: get_rows(agent_id, memory_ids)
select
    m.memory_id, m.kind, m.state, m.quarantined, m.micro, m.summary as text, m.confidence, m.importance, m.outcome,
    m.confirmations, m.uses, m.occurred_at, m.created_at, m.accessed_at, m.confirmed_at, m.origin, m.trust, m.ref,
    f.subject, f.attribute, coalesce(f.is_core, false) as is_marked_core, s.ref as session
from memory.memories as m
left join heart.facts as f on f.agent_id = $1 and f.memory_id = m.memory_id
left join heart.episodes as e on e.agent_id = $1 and e.memory_id = m.memory_id
left join heart.events as v on v.agent_id = $1 and v.memory_id = m.memory_id
left join dialogue.sessions as s
    on s.agent_id = $1
    and s.session_id
    = coalesce(e.session_id, v.session_id, case when m.kind in ('exchange', 'artifact') then m.thread_id end)
where m.agent_id = $1 and m.memory_id = any($2::uuid[]);
