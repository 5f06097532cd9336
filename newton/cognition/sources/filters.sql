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
