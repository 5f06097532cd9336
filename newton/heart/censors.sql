-- name: insert_censors(agent_id, censors)
insert into heart.censors (agent_id, memory_id, match_mode, trigger, action, reason, domain, threshold, is_retired)
select $1, d.memory_id, d.match_mode, d.trigger, d.action, d.reason, d.domain, d.threshold, false
from jsonb_to_recordset($2::jsonb) as d (
    memory_id uuid, match_mode text, trigger text, action text, reason text, domain text, threshold integer
)
returning agent_id;

-- name: list_active(agent_id, model_id)
-- Active censors, strictest first. The vector is only needed by those that match by meaning.
select
    m.memory_id, m.state, m.summary, m.summary_tokens, c.match_mode, c.trigger, c.reason, c.domain,
    e.embedding,
    case when c.relaxed_at is null then c.action else 'warn' end as action
from memory.memories as m
join heart.censors as c on c.agent_id = $1 and c.memory_id = m.memory_id
left join memory.embeddings as e
    on
        e.agent_id = $1
        and e.model_id = $2
        and e.kind = 'censor'
        and e.memory_id = m.memory_id
        and c.match_mode = 'meaning'
where m.agent_id = $1 and m.kind = 'censor' and m.state <> 'RETIRED' and not m.quarantined
order by
    ((c.action = 'block' and c.relaxed_at is null) or m.state = 'ESCALATED') desc, m.uses desc, m.confirmations desc, m.memory_id;

-- name: list_active_at(agent_id, moment)
-- The same at a past moment, without vectors.
select
    m.memory_id, past.state, m.summary, m.summary_tokens, c.match_mode, c.trigger, c.reason,
    c.domain,
    null as embedding,
    case when c.relaxed_at <= $2 then 'warn' else c.action end as action
from memory.memories as m
join heart.censors as c on c.agent_id = $1 and c.memory_id = m.memory_id
cross join lateral (
    select
        coalesce(
            (
                select t.from_state
                from memory.transitions as t
                where t.agent_id = $1 and t.memory_id = m.memory_id and t.changed_at > $2
                order by t.changed_at, t.transition_id
                limit 1
            ),
            m.state
        ) as state,
        m.quarantined or exists (
            select
            from memory.transitions as r
            where r.agent_id = $1 and r.memory_id = m.memory_id and r.event = 'released' and r.changed_at > $2
        ) as quarantined,
        (
            select count(*)
            from memory.confirmations as f
            where f.agent_id = $1 and f.memory_id = m.memory_id and f.confirmed_at <= $2
        ) as confirmations,
        (
            select count(*)
            from heart.activations as a
            where a.agent_id = $1 and a.memory_id = m.memory_id and a.activated_at <= $2
        ) as uses
) as past
where
    m.agent_id = $1
    and m.kind = 'censor'
    and m.created_at <= $2
    and past.state <> 'RETIRED'
    and not past.quarantined
order by
    ((c.action = 'block' and coalesce(c.relaxed_at > $2, true)) or past.state = 'ESCALATED') desc, past.uses desc,
    past.confirmations desc, m.memory_id;

-- name: list_censors(agent_id)
select
    m.memory_id, m.state, m.quarantined as is_proposed, c.match_mode, c.trigger, c.reason, c.domain, c.threshold,
    case when c.relaxed_at is null then c.action else 'warn' end as action,
    count(a.activation_id)::integer as activations,
    count(*) filter (where a.result = 'false_positive')::integer as false_positives
from memory.memories as m
join heart.censors as c on c.agent_id = $1 and c.memory_id = m.memory_id
left join heart.activations as a on a.agent_id = $1 and a.memory_id = m.memory_id
where m.agent_id = $1 and m.kind = 'censor'
group by m.memory_id, m.state, m.quarantined, c.match_mode, c.trigger, c.action, c.reason, c.domain, c.threshold,
    c.relaxed_at
order by m.state = 'RETIRED', m.memory_id;

-- name: retire_censor(agent_id, memory_id)
update heart.censors
set is_retired = true
where agent_id = $1 and memory_id = $2;

-- name: relax_censor(agent_id, memory_id, now)
update heart.censors as c
set relaxed_at = $3
from memory.memories as m
where
    c.agent_id = $1
    and c.memory_id = $2
    and m.agent_id = $1
    and m.memory_id = $2
    and (m.state = 'ESCALATED' or (m.state <> 'RETIRED' and c.action = 'block' and c.relaxed_at is null))
returning c.memory_id;

-- name: find_by_hash(agent_id, hashes)
select m.memory_id, m.content_hash, m.state, m.quarantined,
    case when c.relaxed_at is null then c.action else 'warn' end as action
from memory.memories as m
join heart.censors as c on c.agent_id = $1 and c.memory_id = m.memory_id
where m.agent_id = $1 and m.kind = 'censor' and m.content_hash = any($2::bytea[]);
