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

-- name: read_view_sources(agent_id, session_id)
-- Whether the session has removed entries or injections, which most sessions do not, and how many memories the agent has
-- forgotten; with the visible compaction entries in order, or one row without an entry. From each uncovered position,
-- the longest entry that begins there is visible. The recursion makes one index lookup per visible entry, however many
-- entries are nested in them.
with recursive shown as (
    (
        select e.*
        from dialogue.compaction_entries as e
        where
            e.agent_id = $1
            and e.session_id = $2
            and not exists (
                select
                from dialogue.entry_restorations as r
                where r.agent_id = $1 and r.session_id = $2 and r.entry_id = e.entry_id
            )
        order by e.first_position, e.last_position desc, e.created_at desc, e.entry_id desc
        limit 1
    )
    union all
    select n.*
    from shown as s
    cross join lateral (
        select e.*
        from dialogue.compaction_entries as e
        where
            e.agent_id = $1
            and e.session_id = $2
            and e.first_position > s.last_position
            and not exists (
                select
                from dialogue.entry_restorations as r
                where r.agent_id = $1 and r.session_id = $2 and r.entry_id = e.entry_id
            )
        order by e.first_position, e.last_position desc, e.created_at desc, e.entry_id desc
        limit 1
    ) as n
)
select
    f.restored, f.injected, f.forgotten,
    s.entry_id, s.kind, s.first_position as first, s.last_position as last, s.text, s.tokens, s.tokens_before as before,
    s.strategy, s.prompt, s.model, s.created_at as made_at
from (
    select
        exists (select from dialogue.entry_restorations where agent_id = $1 and session_id = $2) as restored,
        exists (select from dialogue.injections where agent_id = $1 and session_id = $2) as injected,
        (select count(*) from memory.forgotten where agent_id = $1) as forgotten
) as f
left join shown as s on true
order by s.first_position;

-- name: list_restored_ranges(agent_id, session_id)
select e.first_position, e.last_position
from dialogue.entry_restorations as r
join dialogue.compaction_entries as e on e.agent_id = $1 and e.session_id = $2 and e.entry_id = r.entry_id
where r.agent_id = $1 and r.session_id = $2 and r.pinned;

-- name: list_message_ranges(agent_id, session_id, firsts, lasts, bare)
-- Messages of a conversation in position ranges, including its ancestors. For bare ranges the content is left out.
with owner as (
    select ancestor_id as session_id, first_position, last_position
    from dialogue.lineage
    where agent_id = $1 and session_id = $2
    union all
    select $2::uuid, 0, 2147483647
)
select
    m.position, m.ref, m.role, m.name, case when s.bare then '' else m.content end as content, m.is_notice, m.min_trust, m.tokens,
    m.said_at, m.tool_calls as calls, m.tool_call_id
from unnest($3::integer[], $4::integer[], $5::boolean[]) as s (first, last, bare)
join owner as o on o.first_position <= s.last and o.last_position >= s.first
cross join lateral (
    select *
    from dialogue.messages
    where
        agent_id = $1
        and session_id = o.session_id
        and position between greatest(s.first, o.first_position) and least(s.last, o.last_position)
    -- offset 0 keeps this a lateral index range scan; when joined, every message is read for each range
    offset 0
) as m
order by m.position;

-- name: list_injections(agent_id, session_id)
-- Injections that were not removed.
select
    i.injection_id, i.position, s.ref, i.first_position as first, i.last_position as last, i.tokens,
    i.created_at, i.source_session_id as other_id
from dialogue.injections as i
join dialogue.sessions as s on s.agent_id = $1 and s.session_id = i.source_session_id
where
    i.agent_id = $1
    and i.session_id = $2
    and not exists (
        select
        from dialogue.injection_removals as e
        where e.agent_id = $1 and e.session_id = $2 and e.injection_id = i.injection_id
    )
order by i.position, i.injection_id;

-- name: get_last_position(agent_id, session_id)
-- The last position of a conversation. An empty branch ends at its branch point.
select greatest(
    (select max(position) from dialogue.messages where agent_id = $1 and session_id = $2),
    (select parent_position from dialogue.sessions where agent_id = $1 and session_id = $2)
) as position;

-- name: has_later_messages(agent_id, session_id, position, failure_prefix)
-- Whether a session has messages after a position, other than notices that say why a message has no reply.
select exists(
    select
    from dialogue.messages
    where agent_id = $1 and session_id = $2 and position > $3 and not (is_notice and starts_with(ref, $4))
);

