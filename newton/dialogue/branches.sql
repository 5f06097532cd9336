-- name: insert_branch(agent_id, session_id, ref, parent_id, position, now)
insert into dialogue.sessions (agent_id, session_id, ref, created_at, parent_id, parent_position)
values ($1, $2, $3, $6, $4, $5)
on conflict (agent_id, ref) do nothing
returning session_id;

-- name: insert_lineage(agent_id, session_id, parent_id, position)
-- Copies the ancestors of the parent up to the branch point and adds the parent itself.
insert into dialogue.lineage (agent_id, session_id, ancestor_id, first_position, last_position)
select $1, $2, l.ancestor_id, l.first_position, least(l.last_position, $4::integer)
from dialogue.lineage as l
where l.agent_id = $1 and l.session_id = $3 and l.first_position <= $4
union all
select $1, $2::uuid, $3::uuid, coalesce(s.parent_position + 1, 0), $4::integer
from dialogue.sessions as s
where s.agent_id = $1 and s.session_id = $3 and coalesce(s.parent_position + 1, 0) <= $4
returning agent_id;

-- name: insert_injection(agent_id, session_id, injection_id, place, other_id, first, last, tokens, now)
insert into dialogue.injections (
    agent_id, session_id, injection_id, position, source_session_id, first_position, last_position, tokens, created_at
)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9);

-- name: inherit_injections(agent_id, session_id, parent_id, position)
insert into dialogue.injections (
    agent_id, session_id, injection_id, position, source_session_id, first_position, last_position, tokens, created_at
)
select
    $1, $2, i.injection_id, i.position, i.source_session_id, i.first_position, i.last_position, i.tokens, i.created_at
from dialogue.injections as i
where
    i.agent_id = $1
    and i.session_id = $3
    and i.position <= $4
    and not exists (
        select
        from dialogue.injection_removals as e
        where e.agent_id = $1 and e.session_id = $3 and e.injection_id = i.injection_id
    )
returning agent_id;

-- name: remove_injection(agent_id, session_id, injection_id, now, origin)
insert into dialogue.injection_removals (agent_id, session_id, injection_id, removed_at, origin)
values ($1, $2, $3, $4, $5)
on conflict do nothing;

-- name: list_sessions(agent_id)
-- Sessions with branch point, number of messages, last message and first user message; the most recently used first.
select
    s.session_id, s.ref as session, s.created_at, p.ref as parent_session, s.parent_position,
    1 + coalesce(l.position, s.parent_position, -1) as messages,
    coalesce(l.recorded_at, s.created_at) as last_used_at, f.first_input
from dialogue.sessions as s
left join dialogue.sessions as p on p.agent_id = $1 and p.session_id = s.parent_id
left join lateral (
    select position, recorded_at
    from dialogue.messages
    where agent_id = $1 and session_id = s.session_id
    order by position desc
    limit 1
) as l on true
left join lateral (
    select left(content, 1000) as first_input
    from dialogue.messages
    where agent_id = $1 and session_id = s.session_id and role = 'user'
    order by position
    limit 1
) as f on true
where s.agent_id = $1
order by last_used_at desc, s.session_id desc;

-- name: inherit_will(agent_id, session_id, parent_id, position)
-- A veil over the parent covers a branch that begins behind a message that was not kept.
insert into dialogue.session_wills (agent_id, session_id, veil, lifted_by)
select $1, $2, w.veil, w.lifted_by
from dialogue.session_wills as w
where
    w.agent_id = $1
    and w.session_id = $3
    and w.veil is not null
    and (
        select m.content like '%[withheld]%'
        from dialogue.messages as m
        where m.agent_id = $1 and m.session_id = $3 and m.position <= $4 and m.role = 'user'
        order by m.position desc
        limit 1
    )
returning agent_id;

-- name: inherit_entries(agent_id, session_id, parent_id, position)
-- A branch inherits the entries of its parent up to the branch point, and whether they were removed.
insert into dialogue.compaction_entries (
    agent_id, session_id, entry_id, kind, first_position, last_position, text, tokens, tokens_before, strategy, prompt,
    model,
    created_at
)
select
    $1, $2, e.entry_id, e.kind, e.first_position, e.last_position, e.text, e.tokens, e.tokens_before, e.strategy,
    e.prompt,
    e.model, e.created_at
from dialogue.compaction_entries as e
where e.agent_id = $1 and e.session_id = $3 and e.last_position <= $4
returning agent_id;

-- name: inherit_restorations(agent_id, session_id, parent_id, position)
insert into dialogue.entry_restorations (agent_id, session_id, entry_id, pinned, restored_at, origin)
select $1, $2, r.entry_id, r.pinned, r.restored_at, r.origin
from dialogue.entry_restorations as r
join dialogue.compaction_entries as e on e.agent_id = $1 and e.session_id = $3 and e.entry_id = r.entry_id
where r.agent_id = $1 and r.session_id = $3 and e.last_position <= $4
returning agent_id;
