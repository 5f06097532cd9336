-- name: list_over_cap(agent_id, kind, cap, enough, now, half_life)
-- Memories of a kind that cross its cap: archived ones within the cap and current ones beyond it. Ranked by value:
-- entities by decayed mentions, relations by weight, procedures by smoothed success rate, passages by last access,
-- events by time.
with selected as materialized (
    select memory_id, state, uses, accessed_at, occurred_at, created_at
    from memory.memories
    where agent_id = $1 and kind = $2 and (state = 'ARCHIVED' or not memory.is_obsolete(kind, state))
),
results as (
    select
        a.memory_id,
        count(*) as uses,
        (count(*) filter (where a.result = 'success') + 0.5)
        / (count(*) filter (where a.result in ('success', 'failure')) + 1.0) as share
    from heart.activations as a
    where a.agent_id = $1 and a.memory_id in (select memory_id from selected)
    group by a.memory_id
),
ranked as (
    select
        h.memory_id,
        h.state,
        row_number() over (
            order by
                case $2
                    when 'entity' then coalesce(e.mentions / (e.mentions + $4::float8), 0)
                    * 0.5 ^ greatest(extract(epoch from ($5::timestamptz - e.mentioned_at)) / 86400 / $6::float8, 0)
                    when 'relation' then coalesce(r.weight, 0)
                    when 'procedure' then coalesce(t.share, 0.5)
                    else 0
                end desc,
                case $2 when 'procedure' then coalesce(t.uses, 0) else 0 end desc,
                case $2 when 'passage' then h.accessed_at end desc nulls last,
                h.occurred_at desc,
                h.memory_id desc
        ) as rank
    from selected as h
    left join heart.entities as e on e.agent_id = $1 and e.memory_id = h.memory_id
    left join heart.relations as r on r.agent_id = $1 and r.memory_id = h.memory_id
    left join results as t on t.memory_id = h.memory_id
)
select memory_id, state, rank <= $3 as within
from ranked
where (rank <= $3) = (state = 'ARCHIVED')
order by rank;
