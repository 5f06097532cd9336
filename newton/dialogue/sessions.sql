-- name: get_or_create(agent_id, session_id, ref, now)
-- The session with this ref, which is created if there is none. No row if another transaction created it meanwhile.
with known as (
    select session_id
    from dialogue.sessions
    where agent_id = $1 and ref = $3
),
created as (
    insert into dialogue.sessions (agent_id, session_id, ref, created_at)
    select $1, $2, $3, $4
    where not exists (select from known)
    on conflict (agent_id, ref) do nothing
    returning session_id
)
select session_id from known
union all
select session_id from created;

-- name: find_by_ref(agent_id, ref)
select session_id
from dialogue.sessions
where agent_id = $1 and ref = $2;

-- name: list_folder(agent_id, folder, max_rows)
-- The latest sessions whose names begin with the folder and a slash.
select session_id
from dialogue.sessions
where agent_id = $1 and starts_with(ref, $2 || '/')
order by created_at desc, session_id desc
limit $3;

-- name: get_ref(agent_id, session_id)
select ref
from dialogue.sessions
where agent_id = $1 and session_id = $2;

-- name: find_messages(agent_id, session_id, refs)
-- The messages with these refs, each with the last position of the conversation; one row without a message if there is
-- none. An empty branch ends at its branch point.
select
    t.last_position, m.position, m.ref, m.role, m.name, m.content, m.is_notice, m.min_trust, m.tokens, m.said_at,
    m.tool_calls as calls, m.tool_call_id
from (
    select greatest(
        (select max(position) from dialogue.messages where agent_id = $1 and session_id = $2),
        (select parent_position from dialogue.sessions where agent_id = $1 and session_id = $2)
    ) as last_position
) as t
left join dialogue.messages as m on m.agent_id = $1 and m.session_id = $2 and m.ref = any($3::text[]);

-- name: find_tool_calls(agent_id, session_id, call_ids)
-- Tool calls with these ids in a conversation, including its ancestors, and whether each has a result. An id may be
-- reused, so a result before the call does not count.
with stretch as (
    select ancestor_id as session_id, first_position, last_position
    from dialogue.lineage
    where agent_id = $1 and session_id = $2
    union all
    select $2::uuid, 0, 2147483647
)
select
    c.value ->> 'id' as id,
    c.value ->> 'name' as name,
    c.value ->> 'arguments' as arguments,
    exists (
        select
        from stretch as s
        join dialogue.messages as a on a.agent_id = $1 and a.session_id = s.session_id
        where
            a.tool_call_id = c.value ->> 'id'
            and a.position > m.position
            and a.position between s.first_position and s.last_position
    ) as answered
from stretch as s
join dialogue.messages as m
    on m.agent_id = $1
    and m.session_id = s.session_id
    and m.position between s.first_position and s.last_position
    and m.tool_calls is not null
cross join lateral jsonb_array_elements(m.tool_calls) as c
where c.value ->> 'id' = any($3::text[]);

-- name: list_foreign_trusts(agent_id, session_id)
-- The trust levels of the messages of tools and the web in a conversation, including its ancestors.
with owner as (
    select ancestor_id as session_id, first_position, last_position
    from dialogue.lineage
    where agent_id = $1 and session_id = $2
    union all
    select $2::uuid, 0, 2147483647
)
select distinct x.trust
from owner as o
join memory.memories as x
    on
        x.agent_id = $1
        and x.kind = 'exchange'
        and x.thread_id = o.session_id
        and x.position between o.first_position and o.last_position
where x.trust in ('tool', 'web');

-- name: insert_messages(agent_id, session_id, messages)
insert into dialogue.messages (
    agent_id, session_id, position, ref, role, name, content, is_notice, tool_calls, tool_call_id, min_trust, tokens,
    said_at, recorded_at
)
select
    $1, $2, d.position, d.ref, d.role, d.name, d.content, d.is_notice, nullif(d.calls, 'null'::jsonb),
    d.tool_call_id, d.min_trust, d.tokens, d.said_at, d.recorded_at
from jsonb_to_recordset($3::jsonb) as d (
    position integer, ref text, role text, name text, content text, is_notice boolean, calls jsonb, tool_call_id text,
    min_trust text, tokens integer, said_at timestamptz, recorded_at timestamptz
)
returning agent_id;
