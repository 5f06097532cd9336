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
