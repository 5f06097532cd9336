-- name: list_versions(agent_id, memory_ids)
-- Every version of each memory's texts, the current one last.
select f.memory_id, f.micro, f.summary, f.micro_tokens, f.summary_tokens
from (
    select memory_id, version_id, micro, summary, micro_tokens, summary_tokens
    from memory.memory_versions
    where agent_id = $1 and memory_id = any($2::uuid[])
    union all
    select memory_id, null, micro, summary, micro_tokens, summary_tokens
    from memory.memories
    where agent_id = $1 and memory_id = any($2::uuid[])
) as f
order by f.memory_id, f.version_id nulls last;

-- name: read_as_of(agent_id, memory_ids, moment)
-- The state at a moment is the from_state of the first transition after it, and likewise for the text versions; without
-- one it is the current state. Confirmations count if they were made by then.
select
    m.memory_id,
    coalesce(moved.from_state, m.state) as state,
    m.quarantined or exists (
        select
        from memory.transitions as r
        where r.agent_id = $1 and r.memory_id = m.memory_id and r.event = 'released' and r.changed_at > $3
    ) as quarantined,
    coalesce(form.micro, m.micro) as micro,
    coalesce(form.summary, m.summary) as summary,
    coalesce(form.micro_tokens, m.micro_tokens) as micro_tokens,
    coalesce(form.summary_tokens, m.summary_tokens) as summary_tokens,
    case when form.memory_id is null then m.outcome else form.outcome end as outcome,
    case
        when m.confirmed_at is null or m.confirmed_at <= $3 then m.confirmed_at
        else (
            select max(c.confirmed_at)
            from memory.confirmations as c
            where
                c.agent_id = $1
                and c.memory_id = m.memory_id
                and c.confirmed_at <= $3
                and (c.trust not in ('tool', 'web') or m.trust in ('tool', 'web'))
        )
    end as confirmed_at
from memory.memories as m
left join lateral (
    select t.from_state
    from memory.transitions as t
    where t.agent_id = $1 and t.memory_id = m.memory_id and t.changed_at > $3
    order by t.changed_at, t.transition_id
    limit 1
) as moved on true
left join lateral (
    select f.memory_id, f.micro, f.summary, f.micro_tokens, f.summary_tokens, f.outcome
    from memory.memory_versions as f
    where f.agent_id = $1 and f.memory_id = m.memory_id and f.replaced_at > $3
    order by f.replaced_at, f.version_id
    limit 1
) as form on true
where m.agent_id = $1 and m.memory_id = any($2::uuid[]) and m.created_at <= $3;

-- name: find_in_ranges(agent_id, kinds, limits, starts_at, ends_at, quarantined, past_states, excluded_ids, shown_ids)
-- Memories of these time ranges: of each kind the most important of the last 500, then the latest. A memory mentions a
-- range if at least half of a mentioned time lies in it. Only messages and kinds that occur at a time match by their own
-- time.
with ranges as materialized (
    select coalesce(a.starts_at, '-infinity') as starts_at, coalesce(a.ends_at, 'infinity') as ends_at
    from unnest($4::timestamptz[], $5::timestamptz[]) as a (starts_at, ends_at)
)
select
    hit.memory_id,
    hit.kind,
    hit.word_count,
    hit.thread_id,
    hit.position,
    case when hit.kind = 'exchange' then substring(hit.micro from '^\[[0-9-]+\] ([^:]+): ') end as speaker,
    hit.is_long,
    0::float8 as lexical
from unnest($2::text[], $3::integer[]) as wanted (kind, max_rows)
cross join lateral (
    select m.memory_id, m.kind, m.word_count, m.thread_id, m.position, m.micro, m.full_tokens is not null as is_long
    from (
        (
            select occurred.memory_id
            from ranges as a
            cross join lateral (
                select memory_id
                from memory.memories
                where
                    agent_id = $1
                    and kind = wanted.kind
                    and wanted.kind in ('exchange', 'episode', 'event', 'decision')
                    and occurred_at >= a.starts_at
                    and occurred_at < a.ends_at
                order by occurred_at desc
                limit 500
            ) as occurred
        )
        union
        (
            select mentioned.memory_id
            from ranges as a
            cross join lateral (
                select memory_id
                from memory.mentioned_times
                where
                    agent_id = $1
                    and starts_at >= a.starts_at - interval '366 days'
                    and starts_at < a.ends_at
                    and ends_at > a.starts_at
                    and (least(ends_at, a.ends_at) - greatest(starts_at, a.starts_at)) * 2 >= ends_at - starts_at
                order by starts_at desc
                limit 500
            ) as mentioned
        )
    ) as matching
    cross join lateral (
        select
            memory_id, kind, word_count, thread_id, position, micro, full_tokens, state, quarantined, importance,
            occurred_at
        from memory.memories
        where agent_id = $1 and memory_id = matching.memory_id
        limit 1
    ) as m
    where
        m.kind = wanted.kind
        and (m.kind = any($6::text[]) or not m.quarantined or m.memory_id in (select unnest($9::uuid[])))
        and not (m.state = any($7::text[]) and memory.is_obsolete(m.kind, m.state))
        and m.memory_id <> all($8::uuid[])
    order by m.importance desc nulls last, m.occurred_at desc, m.memory_id
    limit wanted.max_rows
) as hit;

