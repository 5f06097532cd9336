-- name: list_versions(agent_id, refs, records)
-- The decisions with one of these refs; for the ref of a decision record its versions, the latest recorded last.
select w.ref as name, m.memory_id, m.ref, m.occurred_at as decided_at
from unnest($2::text[]) as w (ref)
join memory.memories as m
    on
        m.agent_id = $1
        and m.kind = 'decision'
        and (m.ref = w.ref or (w.ref ~ $3 and starts_with(m.ref, w.ref || '#')))
order by w.ref, m.memory_id;
