-- name: count_censor_activations(agent_id, before, start, now)
-- Censor activations and false positives in each of two periods.
select
    count(*) filter (where a.activated_at >= $3) as met,
    count(*) filter (where a.activated_at >= $3 and a.result = 'false_positive') as false_positives,
    count(*) filter (where a.activated_at < $3) as met_before,
    count(*) filter (where a.activated_at < $3 and a.result = 'false_positive') as false_positives_before
from heart.activations as a
join heart.censors as c on c.agent_id = $1 and c.memory_id = a.memory_id
where a.agent_id = $1 and a.activated_at >= $2 and a.activated_at <= $4;

-- name: count_procedure_uses(agent_id, before, start, now)
-- Procedures used in either period, versions of a name combined, the most used first.
select
    p.name,
    count(*) filter (where a.activated_at >= $3) as uses,
    count(*) filter (where a.activated_at >= $3 and a.result = 'success') as successes,
    count(*) filter (where a.activated_at >= $3 and a.result = 'failure') as failures,
    count(*) filter (where a.activated_at < $3) as uses_before,
    count(*) filter (where a.activated_at < $3 and a.result = 'success') as successes_before,
    count(*) filter (where a.activated_at < $3 and a.result = 'failure') as failures_before
from heart.activations as a
join heart.procedures as p on p.agent_id = $1 and p.memory_id = a.memory_id
where a.agent_id = $1 and a.activated_at >= $2 and a.activated_at <= $4
group by p.name
order by uses desc, p.name;

-- name: count_facts(agent_id, before, start, now)
-- Facts that are neither duplicates nor quarantined: the total at the end of each period, the new ones, and the
-- confirmed ones.
select
    count(*) as known,
    count(*) filter (where m.created_at >= $3) as learnt,
    count(*) filter (where c.confirmed_at is not null) as confirmed,
    count(*) filter (where m.created_at < $3) as known_before,
    count(*) filter (where m.created_at >= $2 and m.created_at < $3) as learnt_before,
    count(*) filter (where m.created_at < $3 and c.confirmed_at < $3) as confirmed_before
from heart.facts as f
join memory.memories as m on m.agent_id = $1 and m.memory_id = f.memory_id
left join (
    select memory_id, min(confirmed_at) as confirmed_at
    from memory.confirmations
    where agent_id = $1 and confirmed_at <= $4
    group by memory_id
) as c on c.memory_id = f.memory_id
where f.agent_id = $1 and f.duplicate_of is null and not m.quarantined and m.created_at <= $4;

-- name: count_episodes(agent_id, before, start, now)
select
    count(*) filter (where created_at >= $3) as episodes,
    count(*) filter (where created_at < $3) as episodes_before
from memory.memories
where agent_id = $1 and kind = 'episode' and created_at >= $2 and created_at <= $4;

-- name: list_state_changes(agent_id, before, now)
-- Notable state changes of censors, procedures and facts, oldest first.
select
    t.changed_at as at, m.kind, t.to_state as state, m.memory_id, coalesce(p.name, m.micro) as name, t.reason
from memory.transitions as t
join memory.memories as m on m.agent_id = $1 and m.memory_id = t.memory_id
left join heart.procedures as p on p.agent_id = $1 and p.memory_id = t.memory_id
where
    t.agent_id = $1
    and t.changed_at >= $2
    and t.changed_at <= $3
    and t.from_state <> t.to_state
    and (
        (m.kind = 'censor' and t.to_state in ('ESCALATED', 'RETIRED'))
        or (m.kind = 'procedure' and t.to_state in ('EFFECTIVE', 'INEFFECTIVE'))
        or (m.kind = 'fact' and (t.event = 'superseded' or t.to_state = 'INACTIVE'))
    )
order by t.changed_at, t.transition_id;
