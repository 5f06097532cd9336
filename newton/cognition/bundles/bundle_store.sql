-- name: insert_bundle(agent_id, bundle_id, session_id, created_at, as_of, input, frame, profile, budget, tokens, text, memory_ids, candidates, trace)
-- Also returns the low 32 bits of the transaction's id on the server of the agent.
insert into cognition.bundles (
    agent_id, bundle_id, session_id, created_at, as_of, input, frame, profile, budget, tokens, text, memory_ids,
    candidates, trace
)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14::jsonb)
returning xmin::text::bigint as transaction_id;

-- name: insert_turn(agent_id, turn_id, session_id, bundle_id, created_at, method, reason, answered_by, input_position, reply_position)
-- bundle_id becomes null if the bundle was deleted while the model was answering.
insert into cognition.turns (agent_id, turn_id, session_id, bundle_id, created_at, method, reason, answered_by, input_position, reply_position)
select
    $1, $2, $3, (select b.bundle_id from cognition.bundles as b where b.agent_id = $1 and b.bundle_id = $4),
    $5, $6, $7, $8, $9, $10
returning agent_id;

-- name: get_bundle(agent_id, bundle_id)
select
    b.bundle_id, s.ref as session, b.created_at, b.as_of, b.input, b.frame, b.profile, b.budget, b.tokens, b.text,
    b.memory_ids, b.candidates, b.trace
from cognition.bundles as b
left join dialogue.sessions as s on s.agent_id = $1 and s.session_id = b.session_id
where b.agent_id = $1 and b.bundle_id = $2;

-- name: get_nth_last(agent_id, rows_to_skip)
select bundle_id
from cognition.bundles
where agent_id = $1
order by created_at desc, bundle_id desc
limit 1 offset $2;

-- name: get_latest_usage(agent_id, session_id)
-- The tokens of the latest context of a session, by layer.
select bundle_id, created_at, tokens, budget, trace -> 'layers' as layers
from cognition.bundles
where agent_id = $1 and session_id = $2 and as_of is null
order by created_at desc, bundle_id desc
limit 1;

-- name: find_by_id_part(agent_id, id_part, max_rows)
-- Bundles whose id begins or ends with these digits.
select bundle_id
from cognition.bundles
where
    agent_id = $1
    and (
        right(replace(bundle_id::text, '-', ''), length($2)) = $2
        or left(replace(bundle_id::text, '-', ''), length($2)) = $2
    )
limit $3;

-- name: list_bundles(agent_id, before, session_id, max_rows)
-- Of one session, or of all if session_id is null.
select b.bundle_id, b.created_at, b.as_of, s.ref as session, b.frame, b.tokens, b.budget, b.input
from cognition.bundles as b
left join dialogue.sessions as s on s.agent_id = $1 and s.session_id = b.session_id
where
    b.agent_id = $1
    and (
        $2::uuid is null
        or (b.created_at, b.bundle_id) < (
            select p.created_at, p.bundle_id from cognition.bundles as p where p.agent_id = $1 and p.bundle_id = $2
        )
    )
    and ($3::uuid is null or b.session_id = $3)
order by b.created_at desc, b.bundle_id desc
limit $4;

-- name: list_sources(agent_id, memory_ids)
-- The sources and evidence of memories; for an episode, the messages of its session.
select s.memory_id, s.source_id
from memory.sources as s
where s.agent_id = $1 and s.memory_id = any($2::uuid[])
union
select l.other_id, l.memory_id
from memory.links as l
where l.agent_id = $1 and l.link = 'evidence' and l.other_id = any($2::uuid[])
union
select l.memory_id, l.other_id
from memory.links as l
where l.agent_id = $1 and l.link = 'part_of' and l.memory_id = any($2::uuid[])
order by 1, 2;

-- name: delete_expired(agent_id, moment)
select cognition.delete_expired_bundles($1, $2) as expire;

-- name: list_shown_procedures(agent_id, session_id, first, last, inner_first, inner_last)
-- The procedures in the contexts of the turns of a range of messages, without the inner ranges. A turn that still runs is
-- not stored yet; its context is the last one of the session.
with turns as (
    select t.bundle_id
    from cognition.turns as t
    where
        t.agent_id = $1
        and t.session_id = $2
        and t.input_position between $3 and $4
        and not exists (
            select
            from unnest($5::integer[], $6::integer[]) as i (first, last)
            where t.input_position between i.first and i.last
        )
    union
    (
        select b.bundle_id
        from cognition.bundles as b
        where
            b.agent_id = $1
            and b.session_id = $2
            and b.as_of is null
            and $4 >= $3
            and not exists (select from unnest($6::integer[]) as i (last) where i.last >= $4)
        order by b.created_at desc, b.bundle_id desc
        limit 1
    )
)
select distinct p.memory_id
from turns as t
join cognition.bundles as b on b.agent_id = $1 and b.bundle_id = t.bundle_id
join heart.procedures as p on p.agent_id = $1 and p.memory_id = any(b.memory_ids)
where strpos(b.text, '## Procedure: ' || p.name || E'\n') > 0
order by p.memory_id;

-- name: list_windows(agent_id, memory_ids)
select memory_id, position, text, tokens
from memory.windows
where agent_id = $1 and memory_id = any($2::uuid[]);
