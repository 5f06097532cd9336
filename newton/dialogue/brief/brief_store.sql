-- name: list_items(agent_id, session_id, moment, only_open)
-- The items of a session and of the sessions that it continues, as they were at a moment or are now. A closing counts in
-- the session in which it was made, and in branches that begin after it.
with owner as (
    select ancestor_id as session_id, first_position, last_position
    from dialogue.lineage
    where agent_id = $1 and session_id = $2
    union all
    select $2::uuid, -1, 2147483647
)
select
    i.item_id, i.kind, i.text, i.tokens, i.position, i.source, i.memory_id, i.said_at, coalesce(m.trust, 'user') as trust,
    coalesce(c.status, 'open') as status, c.closed_at, c.position as closed_position, c.replaced_by
from owner as o
join dialogue.brief_items as i
    on i.agent_id = $1 and i.session_id = o.session_id and i.position between o.first_position and o.last_position
left join memory.memories as m on m.agent_id = $1 and m.memory_id = i.memory_id
left join lateral (
    select x.status, x.closed_at, x.position, x.replaced_by
    from owner as p
    join dialogue.brief_closings as x
        on x.agent_id = $1
        and x.session_id = p.session_id
        and x.item_id = i.item_id
        and x.position between p.first_position and p.last_position
    where $3::timestamptz is null or x.closed_at <= $3
    order by x.closed_at
    limit 1
) as c on true
where ($3::timestamptz is null or i.created_at <= $3) and (not $4 or c.status is null)
order by i.position, i.item_id;

-- name: list_person_messages(agent_id, session_id, first, last)
-- The messages of a person in a range of a conversation, with their memories.
with owner as (
    select ancestor_id as session_id, first_position, last_position
    from dialogue.lineage
    where agent_id = $1 and session_id = $2
    union all
    select $2::uuid, 0, 2147483647
)
select m.position, m.role, m.name, m.content, m.tokens, m.said_at, x.memory_id, x.trust
from owner as o
join dialogue.messages as m
    on m.agent_id = $1
    and m.session_id = o.session_id
    and m.position between greatest($3, o.first_position) and least($4, o.last_position)
join memory.memories as x
    on x.agent_id = $1 and x.kind = 'exchange' and x.thread_id = m.session_id and x.position = m.position
where m.role = 'user' and not x.quarantined
order by m.position;

-- name: insert_items(agent_id, session_id, items, now)
insert into dialogue.brief_items (
    agent_id, session_id, item_id, kind, text, tokens, position, source, memory_id, said_at, created_at
)
select $1, $2, i.item_id, i.kind, i.text, i.tokens, i.position, i.source, i.memory_id, i.said_at, $4
from jsonb_to_recordset($3::jsonb) as i (
    item_id uuid, kind text, text text, tokens integer, position integer, source text, memory_id uuid,
    said_at timestamptz
)
returning agent_id;

-- name: insert_closings(agent_id, session_id, closings, now, origin)
insert into dialogue.brief_closings (
    agent_id, session_id, item_id, status, position, memory_id, replaced_by, closed_at, origin
)
select $1, $2, c.item_id, c.status, c.position, c.memory_id, c.replaced_by, $4, $5
from jsonb_to_recordset($3::jsonb) as c (
    item_id uuid, status text, position integer, memory_id uuid, replaced_by uuid
)
on conflict do nothing;
