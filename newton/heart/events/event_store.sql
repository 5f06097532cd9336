-- name: insert_events(agent_id, events)
insert into heart.events (agent_id, memory_id, session_id, type, payload)
select $1, d.memory_id, d.session_id, d.type, d.payload
from jsonb_to_recordset($2::jsonb) as d (memory_id uuid, session_id uuid, type text, payload jsonb);

-- name: list_recent_events(agent_id, session_id, moment, excluded_ids, max_rows, max_sessions, max_per_session, types, preferred_sessions)
-- The latest events of a session, preferred types first, and highlights of the latest other sessions, preferred ones
-- first: the last episode of each and its most informative events.
with quarantined_events as materialized (
    select memory_id
    from memory.memories
    where agent_id = $1 and kind = 'event' and quarantined
),
candidates as (
    select session_id, created_at, true as is_preferred
    from dialogue.sessions
    where agent_id = $1 and session_id = any($9::uuid[]) and session_id <> $2 and created_at <= $3
    union all
    (
        select session_id, created_at, false as is_preferred
        from dialogue.sessions
        where agent_id = $1 and session_id <> all($9::uuid[]) and session_id <> $2 and created_at <= $3
        order by created_at desc, session_id desc
        limit $6
    )
),
others as materialized (
    select session_id, row_number() over (order by is_preferred desc, created_at desc, session_id desc) as nth
    from candidates
    order by nth
    limit $6
),
own as materialized (
    select last.memory_id
    from (
        select memory_id, type
        from heart.events
        where
            agent_id = $1
            and session_id = $2
            and memory_id <> all($4::uuid[])
            and memory_id not in (select memory_id from quarantined_events)
        order by memory_id desc
        limit greatest($5, 50)
    ) as last
    order by last.type = any($8::text[]) desc, last.memory_id desc
    limit $5
)
select memory_id, 0 as nth
from own
union all
select h.memory_id, o.nth::integer
from others as o
cross join lateral (
    (
        select e.memory_id
        from heart.episodes as e
        where e.agent_id = $1 and e.session_id = o.session_id and e.memory_id <> all($4::uuid[])
        order by e.last_position desc
        limit 1
    )
    union all
    (
        select last.memory_id
        from (
            select memory_id, type
            from heart.events
            where
                agent_id = $1
                and session_id = o.session_id
                and memory_id <> all($4::uuid[])
                and memory_id not in (select memory_id from quarantined_events)
            order by memory_id desc
            limit 50
        ) as last
        order by
            array_position($8::text[] || array['error', 'file_write', 'shell_exec'], last.type),
            last.memory_id desc
        limit $7
    )
) as h;
