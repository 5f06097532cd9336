-- name: get_last_context(agent_id, session_id, moment, since, position)
-- The frame of the last bundle of a session by a moment, or of all, and with `since` what waits for approval, in a row
-- each. Bundles rebuilt for a past moment are skipped. What was told since is left out: by a context that was built after
-- it came, in any session; for the answer to the message at a position, also by that to an earlier message. Ids sort by
-- time.
with pending as materialized (
    select m.memory_id as item_id, 'censor' as kind, c.trigger as text, null as name, m.trust
    from memory.memories as m
    join heart.censors as c on c.agent_id = $1 and c.memory_id = m.memory_id
    where m.agent_id = $1 and m.kind = 'censor' and m.quarantined and m.state <> 'RETIRED'
    union all
    select m.memory_id, 'procedure', p.description, p.name, m.trust
    from memory.memories as m
    join heart.procedures as p on p.agent_id = $1 and p.memory_id = m.memory_id
    where m.agent_id = $1 and m.kind = 'procedure' and m.quarantined and not p.is_retired
    union all
    select p.tenet_id, 'rule', t.text, null, t.trust
    from heart.proposals as p
    join heart.tenets as t on t.agent_id = $1 and t.tenet_id = p.tenet_id and t.text is not null
    where p.agent_id = $1 and p.state = 'PROPOSED'
    union all
    -- without the text of the memory, which a forgetting must find in contexts by its id
    select p.move_id, 'move', right(p.memory_id::text, 8) || ' to ' || p.target, right(p.memory_id::text, 8), p.trust
    from memory.proposed_moves as p
    where p.agent_id = $1 and p.is_open
),
not_told as (
    select p.item_id, p.kind, p.text, p.name, p.trust
    from pending as p
    where
        $4::timestamptz is not null
        and not exists (
            select
            from cognition.bundles as b
            where
                b.agent_id = $1
                and b.as_of is null
                and b.created_at > $4
                and b.bundle_id > p.item_id
                and b.memory_ids && array(select item_id from pending)
                and jsonb_array_length(b.trace #> '{assembly_input,approvals}') > 0
        )
        and not exists (
            select
            from memory.memories as m
            where
                m.agent_id = $1
                and m.kind = 'exchange'
                and m.memory_id > p.item_id
                and m.memory_id < (
                    select f.memory_id
                    from memory.memories as f
                    where
                        f.agent_id = $1
                        and f.kind = 'exchange'
                        and f.thread_id = $2::uuid
                        and f.position = $5::integer
                )
                and m.created_at > $4
        )
)
select
    (
        select frame
        from cognition.bundles
        where agent_id = $1 and session_id = $2::uuid and as_of is null and ($3::timestamptz is null or created_at <= $3)
        order by created_at desc, bundle_id desc
        limit 1
    ),
    u.item_id, u.kind, u.text, u.name, u.trust
from (select 1) as one
left join not_told as u on true;

-- name: list_working_messages(agent_id, thread_id, position, max_rows)
-- Messages of a session before a position that its working memory contains, the last used first. Times and uses are
-- those within the session.
select
    m.memory_id, m.kind, m.state, m.micro, m.summary, m.micro_tokens, m.summary_tokens, m.word_count, m.confidence,
    m.importance, m.outcome, w.access_count as uses, m.occurred_at, w.added_at as created_at, w.accessed_at,
    m.confirmed_at, m.trust, m.quarantined, m.ref, m.thread_id, m.position
from cognition.working_set as w
join memory.memories as m on m.agent_id = $1 and m.memory_id = w.memory_id
where
    w.agent_id = $1
    and w.session_id = $2
    and m.kind = 'exchange'
    and m.thread_id = $2
    and m.position < $3
    and not m.quarantined
order by w.accessed_at desc, m.position desc
limit $4;
