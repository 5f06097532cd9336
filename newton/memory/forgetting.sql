-- name: find_existing(agent_id, memory_ids)
select memory_id, kind
from memory.memories
where agent_id = $1 and memory_id = any($2::uuid[]);

-- name: find_derived(agent_id, memory_ids)
-- Memories derived from these, transitively. An episode is derived from all of its messages.
with recursive gone as (
    select memory_id
    from memory.memories
    where agent_id = $1 and memory_id = any($2::uuid[])
    union
    select d.memory_id
    from gone as g
    cross join lateral (
        select s.memory_id
        from memory.sources as s
        where s.agent_id = $1 and s.source_id = g.memory_id
        union all
        select f.memory_id
        from heart.facts as f
        where f.agent_id = $1 and f.duplicate_of = g.memory_id
        union all
        select r.memory_id
        from heart.relations as r
        where r.agent_id = $1 and (r.source_id = g.memory_id or r.target_id = g.memory_id)
        union all
        select e.memory_id
        from memory.memories as x
        join heart.episodes as e
            on e.agent_id = $1 and e.session_id = x.thread_id and x.position between e.first_position and e.last_position
        where x.agent_id = $1 and x.memory_id = g.memory_id and x.kind = 'exchange'
    ) as d
)
select m.memory_id, m.kind, m.state, m.micro
from gone as g
join memory.memories as m on m.agent_id = $1 and m.memory_id = g.memory_id
where g.memory_id <> all($2::uuid[])
order by m.kind, m.memory_id;

-- name: find_orphaned(agent_id, memory_ids)
-- Relations without other evidence, and entities that are mentioned nowhere else and of which only the name is known, and
-- perhaps a role of the user ("my boss"), which a mention gave it.
with bare as materialized (
    select r.memory_id
    from heart.relations as r
    where
        r.agent_id = $1
        and r.memory_id in (
            select other_id
            from memory.links
            where agent_id = $1 and link = 'evidence' and memory_id = any($2::uuid[])
        )
        and not exists (
            select
            from memory.links
            where
                agent_id = $1 and link = 'evidence' and other_id = r.memory_id and memory_id <> all($2::uuid[])
        )
        and not exists (
            select
            from memory.confirmations
            where agent_id = $1 and memory_id = r.memory_id
        )
)
select memory_id
from bare
union
select e.memory_id
from heart.entities as e
where
    e.agent_id = $1
    and e.memory_id in (
        select entity_id
        from heart.mentions
        where agent_id = $1 and memory_id = any($2::uuid[])
    )
    and e.type = 'thing'
    and not exists (
        select
        from unnest(e.aliases) as a (name)
        where a.name not like 'my %'
    )
    and e.properties = '{}'
    and not exists (
        select
        from heart.mentions
        where agent_id = $1 and entity_id = e.memory_id and memory_id <> all($2::uuid[])
    )
    and not exists (
        select
        from heart.relations as r
        where
            r.agent_id = $1
            and (r.source_id = e.memory_id or r.target_id = e.memory_id)
            and r.memory_id not in (select memory_id from bare)
            and r.memory_id <> all($2::uuid[])
    );

-- name: list_statements(agent_id, memory_ids)
-- The texts of messages and facts among these memories, and the ids of facts in their source.
select coalesce(d.content, m.full_text, m.summary) as text, case when m.kind = 'fact' then m.ref end as ref
from memory.memories as m
left join dialogue.messages as d
    on m.kind = 'exchange' and d.agent_id = $1 and d.session_id = m.thread_id and d.position = m.position
where m.agent_id = $1 and m.memory_id = any($2::uuid[]) and m.kind in ('exchange', 'fact')
order by m.memory_id;

-- name: record_forgotten(agent_id, memory_ids, now, reason, origin)
insert into memory.forgotten (agent_id, memory_id, kind, forgotten_at, reason, origin)
select $1, memory_id, kind, $3, $4, $5
from memory.memories
where agent_id = $1 and memory_id = any($2::uuid[])
returning agent_id;

-- name: forget_recorded_rules(agent_id)
select heart.forget_rules($1);

-- name: forget_inherited(agent_id, memory_ids)
select cognition.forget_inherited($1, $2);

-- name: forget_recorded(agent_id)
select memory.forget($1);
