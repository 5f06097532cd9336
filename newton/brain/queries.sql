-- name: list_decisions(agent_id, now, due, open, category, stakes, outcome, tag, before, limit)
select
    d.decision_id, m.state, t.texts ->> 'description' as description, d.decided_at, d.confidence, d.category, d.stakes,
    d.frame, d.review_due_at as look_again_at, d.outcome, d.reviewed_at, d.review_method,
    d.outcome is null and coalesce(d.review_due_at <= $2, false) as is_overdue
from brain.decisions as d
join memory.memories as m on m.agent_id = $1 and m.memory_id = d.decision_id
left join brain.decision_texts as t on t.agent_id = $1 and t.record_id = d.decision_id
where
    d.agent_id = $1
    and (not $3::boolean or (d.outcome is null and d.review_due_at <= $2))
    and (not $4::boolean or d.outcome is null)
    and ($5::text is null or d.category = $5)
    and ($6::text is null or d.stakes = $6)
    and ($7::text is null or d.outcome = $7)
    and (
        $8::text is null
        or (
            select w.texts -> 'tags' ? $8
            from brain.decision_records as r
            join brain.decision_texts as w on w.agent_id = $1 and w.record_id = r.record_id
            where
                r.agent_id = $1
                and r.decision_id = d.decision_id
                and r.kind in ('decision', 'amendment')
                and jsonb_typeof(w.texts -> 'tags') = 'array'
            order by r.seq desc
            limit 1
        )
    )
    and (
        $9::uuid is null
        or (d.decided_at, d.decision_id) < (
            select p.decided_at, p.decision_id from brain.decisions as p where p.agent_id = $1 and p.decision_id = $9
        )
    )
order by
    case when $3 then d.review_due_at end,
    d.decided_at desc,
    d.decision_id desc
limit $10;

-- name: list_outcomes(agent_id, category, outcome, limit)
select
    d.decision_id, t.texts ->> 'description' as description, d.category, d.confidence, d.outcome, d.reviewed_at,
    d.review_method, w.texts ->> 'lesson' as lesson
from brain.decisions as d
left join brain.decision_texts as t on t.agent_id = $1 and t.record_id = d.decision_id
left join brain.decision_records as r on r.agent_id = $1 and r.seq = d.review_seq
left join brain.decision_texts as w on w.agent_id = $1 and w.record_id = r.record_id
where
    d.agent_id = $1
    and d.outcome is not null
    and ($2::text is null or d.category = $2)
    and ($3::text is null or d.outcome = $3)
order by d.reviewed_at desc, d.decision_id desc
limit $4;

-- name: count_by_category(agent_id)
-- Categories with their number of decisions and of reviewed decisions.
select category, count(*) as decisions, count(outcome) as judged
from brain.decisions
where agent_id = $1
group by category
order by decisions desc, category;

-- name: list_reviewed(agent_id, records)
-- Without decision records, whose confidence nobody stated.
select decision_id, decided_at, reviewed_at, confidence, outcome, category, stakes, frame, reason_kinds
from brain.decisions
where
    agent_id = $1
    and outcome is not null
    and decision_id not in (
        select memory_id from memory.memories where agent_id = $1 and kind = 'decision' and ref ~ $2
    )
order by decided_at, decision_id;

-- name: get_track_record(agent_id, category, now, records)
-- Without decision records, whose confidence nobody stated.
select
    count(*) as decisions,
    count(s.worth) as judged,
    count(*) - count(s.worth) as open,
    count(*) filter (where s.worth is null and s.review_due_at <= $3) as overdue,
    avg(s.worth) as success_rate,
    avg((s.confidence - s.worth) ^ 2) as brier,
    count(s.worth) filter (where s.category = $2) as category_judged,
    avg(s.worth) filter (where s.category = $2) as category_success_rate
from (
    select
        confidence, category, review_due_at,
        case outcome when 'success' then 1.0 when 'partial' then 0.5 when 'failure' then 0.0 end::double precision
            as worth
    from brain.decisions
    where
        agent_id = $1
        and decision_id not in (
            select memory_id from memory.memories where agent_id = $1 and kind = 'decision' and ref ~ $4
        )
) as s;

-- name: list_links(agent_id, memory_id, max_rows)
-- Links between decisions at most two steps away.
with recursive reached as (
    select $2::uuid as memory_id, 0 as steps
    union
    select case when l.memory_id = r.memory_id then l.other_id else l.memory_id end, r.steps + 1
    from reached as r
    join memory.links as l on l.agent_id = $1 and (l.memory_id = r.memory_id or l.other_id = r.memory_id)
    where r.steps < 2
)
select distinct l.memory_id, l.link, l.other_id, m.micro, o.micro as other_micro
from reached as r
join memory.links as l on l.agent_id = $1 and (l.memory_id = r.memory_id or l.other_id = r.memory_id)
join memory.memories as m on m.agent_id = $1 and m.memory_id = l.memory_id and m.kind = 'decision'
join memory.memories as o on o.agent_id = $1 and o.memory_id = l.other_id and o.kind = 'decision'
where r.steps < 2
order by l.memory_id, l.link, l.other_id
limit $3;
