-- name: insert_block(agent_id, session_id, position, kind, edition, text, tokens, min_trust, now, bundle_id, memory_ids)
insert into dialogue.prompt_blocks (
    agent_id, session_id, position, kind, edition, text, tokens, min_trust, created_at, bundle_id, memory_ids
)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
on conflict do nothing;

-- name: get_system_block(agent_id, session_id)
-- When the conversation of a session began, in a branch that of its first ancestor, with its latest system message.
with owner as (
    select ancestor_id as session_id, first_position, last_position
    from dialogue.lineage
    where agent_id = $1 and session_id = $2
    union all
    select $2::uuid, 0, 2147483647
)
select a.created_at, b.position, b.edition, b.text, b.tokens
from dialogue.sessions as s
join lateral (
    select min(r.created_at) as created_at
    from owner as o
    join dialogue.sessions as r on r.agent_id = $1 and r.session_id = o.session_id
) as a on true
left join lateral (
    select k.position, k.edition, k.text, k.tokens
    from owner as o
    join dialogue.prompt_blocks as k
        on k.agent_id = $1 and k.session_id = o.session_id and k.position between o.first_position and o.last_position
    where k.kind = 'system'
    order by k.position desc
    limit 1
) as b on true
where s.agent_id = $1 and s.session_id = $2;

-- name: list_memory_blocks(agent_id, session_id, firsts, lasts)
with owner as (
    select ancestor_id as session_id, first_position, last_position
    from dialogue.lineage
    where agent_id = $1 and session_id = $2
    union all
    select $2::uuid, 0, 2147483647
)
select b.position, b.text, b.tokens, b.min_trust
from unnest($3::integer[], $4::integer[]) as s (first, last)
join owner as o on o.first_position <= s.last and o.last_position >= s.first
join dialogue.prompt_blocks as b
    on b.agent_id = $1
    and b.session_id = o.session_id
    and b.position between greatest(s.first, o.first_position) and least(s.last, o.last_position)
where b.kind = 'memory' and b.text <> '[forgotten]';

-- name: list_blocks(agent_id, session_id)
with owner as (
    select ancestor_id as session_id, first_position, last_position
    from dialogue.lineage
    where agent_id = $1 and session_id = $2
    union all
    select $2::uuid, 0, 2147483647
)
select b.kind, b.position, b.text
from owner as o
join dialogue.prompt_blocks as b
    on b.agent_id = $1 and b.session_id = o.session_id and b.position between o.first_position and o.last_position;
