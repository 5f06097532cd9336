-- name: acquire(agent_id, session_id, purpose, holder, seconds)
-- Acquires or renews a lease unless another holder has an unexpired one.
insert into dialogue.leases (agent_id, session_id, purpose, holder, acquired_at, expires_at)
values ($1, $2, $3, $4, now(), now() + make_interval(secs => $5))
on conflict (agent_id, session_id, purpose) do update
set holder = excluded.holder, acquired_at = excluded.acquired_at, expires_at = excluded.expires_at
where leases.expires_at < excluded.acquired_at or leases.holder = excluded.holder
returning holder;

-- name: renew(agent_id, session_id, purpose, holder, seconds)
-- Renews a lease that was neither released nor taken over.
update dialogue.leases
set expires_at = now() + make_interval(secs => $5)
where agent_id = $1 and session_id = $2 and purpose = $3 and holder = $4 and expires_at > '-infinity'
returning holder;

-- name: release(agent_id, session_id, purpose, holder)
update dialogue.leases
set expires_at = '-infinity'
where agent_id = $1 and session_id = $2 and purpose = $3 and holder = $4 and expires_at > '-infinity'
returning holder;

-- name: read_turn_start(agent_id, session_id)
-- Tool calls of the session without a result after them, then the sessions from which a branch continues.
(
    select
        c.value ->> 'id' as id, c.value ->> 'name' as name, c.value ->> 'arguments' as arguments,
        null::uuid as ancestor_id, null::integer as first_position, null::integer as last_position
    from dialogue.messages as m
    cross join lateral jsonb_array_elements(m.tool_calls) as c
    where
        m.agent_id = $1
        and m.session_id = $2
        and m.tool_calls is not null
        and not exists (
            select
            from dialogue.messages as a
            where
                a.agent_id = $1
                and a.session_id = $2
                and a.position > m.position
                and a.tool_call_id = c.value ->> 'id'
        )
    order by m.position
)
union all
select null, null, null, ancestor_id, first_position, last_position
from dialogue.lineage
where agent_id = $1 and session_id = $2;

-- name: find_by_fingerprint(agent_id, ref, fingerprints)
-- Messages with these fingerprints in sessions with this ref and in its continuations (`ref~...`).
select s.session_id, m.position, m.ref as sign
from dialogue.sessions as s
join dialogue.messages as m on m.agent_id = $1 and m.session_id = s.session_id and m.ref = any($3::text[])
where s.agent_id = $1 and (s.ref = $2 or starts_with(s.ref, $2 || '~'))
order by m.position desc, m.session_id desc;
