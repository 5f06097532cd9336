-- name: insert_correction(agent_id, correction_id, created_at, model, slope, intercept, contexts, items, used, loss_before, loss_after)
insert into cognition.answer_corrections (
    agent_id, correction_id, created_at, model, slope, intercept, contexts, items, used, loss_before, loss_after
)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11);

-- name: find_correction(agent_id, model, moment)
-- The latest one that is not removed, or that was in use at a moment.
select slope, intercept, created_at as fitted_at, items, loss_before, loss_after
from cognition.answer_corrections
where
    agent_id = $1
    and model = $2
    and ($3::timestamptz is null or created_at <= $3)
    and (removed_at is null or removed_at > $3)
order by created_at desc, correction_id desc
limit 1;

-- name: remove_corrections(agent_id, removed_at)
update cognition.answer_corrections set removed_at = $2
where agent_id = $1 and removed_at is null
returning correction_id;
