-- name: insert_changes(agent_id, change_ids, line_ids, effects, target_ids, former_ends, now)
insert into heart.line_changes (agent_id, change_id, line_id, effect, target_id, former_valid_to, changed_at)
select $1, d.change_id, d.line_id, d.effect, d.target_id, d.former_valid_to, $7
from unnest($2::uuid[], $3::uuid[], $4::text[], $5::uuid[], $6::timestamptz[])
    as d (change_id, line_id, effect, target_id, former_valid_to)
on conflict do nothing;

-- name: list_changes(agent_id, since, session_id, position)
select
    c.change_id, c.line_id, c.effect, c.target_id, c.former_valid_to, coalesce(m.kind, t.section) as kind,
    coalesce(m.full_text, t.text, m.summary) as text
from heart.line_changes as c
left join memory.memories as m on m.agent_id = $1 and m.memory_id = c.target_id
left join heart.tenets as t on t.agent_id = $1 and t.tenet_id = c.target_id
where
    c.agent_id = $1
    and c.undone_at is null
    and ($2::timestamptz is null or c.changed_at >= $2)
    and (
        $3::uuid is null
        or c.line_id in (
            select memory_id
            from memory.memories
            where
                agent_id = $1
                and kind = 'exchange'
                and thread_id = $3
                and ($4::integer is null or position = $4)
        )
    )
order by c.change_id;

-- name: read_texts(agent_id, target_ids)
select memory_id as target_id, coalesce(full_text, summary) as text
from memory.memories
where agent_id = $1 and memory_id = any($2::uuid[])
union all
select tenet_id as target_id, text
from heart.tenets
where agent_id = $1 and tenet_id = any($2::uuid[]) and text is not null;

-- name: mark_undone(agent_id, change_ids, now)
update heart.line_changes
set undone_at = $3
where agent_id = $1 and change_id = any($2::uuid[]);

-- name: unhide(agent_id, memory_ids)
update memory.memories
set quarantined = false
where agent_id = $1 and memory_id = any($2::uuid[]) and trust not in ('tool', 'web');

-- name: list_kept_out(agent_id, line_id)
-- The messages of persons that a message hides, in short.
select left(m.content, 100) as text
from heart.line_changes as c
join memory.memories as x on x.agent_id = $1 and x.memory_id = c.target_id and x.kind = 'exchange' and x.quarantined
join dialogue.messages as m
    on m.agent_id = $1 and m.session_id = x.thread_id and m.position = x.position and m.role = 'user'
where c.agent_id = $1 and c.line_id = $2 and c.effect = 'hidden' and c.undone_at is null
order by x.memory_id;

-- name: list_receipt(agent_id, line_id)
-- The facts that a message states, and those that no longer hold because of it; facts that the message only confirms
-- are left out. With them, what was changed since the message before it, such as by a reading in the background.
with changed as (
    select effect, target_id, line_id
    from heart.line_changes
    where
        agent_id = $1
        and undone_at is null
        and (
            line_id = $2
            or change_id > (
                select memory_id
                from memory.memories
                where agent_id = $1 and kind = 'exchange' and memory_id < $2
                order by memory_id desc
                limit 1
            )
        )
),
stated as (
    select f.memory_id, m.full_text as text, s.line_id
    from (
        select memory_id, source_id as line_id
        from memory.sources
        where agent_id = $1 and source_id = $2
        union
        select target_id, line_id
        from changed
        where effect = 'learnt'
    ) as s
    join heart.facts as f on f.agent_id = $1 and f.memory_id = s.memory_id and f.is_current and f.duplicate_of is null
    join memory.memories as m on m.agent_id = $1 and m.memory_id = s.memory_id and not m.quarantined
),
ended as (
    select l.other_id as memory_id, s.line_id
    from stated as s
    join memory.links as l on l.agent_id = $1 and l.memory_id = s.memory_id and l.link = 'supersedes'
    union
    select target_id, line_id
    from changed
    where effect in ('replaced', 'ended', 'retracted')
)
select true as is_learnt, text
from stated
union
select c.effect = 'ruled', t.text
from changed as c
join heart.tenets as t on t.agent_id = $1 and t.tenet_id = c.target_id and t.text is not null
where c.effect in ('ruled', 'lifted')
union
select false, m.full_text
from ended as e
join memory.memories as m on m.agent_id = $1 and m.memory_id = e.memory_id and m.kind = 'fact'
where not exists (
    select from memory.sources
    where agent_id = $1 and memory_id = e.memory_id and source_id = e.line_id -- other words of the same line
)
order by is_learnt, text;
