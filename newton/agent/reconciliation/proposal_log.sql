-- name: insert_proposals(agent_id, proposal_ids, model, operations, drop_reasons, now)
insert into heart.proposed_items (agent_id, proposal_id, model, operation, drop_reason, proposed_at)
select $1, d.proposal_id, $3, d.operation, d.drop_reason, $6
from unnest($2::uuid[], $4::text[], $5::text[]) as d (proposal_id, operation, drop_reason)
on conflict do nothing;

-- name: delete_old(agent_id, model, since, max_rows)
-- All but the latest of a model.
delete from heart.proposed_items
where
    agent_id = $1
    and (
        proposed_at < $3
        or model = $2
        and proposal_id <= (
            select proposal_id
            from heart.proposed_items
            where agent_id = $1 and model = $2
            order by proposal_id desc
            offset $4
            limit 1
        )
    );

-- name: count_proposals(agent_id, since)
-- The number of items by model and outcome; the reason is null for those that were kept.
select model, drop_reason, count(*)::integer as items
from heart.proposed_items
where agent_id = $1 and proposed_at >= $2
group by model, drop_reason
order by model, items desc, drop_reason;