-- name: measure_conversation(agent_id, session_id)
-- Tokens and number of the messages of a conversation, including its ancestors.
with owner as (
    select ancestor_id as session_id, first_position, last_position
    from dialogue.lineage
    where agent_id = $1 and session_id = $2
    union all
    select $2::uuid, 0, 2147483647
)
select coalesce(sum(m.tokens), 0)::bigint as tokens, count(m.position) as lines
from owner as o
join dialogue.messages as m
    on m.agent_id = $1 and m.session_id = o.session_id and m.position between o.first_position and o.last_position;

-- name: list_quarantined_trusts(agent_id, session_id, firsts, lasts, positions)
-- The trust levels of quarantined messages among ranges of a conversation and among injected ones. The result of a tool
-- that Newton ran has no memory, and so counts by the trust of what it shows; one that was stored without it counts as
-- foreign if it comes from the tool of a server, `server__tool`. A forgotten result of another tool counts as well.
with shown as (
    select $2::uuid as session_id, s.first, s.last
    from unnest($3::integer[], $4::integer[]) as s (first, last)
    union all
    select i.source_session_id, i.first_position, i.last_position
    from dialogue.injections as i
    where
        i.agent_id = $1
        and i.session_id = $2
        and i.position = any($5::integer[])
        and not exists (
            select
            from dialogue.injection_removals as e
            where e.agent_id = $1 and e.session_id = $2 and e.injection_id = i.injection_id
        )
),
sources as (
    select s.session_id, s.first, s.last
    from shown as s
    union all
    select l.ancestor_id, greatest(s.first, l.first_position), least(s.last, l.last_position)
    from shown as s
    join dialogue.lineage as l on l.agent_id = $1 and l.session_id = s.session_id
)
select distinct coalesce(x.trust, m.min_trust, 'tool') as trust
from sources as t
cross join lateral (
    select session_id, position, role, name, is_notice, min_trust
    from dialogue.messages
    where agent_id = $1 and session_id = t.session_id and position between t.first and t.last
    offset 0
) as m
left join memory.memories as x
    on x.agent_id = $1 and x.kind = 'exchange' and x.thread_id = m.session_id and x.position = m.position
where
    coalesce(
        x.quarantined,
        m.min_trust in ('tool', 'web'),
        m.role = 'tool' and (not m.is_notice or strpos(m.name, '__') > 0)
    );

-- name: list_quarantined_replies(agent_id, session_id)
-- The memories of the quarantined replies in a conversation, including its ancestors.
with owner as (
    select ancestor_id as session_id, first_position, last_position
    from dialogue.lineage
    where agent_id = $1 and session_id = $2
    union all
    select $2::uuid, 0, 2147483647
)
select x.memory_id
from owner as o
join dialogue.messages as m
    on m.agent_id = $1 and m.session_id = o.session_id and m.position between o.first_position and o.last_position
join memory.memories as x
    on x.agent_id = $1 and x.kind = 'exchange' and x.thread_id = m.session_id and x.position = m.position
where m.role = 'assistant' and m.min_trust in ('tool', 'web') and x.quarantined;

-- name: lock_session(agent_id, session_id)
-- Serializes writers of a session. An advisory lock ends with the transaction and needs no update right on the session.
select pg_advisory_xact_lock(hashtextextended($1::uuid::text || $2::uuid::text, 0))
from (select count(*) from runtime.agents where agent_id = $1) as node;

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
select
    s.session_id, m.position, m.ref as sign,
    -- whether one of them up to it is a line of a user that a model reported, here or in a session that this one continues
    exists (
        select
        from dialogue.messages as r
        where
            r.agent_id = $1
            and r.session_id = s.session_id
            and r.position <= m.position
            and r.role = 'user'
            and r.ref = any($3::text[])
            and r.min_trust not in ('operator', 'user')
    )
    or exists (
        select
        from dialogue.lineage as l
        join dialogue.messages as r
            on
                r.agent_id = $1
                and r.session_id = l.ancestor_id
                and r.position between l.first_position and l.last_position
                and r.role = 'user'
                and r.ref = any($3::text[])
                and r.min_trust not in ('operator', 'user')
        where l.agent_id = $1 and l.session_id = s.session_id
    ) as reported
from dialogue.sessions as s
join dialogue.messages as m on m.agent_id = $1 and m.session_id = s.session_id and m.ref = any($3::text[])
where s.agent_id = $1 and (s.ref = $2 or starts_with(s.ref, $2 || '~'))
order by m.position desc, m.session_id desc;
