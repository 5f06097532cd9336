-- name: list_decided(agent_id, since, now, records)
-- Decisions since a moment, and all that have failed or succeeded; without decision records, which others wrote.
select decision_id, decided_at, reviewed_at, outcome, category, reason_kinds
from brain.decisions
where
    agent_id = $1
    and decided_at <= $3
    and (decided_at >= $2 or outcome in ('failure', 'success'))
    and decision_id not in (
        select memory_id from memory.memories where agent_id = $1 and kind = 'decision' and ref ~ $4
    )
order by decided_at, decision_id;

-- name: find_main_model(agent_id)
-- The model with the most decision vectors; vectors of different models cannot be compared.
select model_id
from memory.embeddings
where agent_id = $1 and kind = 'decision'
group by model_id
order by count(*) desc, model_id
limit 1;

-- name: list_vectors(agent_id, model_id, memory_ids)
select memory_id, embedding
from memory.embeddings
where agent_id = $1 and model_id = $2 and kind = 'decision' and memory_id = any($3::uuid[]);

-- name: assess_pairs(agent_id, decision_ids, failed_ids)
-- A failure counts as answered if the new decision has a recorded link to it or names its id in a text (the last six
-- digits are enough). A link without a record was added because the failure was shown.
select
    d.texts ->> 'description' as description,
    f.texts ->> 'description' as failed_description,
    exists (
        select
        from brain.decision_records as r
        where
            r.agent_id = $1
            and r.decision_id = p.decision_id
            and r.kind = 'link'
            and r.body ->> 'other' = p.failed_id::text
    )
    or exists (
        select
        from brain.decision_records as r
        where
            r.agent_id = $1
            and r.decision_id = p.failed_id
            and r.kind = 'link'
            and r.body ->> 'other' = p.decision_id::text
    )
    or exists (
        select
        from brain.decision_records as r
        join brain.decision_texts as t on t.agent_id = $1 and t.record_id = r.record_id
        where
            r.agent_id = $1
            and r.decision_id = p.decision_id
            and r.kind in ('decision', 'thought')
            and position(right(p.failed_id::text, 6) in lower(t.texts::text)) > 0
    ) as answered,
    exists (
        select
        from memory.links as l
        where l.agent_id = $1 and l.memory_id = p.decision_id and l.other_id = p.failed_id
    ) as shown
from unnest($2::uuid[], $3::uuid[]) with ordinality as p (decision_id, failed_id, place)
left join brain.decision_texts as d on d.agent_id = $1 and d.record_id = p.decision_id
left join brain.decision_texts as f on f.agent_id = $1 and f.record_id = p.failed_id
order by p.place;

-- name: count_overdue(agent_id, now)
-- Decisions that were past their review date at that moment, by the current dates.
select count(*) as overdue
from brain.decisions
where
    agent_id = $1
    and decided_at <= $2
    and review_due_at <= $2
    and (reviewed_at is null or reviewed_at > $2);
