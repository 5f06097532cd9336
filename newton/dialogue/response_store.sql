-- name: reserve(agent_id, response_id, previous_id, session_id, now)
insert into dialogue.responses (agent_id, response_id, previous_id, session_id, created_at)
values ($1, $2, $3, $4, $5);

-- name: find_continuation(agent_id, previous_id, session_id)
select response_id
from dialogue.responses
where agent_id = $1 and previous_id = $2 and session_id = $3
limit 1;

-- name: store(agent_id, response_id, session_id, refs, response)
-- A turn that stored no message in a branch ends at the branch point.
insert into dialogue.responses (
    agent_id, response_id, session_id, position, previous_id, model, status, incomplete_reason, usage, metadata,
    created_at, completed_at
)
select
    $1, $2, s.session_id,
    coalesce(
        (
            select max(m.position)
            from dialogue.messages as m
            where m.agent_id = $1 and m.session_id = s.session_id and m.ref = any($4::text[])
        ),
        s.parent_position
    ),
    d.previous_id, d.model, d.status, d.incomplete_reason, d.usage, d.metadata, d.created_at, d.completed_at
from jsonb_to_record($5::jsonb) as d (
    previous_id uuid, model text, status text, incomplete_reason text, usage jsonb, metadata jsonb,
    created_at timestamptz, completed_at timestamptz
)
join dialogue.sessions as s on s.agent_id = $1 and s.session_id = $3
on conflict (agent_id, response_id) do update
set
    position = excluded.position,
    model = excluded.model,
    status = excluded.status,
    incomplete_reason = excluded.incomplete_reason,
    usage = excluded.usage,
    metadata = excluded.metadata,
    completed_at = excluded.completed_at;

-- name: find(agent_id, response_ids)
-- The complete responses with the message at their place, which may belong to an ancestor of their session.
select
    r.response_id, r.session_id, r.position, r.previous_id, r.model, r.status, r.incomplete_reason, r.usage, r.metadata,
    r.created_at, r.completed_at, m.ref, m.role, m.content, m.tool_calls as calls
from dialogue.responses as r
left join dialogue.lineage as l
    on l.agent_id = $1
    and l.session_id = r.session_id
    and r.position between l.first_position and l.last_position
join dialogue.messages as m
    on m.agent_id = $1 and m.session_id = coalesce(l.ancestor_id, r.session_id) and m.position = r.position
where r.agent_id = $1 and r.response_id = any($2::uuid[]) and r.status is not null;

-- name: delete(agent_id, response_id)
delete from dialogue.responses
where agent_id = $1 and response_id = $2 and status is not null
returning response_id;

-- name: get_last_input(agent_id, session_id, position)
-- The last message of a user in a conversation up to a position, including its ancestors.
with owner as (
    select ancestor_id as session_id, first_position, least(last_position, $3::integer) as last_position
    from dialogue.lineage
    where agent_id = $1 and session_id = $2
    union all
    select $2::uuid, 0, $3::integer
)
select m.content
from owner as o
join dialogue.messages as m
    on m.agent_id = $1 and m.session_id = o.session_id and m.position between o.first_position and o.last_position
where m.role = 'user'
order by m.position desc
limit 1;
