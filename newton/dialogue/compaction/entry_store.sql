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
);

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

-- name: record_run(agent_id, session_id, run_id, strategy, at, duration_ms, tokens_before, tokens_after, error)
insert into dialogue.compaction_runs (
    agent_id, session_id, run_id, strategy, started_at, duration_ms, tokens_before, tokens_after, error
)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9);

-- name: summarize_runs(agent_id, session_id)
-- Of all sessions if session_id is null.
select
    strategy,
    count(*)::integer as runs,
    (count(*) filter (where error is not null))::integer as failed,
    sum(tokens_before - tokens_after)::bigint as saved,
    avg(duration_ms)::real as mean_ms,
    max(duration_ms)::real as most_ms,
    count(distinct session_id)::integer as sessions,
    max(started_at) as last_at
from dialogue.compaction_runs
where agent_id = $1 and ($2::uuid is null or session_id = $2)
group by strategy
order by strategy;
