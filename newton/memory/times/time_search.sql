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