-- name: filter_by_ranges(agent_id, memory_ids, starts_at, ends_at)
-- The memories that match any of the ranges, by the same rule.
select m.memory_id
from memory.memories as m
where
    m.agent_id = $1
    and m.memory_id = any($2::uuid[])
    and exists (
        select
        from unnest($3::timestamptz[], $4::timestamptz[]) as a (starts_at, ends_at)
        where
            (
                m.kind in ('exchange', 'episode', 'event', 'decision')
                and m.occurred_at >= coalesce(a.starts_at, '-infinity')
                and m.occurred_at < coalesce(a.ends_at, 'infinity')
            )
            or exists (
                select
                from memory.mentioned_times as t
                where
                    t.agent_id = $1
                    and t.memory_id = m.memory_id
                    and t.starts_at < coalesce(a.ends_at, 'infinity')
                    and t.ends_at > coalesce(a.starts_at, '-infinity')
                    and (least(t.ends_at, a.ends_at) - greatest(t.starts_at, a.starts_at)) * 2 >= t.ends_at - t.starts_at
            )
    );

-- name: get_memories(agent_id, memory_ids, moment, model_id, embedding, text_embedding)
-- These memories, and the facts that contradicted any of them at a moment; without a moment, those that still do.
-- Unless `model_id` is null, with their similarities to the vector of the search and to that of its text.
-- `changed` are the facts learnt from a message, an episode or the session of a summary that are superseded, and for a superseded fact the one in its place. `limit 1` keeps the planner from starting with
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
        where s.agent_id = $1 and s.source_id = m.memory_id and last.event in ('superseded', 'expired', 'disproved', 'withdrawn')
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
                    last.event in ('disproved', 'withdrawn')
                    and c.agent_id = $1
                    and c.line_id = m.memory_id
                    and c.target_id = t.memory_id
            )
    ) when m.kind in ('episode', 'artifact') then (
        select string_agg(t.summary, ' ' order by t.memory_id)
        from (
            select l.memory_id
            from memory.links as l
            where l.agent_id = $1 and l.link = 'part_of' and l.other_id = m.memory_id
            union
            -- the messages of an artifact, and those of the summaries that it continues
            (
                with recursive told as (
                    select a.source_id
                    from memory.sources as a
                    where a.agent_id = $1 and m.kind = 'artifact' and a.memory_id = m.memory_id
                    union
                    select a.source_id
                    from told
                    join memory.memories as p on p.agent_id = $1 and p.memory_id = told.source_id and p.kind = 'artifact'
                    join memory.sources as a on a.agent_id = $1 and a.memory_id = told.source_id
                )
                select s.memory_id
                from told
                join memory.sources as s on s.agent_id = $1 and s.source_id = told.source_id
            )
        ) as part
        cross join lateral (
            select memory_id, summary
            from memory.memories
            where agent_id = $1 and kind = 'fact' and memory_id = part.memory_id
            limit 1
        ) as t
        cross join lateral (
            select event
            from memory.transitions
            where agent_id = $1 and memory_id = t.memory_id and ($3::timestamptz is null or changed_at <= $3)
            order by transition_id desc
            limit 1
        ) as last
        where last.event in ('superseded', 'expired', 'disproved', 'withdrawn')
            and not exists (
                select
                from memory.links as l
                join memory.sources as o on o.agent_id = $1 and o.memory_id = l.memory_id
                join memory.sources as s on s.agent_id = $1 and s.memory_id = t.memory_id and s.source_id = o.source_id
                where l.agent_id = $1 and l.other_id = t.memory_id and l.link = 'supersedes'
            )
    ) when m.kind = 'fact' and m.state = 'SUPERSEDED' then (
        select n.summary
        from memory.links as l
        join memory.memories as n on n.agent_id = $1 and n.memory_id = l.memory_id
        where
            l.agent_id = $1
            and l.link = 'supersedes'
            and l.other_id = m.memory_id
            and ($3::timestamptz is null or l.created_at <= $3)
        order by l.created_at desc
        limit 1
    ) end as changed,
    m.prefix_length, case when m.full_tokens is not null then m.full_text end as full_text, m.full_tokens,
    stated.thread_id as stated_thread_id, stated.position as stated_position, stated.said_at,
    case
        when m.kind = 'relation' then heart.relation_trust($1, m.memory_id, coalesce($3, 'infinity'))
        when m.kind = 'fact' and exists (
            select
            from memory.confirmations as c
            where
                c.agent_id = $1
                and c.memory_id = m.memory_id
                and c.trust in ('operator', 'user')
                and ($3::timestamptz is null or c.confirmed_at <= $3)
        ) then 'user'
    end as word_trust,
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
