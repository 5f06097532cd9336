-- name: apply_transitions(agent_id, memory_ids, transition_ids, events, from_states, to_states, reasons, releases, now, origin)
-- Applies each transition if the memory is still in from_state, and records it.
with step as materialized (
    select *
    from unnest($2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[], $8::boolean[]) as s (
        memory_id, transition_id, event, from_state, to_state, reason, releases
    )
),
moved as (
    update memory.memories as m
    set state = s.to_state, quarantined = m.quarantined and not s.releases
    from step as s
    where
        m.agent_id = $1
        and m.memory_id = s.memory_id
        and m.state = s.from_state
        and (not s.releases or m.quarantined)
    returning m.memory_id
)
insert into memory.transitions (
    agent_id, memory_id, transition_id, changed_at, event, from_state, to_state, reason, origin
)
select $1, s.memory_id, s.transition_id, $9, s.event, s.from_state, s.to_state, s.reason, $10
from step as s
join moved as m on m.memory_id = s.memory_id
returning memory_id;

-- name: list_transitions(agent_id, memory_id)
select changed_at, event, from_state, to_state, reason, origin
from memory.transitions
where agent_id = $1 and memory_id = $2
order by transition_id;

-- name: list_changed_since(agent_id, origin, since)
select t.memory_id, t.event, t.from_state, t.to_state, t.reason, t.event = 'released', m.micro
from memory.transitions as t
join memory.memories as m on m.agent_id = $1 and m.memory_id = t.memory_id
where t.agent_id = $1 and t.origin = $2 and t.changed_at >= $3
order by t.transition_id;
