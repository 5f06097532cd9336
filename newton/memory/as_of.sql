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
