-- name: list_over_cap(agent_id, kind, cap, enough, now, half_life)
-- Which memories of a kind cross its cap: of those in the best places the archived ones, of the others those that are
-- in force. What is worth most stands first: of entities their mentions, fading; of relations their weight; of
-- procedures the share of successes, an untried one in the middle; of passages the last reading; of events the time.
with held as materialized (
    select memory_id, state, uses, accessed_at, occurred_at, created_at
    from memory.memories
    where agent_id = $1 and kind = $2 and (state = 'ARCHIVED' or not memory.is_obsolete(kind, state))
),
tried as (
    select
        a.memory_id,
        count(*) as uses,
        (count(*) filter (where a.result = 'success') + 0.5)
        / (count(*) filter (where a.result in ('success', 'failure')) + 1.0) as share
    from heart.activations as a
    where a.agent_id = $1 and a.memory_id in (select memory_id from held)
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
        ) as place
    from held as h
    left join heart.entities as e on e.agent_id = $1 and e.memory_id = h.memory_id
    left join heart.relations as r on r.agent_id = $1 and r.memory_id = h.memory_id
    left join tried as t on t.memory_id = h.memory_id
)
select memory_id, state, place <= $3 as within
from ranked
where (place <= $3) = (state = 'ARCHIVED')
order by place;
