-- name: insert_entries(agent_id, session_id, entries)
insert into dialogue.compaction_entries (
    agent_id, session_id, entry_id, kind, first_position, last_position, text, tokens, tokens_before, strategy, prompt,
    model, created_at
)
select
    $1, $2, e.entry_id, e.kind, e.first, e.last, e.text, e.tokens, e.before, e.strategy, e.prompt,
    e.model, e.made_at
from jsonb_to_recordset($3::jsonb) as e (
    entry_id uuid, kind text, first integer, last integer, text text, tokens integer, before integer,
    strategy text, prompt text, model text, made_at timestamptz
)
returning agent_id;

-- name: list_entries(agent_id, session_id)
select
    e.entry_id, e.kind, e.first_position as first, e.last_position as last, e.text, e.tokens,
    e.tokens_before as before, e.strategy, e.prompt, e.model, e.created_at as made_at, r.restored_at as restored_at
from dialogue.compaction_entries as e
left join dialogue.entry_restorations as r on r.agent_id = $1 and r.session_id = $2 and r.entry_id = e.entry_id
where e.agent_id = $1 and e.session_id = $2
order by e.first_position, e.last_position desc, e.created_at desc;

-- name: restore_entry(agent_id, session_id, entry_id, now, origin)
-- Removes an entry and every entry that covers it; otherwise its messages would stay hidden.
insert into dialogue.entry_restorations (agent_id, session_id, entry_id, pinned, restored_at, origin)
select $1, $2, o.entry_id, o.entry_id = $3, $4, $5
from dialogue.compaction_entries as e
join dialogue.compaction_entries as o
    on o.agent_id = $1
    and o.session_id = $2
    and o.first_position <= e.first_position
    and o.last_position >= e.last_position
    and o.created_at >= e.created_at
where e.agent_id = $1 and e.session_id = $2 and e.entry_id = $3
on conflict do nothing
returning entry_id;

-- name: record_run(agent_id, session_id, run_id, strategy, at, duration_ms, tokens_before, tokens_after, tokens_spent, error)
insert into dialogue.compaction_runs (
    agent_id, session_id, run_id, strategy, started_at, duration_ms, tokens_before, tokens_after, tokens_spent, error
)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);

-- name: record_rereads(agent_id, memory_ids, now, origin)
-- For each message read, the entry that replaced it first: the smallest one that is not removed.
insert into dialogue.entry_rereads (agent_id, session_id, entry_id, position, read_at, origin)
select $1, m.thread_id, e.entry_id, m.position, $3, $4
from memory.memories as m
cross join lateral (
    select x.entry_id
    from dialogue.compaction_entries as x
    where
        x.agent_id = $1
        and x.session_id = m.thread_id
        and m.position between x.first_position and x.last_position
        and not exists (
            select
            from dialogue.entry_restorations as r
            where r.agent_id = $1 and r.session_id = x.session_id and r.entry_id = x.entry_id
        )
    order by x.last_position - x.first_position, x.created_at
    limit 1
) as e
where m.agent_id = $1 and m.memory_id = any($2::uuid[]) and m.kind = 'exchange'
on conflict do nothing;

-- name: list_feedback(agent_id)
-- Of each strategy, the entries, those with a wrong cut, and the runs with a model.
with cuts as (
    select
        e.strategy,
        count(*)::integer as entries,
        (count(*) filter (where r.pinned or x.entry_id is not null))::integer as wrong
    from dialogue.compaction_entries as e
    left join dialogue.entry_restorations as r
        on r.agent_id = $1 and r.session_id = e.session_id and r.entry_id = e.entry_id
    left join (
        select distinct session_id, entry_id from dialogue.entry_rereads where agent_id = $1
    ) as x on x.session_id = e.session_id and x.entry_id = e.entry_id
    where e.agent_id = $1
    group by e.strategy
),
costs as (
    select
        strategy,
        count(*)::integer as model_runs,
        sum(tokens_before - tokens_after)::bigint as model_saved,
        sum(tokens_spent)::bigint as model_spent
    from dialogue.compaction_runs
    where agent_id = $1 and tokens_spent > 0
    group by strategy
)
select
    strategy, coalesce(entries, 0) as entries, coalesce(wrong, 0) as wrong, coalesce(model_runs, 0) as model_runs,
    coalesce(model_saved, 0) as model_saved, coalesce(model_spent, 0) as model_spent
from cuts
full join costs using (strategy)
order by strategy;

-- name: summarize_runs(agent_id, session_id)
-- Of all sessions if session_id is null.
select
    s.strategy,
    count(*)::integer as runs,
    (count(*) filter (where s.error is not null))::integer as failed,
    sum(s.tokens_before - s.tokens_after)::bigint as saved,
    sum(s.tokens_spent)::bigint as spent,
    avg(s.duration_ms)::real as mean_ms,
    max(s.duration_ms)::real as most_ms,
    count(distinct s.session_id)::integer as sessions,
    max(s.started_at) as last_at,
    coalesce(max(c.entries), 0)::integer as entries,
    coalesce(max(c.restored), 0)::integer as restored,
    coalesce(max(c.reread), 0)::integer as reread
from dialogue.compaction_runs as s
left join (
    select
        e.strategy,
        count(*) as entries,
        count(*) filter (where r.pinned) as restored,
        count(*) filter (
            where exists (
                select
                from dialogue.entry_rereads as x
                where x.agent_id = $1 and x.session_id = e.session_id and x.entry_id = e.entry_id
            )
        ) as reread
    from dialogue.compaction_entries as e
    left join dialogue.entry_restorations as r
        on r.agent_id = $1 and r.session_id = e.session_id and r.entry_id = e.entry_id
    where e.agent_id = $1 and ($2::uuid is null or e.session_id = $2)
    group by e.strategy
) as c on c.strategy = s.strategy
where s.agent_id = $1 and ($2::uuid is null or s.session_id = $2)
group by s.strategy
order by s.strategy;
