-- name: get_memories(agent_id, memory_ids, moment, model_id, embedding, text_embedding)
-- These memories, and the facts that contradicted any of them at a moment; without a moment, those that still do.
-- Unless `model_id` is null, with their similarities to the vector of the search and to that of its text.
-- `changed` are the facts learnt from a message that are superseded. `limit 1` keeps the planner from starting with
-- all facts of the agent, which it does without statistics.
with contradictions as materialized (
    select l.memory_id, l.other_id
    from memory.links as l
    cross join lateral (
        select kind, state, quarantined
        from memory.memories
        where agent_id = $1 and kind = 'fact' and memory_id = l.memory_id
        limit 1
    ) as a
    cross join lateral (
        select kind, state, quarantined
        from memory.memories
        where agent_id = $1 and kind = 'fact' and memory_id = l.other_id
        limit 1
    ) as b
    where
        l.agent_id = $1
        and l.link = 'contradicts'
        and (l.memory_id = any($2::uuid[]) or l.other_id = any($2::uuid[]))
        and case
            when $3::timestamptz is not null then l.created_at <= $3
            else
                not (a.quarantined or memory.is_obsolete(a.kind, a.state))
                and not (b.quarantined or memory.is_obsolete(b.kind, b.state))
        end
        and not exists (
            select
            from memory.links as s
            where
                s.agent_id = $1
                and s.link = 'compatible'
                and s.memory_id = l.memory_id
                and s.other_id = l.other_id
                and ($3::timestamptz is null or s.created_at <= $3)
        )
),
pairs as materialized (
    select memory_id, other_id
    from contradictions
    union
    select other_id, memory_id
    from contradictions
)
select
    m.memory_id, m.kind, m.state, m.micro, m.summary, m.micro_tokens, m.summary_tokens, m.word_count, m.confidence,
    m.importance, m.outcome, m.uses, m.occurred_at, m.created_at, m.accessed_at, m.confirmed_at, m.trust,
    m.quarantined, m.ref, m.thread_id, m.position, f.reconfirmed_at, f.valid_to, f.attribute,
    coalesce(f.contradicted_ids, '{}') as contradicted_ids,
    case when m.kind = 'exchange' then (
        select string_agg(t.summary, ' ' order by t.memory_id)
        from memory.sources as s
        cross join lateral (
            select memory_id, summary
            from memory.memories
            where agent_id = $1 and kind = 'fact' and memory_id = s.memory_id
            limit 1
        ) as t
        cross join lateral (
            select event
            from memory.transitions
            where agent_id = $1 and memory_id = t.memory_id and ($3::timestamptz is null or changed_at <= $3)
            order by transition_id desc
            limit 1
        ) as last
        where s.agent_id = $1 and s.source_id = m.memory_id and last.event in ('superseded', 'expired', 'disproved')
            -- a fact of the same message in its place only says the same better
            and not exists (
                select
                from memory.links as l
                join memory.sources as o on o.agent_id = $1 and o.memory_id = l.memory_id
                where l.agent_id = $1 and l.other_id = t.memory_id and l.link = 'supersedes' and o.source_id = m.memory_id
            )
            -- what a model took for no statement of the message, such as a joke, has not changed
            and not exists (
                select
                from heart.line_changes as c
                where
                    last.event = 'disproved'
                    and c.agent_id = $1
                    and c.line_id = m.memory_id
                    and c.target_id = t.memory_id
            )
    ) end as changed,
    m.prefix_length, case when m.full_tokens is not null then m.full_text end as full_text, m.full_tokens,
    stated.thread_id as stated_thread_id, stated.position as stated_position, stated.said_at,
    e.search_similarity, e.text_similarity
from memory.memories as m
left join lateral (
    select -(embedding <#> $5) as search_similarity, -(embedding <#> $6) as text_similarity
    from memory.embeddings
    where agent_id = $1 and model_id = $4 and kind = m.kind and memory_id = m.memory_id
    limit 1
) as e on true
left join lateral (
    -- the message of a fact with no other source, and the time at which a fact was first said
    select
        case when count(*) = 1 then min(x.thread_id::text)::uuid end as thread_id,
        case when count(*) = 1 then min(x.position) end as position,
        min(x.occurred_at) as said_at
    from memory.sources as s
    left join memory.memories as x
        on x.agent_id = $1 and x.memory_id = s.source_id and x.kind = 'exchange'
    where m.kind = 'fact' and s.agent_id = $1 and s.memory_id = m.memory_id
) as stated on true
left join lateral (
    select
        reconfirmed_at, valid_to, attribute,
        array(select p.other_id from pairs as p where p.memory_id = m.memory_id order by p.other_id) as contradicted_ids
    from heart.facts
    where m.kind = 'fact' and agent_id = $1 and memory_id = m.memory_id
    limit 1
) as f on true
where m.agent_id = $1 and m.memory_id = any($2::uuid[] || array(select other_id from pairs));

-- name: list_messages_before(agent_id, thread_id, position, max_rows)
-- Quarantined messages are left out.
select
    memory_id, kind, state, micro, summary, micro_tokens, summary_tokens, word_count, confidence, importance,
    outcome, uses, occurred_at, created_at, accessed_at, confirmed_at, trust, quarantined, ref, thread_id, position
from memory.memories
where agent_id = $1 and kind = 'exchange' and thread_id = $2 and position < $3 and not quarantined
order by position desc
limit $4;

-- name: list_open_decisions(agent_id, since, max_rows)
-- The latest decisions that are recorded but not carried out yet.
select
    memory_id, kind, state, micro, summary, micro_tokens, summary_tokens, word_count, confidence, importance,
    outcome, uses, occurred_at, created_at, accessed_at, confirmed_at, trust, quarantined, ref, thread_id, position
from memory.memories
where agent_id = $1 and kind = 'decision' and state = 'RECORDED' and occurred_at >= $2 and not quarantined
order by occurred_at desc, memory_id
limit $3;

-- name: list_open_decisions_at(agent_id, since, moment, max_rows)
-- The same at a past moment.
select
    m.memory_id, m.kind, m.state, m.micro, m.summary, m.micro_tokens, m.summary_tokens, m.word_count,
    m.confidence,
    m.importance, m.outcome, m.uses, m.occurred_at, m.created_at, m.accessed_at, m.confirmed_at, m.trust,
    m.quarantined, m.ref, m.thread_id, m.position
from memory.memories as m
left join lateral (
    select t.from_state
    from memory.transitions as t
    where t.agent_id = $1 and t.memory_id = m.memory_id and t.changed_at > $3
    order by t.changed_at, t.transition_id
    limit 1
) as moved on true
where
    m.agent_id = $1
    and m.kind = 'decision'
    and coalesce(moved.from_state, m.state) = 'RECORDED'
    and m.occurred_at >= $2
    and m.created_at <= $3
    and not m.quarantined
order by m.occurred_at desc, m.memory_id
limit $4;
