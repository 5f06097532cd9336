-- name: list_status_changes(agent_id, session_id, task_id, moment)
-- The changes of the status of a task, in order, up to a moment or all.
select event, position, changed_at
from dialogue.task_transitions
where
    agent_id = $1
    and session_id = $2
    and task_id = $3
    and ($4::timestamptz is null or changed_at <= $4)
order by step;

-- name: list_task_memories(agent_id, session_id, firsts, lasts, starts, ends, task_ids, max_rows)
-- What belongs to a task besides its messages: memories made from these messages, events and memories that the session
-- recorded while the task was active, and the episodes of its subtasks. The latest ones, if there are too many.
with said as (
    select m.memory_id
    from unnest($3::integer[], $4::integer[]) as r (first, last)
    join memory.memories as m
        on m.agent_id = $1 and m.kind = 'exchange' and m.thread_id = $2 and m.position between r.first and r.last
),
recorded as (
    select memory_id
    from heart.events
    where agent_id = $1 and session_id = $2
    union
    select memory_id
    from cognition.working_set
    where agent_id = $1 and session_id = $2
)
select memory_id
from (
    select s.memory_id
    from said as d
    join memory.sources as s on s.agent_id = $1 and s.source_id = d.memory_id
    union
    select m.memory_id
    from recorded as d
    join memory.memories as m on m.agent_id = $1 and m.memory_id = d.memory_id and m.kind <> 'exchange'
    where
        exists (
            select
            from unnest($5::timestamptz[], $6::timestamptz[]) as t (since, until)
            where m.created_at between t.since and coalesce(t.until, 'infinity')
        )
    union
    select memory_id
    from memory.memories
    where agent_id = $1 and memory_id = any($7::uuid[])
) as found
order by memory_id desc
limit $8;

-- name: list_filtered_out(agent_id, since, until, event_types, entity_types, task_session, task_firsts, task_lasts, task_memories)
-- Without a task, the last four parameters are null.
select memory_id
from memory.memories
where agent_id = $1 and (occurred_at < $2 or occurred_at >= $3) and kind not in ('entity', 'relation', 'procedure', 'censor')
union
-- entities have no time of their own; a relation begins with its earliest evidence
select r.memory_id
from heart.relations as r
join memory.links as l on l.agent_id = $1 and l.link = 'evidence' and l.other_id = r.memory_id
join memory.memories as m on m.agent_id = $1 and m.memory_id = l.memory_id
where r.agent_id = $1
group by r.memory_id
having min(m.occurred_at) >= $3
union
select memory_id
from heart.events
where agent_id = $1 and cardinality($4::text[]) > 0 and type <> all($4::text[])
union
select memory_id
from heart.entities
where agent_id = $1 and cardinality($5::text[]) > 0 and type <> all($5::text[])
union
select memory_id
from memory.memories
where
    agent_id = $1
    and $6::uuid is not null
    and kind not in ('entity', 'relation', 'procedure', 'censor')
    and not (
        kind = 'exchange'
        and thread_id = $6
        and exists (
            select from unnest($7::integer[], $8::integer[]) as r (first, last) where position between r.first and r.last
        )
    )
    and memory_id <> all($9::uuid[]);
