-- name: list_lines(agent_id, line_ids)
-- The messages and told episodes that still exist, as they are now.
select
    x.memory_id, x.thread_id, x.position, x.trust, x.origin, x.occurred_at as said_at, s.ref as session
from memory.memories as x
left join dialogue.sessions as s on s.agent_id = $1 and s.session_id = x.thread_id
where
    x.agent_id = $1
    and x.memory_id = any($2::uuid[])
    and not (x.quarantined and x.trust in ('tool', 'web'));

-- name: list_stated(agent_id, line_ids)
-- The facts that the lines state, also those that were known before; originals in place of duplicates.
select distinct stated.line_id, f.memory_id, m.full_text as text, f.subject
from (
    select s.source_id as line_id, s.memory_id
    from memory.sources as s
    where s.agent_id = $1 and s.source_id = any($2::uuid[])
    union all
    select split_part(c.ref, ':', 2)::uuid, c.memory_id
    from memory.confirmations as c
    where c.agent_id = $1 and c.ref like 'told:%' and split_part(c.ref, ':', 2) = any($2::uuid[]::text[])
) as stated
join heart.facts as own on own.agent_id = $1 and own.memory_id = stated.memory_id
join heart.facts as f on f.agent_id = $1 and f.memory_id = coalesce(own.duplicate_of, own.memory_id) and f.is_current
join memory.memories as m on m.agent_id = $1 and m.memory_id = f.memory_id
order by f.memory_id;

-- name: list_drafts(agent_id, line_ids)
-- The facts that only these lines state, each with one of them.
select s.memory_id, max(s.source_id::text)::uuid as line_id
from memory.sources as s
where
    s.agent_id = $1
    and s.memory_id in (
        select memory_id
        from memory.sources
        where agent_id = $1 and source_id = any($2::uuid[])
    )
group by s.memory_id
having bool_and(s.source_id = any($2::uuid[]));

-- name: list_decisions(agent_id, memory_ids)
select memory_id
from memory.memories
where agent_id = $1 and memory_id = any($2::uuid[]) and kind = 'decision'
order by memory_id;
