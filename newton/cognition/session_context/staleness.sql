-- name: get_latest_bundle(agent_id, session_id)
select bundle_id
from cognition.bundles
where agent_id = $1 and session_id = $2 and as_of is null
order by created_at desc, bundle_id desc
limit 1;

-- name: find_changed(agent_id, memory_ids, micros, summaries, built_at)
-- Of the memories in a context, those whose text has changed, that are not current any more, that were contradicted since
-- the context was built, or that are gone.
select s.memory_id, m.kind, m.state, coalesce(m.quarantined, false) as quarantined
from unnest($2::uuid[], $3::text[], $4::text[]) as s (memory_id, micro, summary)
left join memory.memories as m on m.agent_id = $1 and m.memory_id = s.memory_id
where
    m.memory_id is null
    or (m.quarantined and (m.kind not in ('artifact', 'event', 'exchange') or m.trust not in ('tool', 'web')))
    or memory.is_obsolete(m.kind, m.state)
    or m.micro <> s.micro
    or m.summary <> s.summary
    or (
        m.kind = 'fact'
        and exists (
            select
            from memory.links as l
            where
                l.agent_id = $1
                and l.link = 'contradicts'
                and l.created_at >= $5
                and (l.memory_id = m.memory_id or l.other_id = m.memory_id)
        )
    )
    or (m.kind = 'relation' and not heart.is_relation_current($1, m.memory_id, 'infinity'));

-- name: list_new_memories(agent_id, after, known, session_id, first_sent, unsent, max_rows)
-- Memories written after an id, latest first, with a flag for events of this session. Messages of the session are
-- excluded, and facts that only a message sent with the prompt states, because the model sees them anyway.
select m.memory_id, m.kind, e.memory_id is not null as happened
from memory.memories as m
left join heart.events as e on e.agent_id = $1 and e.memory_id = m.memory_id and e.session_id = $4
where
    m.agent_id = $1
    and m.memory_id > $2
    and m.memory_id <> all($3::uuid[])
    and m.kind in ('fact', 'episode', 'procedure', 'passage', 'item', 'event', 'decision', 'exchange')
    and m.thread_id is distinct from $4
    and not memory.is_obsolete(m.kind, m.state)
    and not m.quarantined
    and not (m.kind = 'fact' and memory.is_stated_only_in($1, m.memory_id, $4, $5, $6))
order by m.memory_id desc
limit $7;

-- name: list_cosines(agent_id, model_id, embedding, topic, memory_ids, kinds, shown_ids)
-- The cosine similarity of each memory to the nearer of two vectors. Memories without a vector are missing. In a row
-- without a memory, the highest cosine similarity of the first vector to any shown memory.
select null as memory_id, max(-(e.embedding <#> $3)) as cosine
from memory.embeddings as e
join memory.memories as m on m.agent_id = $1 and m.memory_id = e.memory_id
where e.agent_id = $1 and e.model_id = $2 and e.kind = m.kind and m.memory_id = any($7::uuid[])
union all
select e.memory_id, greatest(-(e.embedding <#> $3), -(e.embedding <#> $4)) as cosine
from unnest($5::uuid[], $6::text[]) as wanted (memory_id, kind)
join memory.embeddings as e
    on e.agent_id = $1 and e.model_id = $2 and e.kind = wanted.kind and e.memory_id = wanted.memory_id;

-- name: find_nearest(agent_id, model_id, embedding, session_id, known, min_cosine, max_rows, first_sent, unsent)
-- The memories nearest to a vector that are not known. Messages of the session are excluded, and facts that only a message
-- sent with the prompt states, because the model sees them anyway. One index lookup for each of the few nearest.
select near.memory_id, near.cosine
from (
    select e.memory_id, -(e.embedding <#> $3) as cosine
    from memory.embeddings as e
    where
        e.agent_id = $1
        and e.model_id = $2
        and e.kind in ('fact', 'episode', 'passage', 'item', 'decision', 'exchange')
        and -(e.embedding <#> $3) >= $6
        and e.memory_id <> all($5::uuid[])
    order by e.embedding <#> $3
    limit 8 * $7
) as near
join memory.memories as m on m.agent_id = $1 and m.memory_id = near.memory_id
where
    m.thread_id is distinct from $4
    and not m.quarantined
    and not memory.is_obsolete(m.kind, m.state)
    and not (m.kind = 'fact' and memory.is_stated_only_in($1, m.memory_id, $4, $8, $9))
order by near.cosine desc, near.memory_id
limit $7;

-- name: list_replaced(agent_id, session_id, positions)
-- The facts that blocks before these inputs state, or that messages in them state, and that are not current any more,
-- with what took their place, if anything. Only changes after the block was sent count; a quarantined fact was never
-- current in a block, or is so no more.
with owner as (
    select ancestor_id as session_id, first_position, last_position
    from dialogue.lineage
    where agent_id = $1 and session_id = $2
    union all
    select $2::uuid, 0, 2147483647
),
shown as (
    select i.memory_id, min(b.created_at) as sent_at
    from owner as o
    join dialogue.prompt_blocks as b
        on b.agent_id = $1 and b.session_id = o.session_id and b.position between o.first_position and o.last_position
    cross join lateral unnest(b.memory_ids) as i (memory_id)
    where b.kind = 'memory' and b.position = any($3::integer[])
    group by i.memory_id
),
stated as (
    select s.memory_id, s.sent_at
    from shown as s
    union
    select e.memory_id, s.sent_at
    from shown as s
    join memory.sources as e on e.agent_id = $1 and e.source_id = s.memory_id
)
select
    m.memory_id, m.summary as text,
    coalesce(array_agg(n.memory_id order by n.memory_id desc) filter (where n.memory_id is not null), '{}') as ids,
    coalesce(array_agg(n.summary order by n.memory_id desc) filter (where n.memory_id is not null), '{}') as successors
from (select memory_id, min(sent_at) as sent_at from stated group by memory_id) as s
join memory.memories as m on m.agent_id = $1 and m.memory_id = s.memory_id
left join lateral (
    select x.memory_id, x.summary
    from memory.memories as x
    where
        x.agent_id = $1
        and x.memory_id in (select heart.list_successors($1, m.memory_id, null))
        and x.memory_id <> m.memory_id
        and x.kind = 'fact'
        and not x.quarantined
        and not memory.is_obsolete(x.kind, x.state)
) as n on true
where
    m.kind = 'fact'
    and (
        m.quarantined
        or (
            memory.is_obsolete(m.kind, m.state)
            and exists (
                select
                from memory.transitions as t
                where t.agent_id = $1 and t.memory_id = m.memory_id and t.changed_at >= s.sent_at
            )
        )
    )
    -- a fact of the same message in its place only says the same better
    and not exists (
        select
        from memory.sources as e
        join memory.sources as o on o.agent_id = $1 and o.memory_id = n.memory_id and o.source_id = e.source_id
        where e.agent_id = $1 and e.memory_id = m.memory_id
    )
group by m.memory_id, m.summary
order by m.memory_id;
