-- name: sum_tokens(agent_id, since, summary_purpose, of_summaries)
-- Of all calls if of_summaries is null.
select coalesce(sum(input_tokens + output_tokens), 0)::bigint as tokens
from runtime.usage
where agent_id = $1 and created_at >= $2 and ($4::boolean is null or (purpose = $3) = $4);

-- name: list_samples(agent_id, model, max_rows)
select counted_tokens as counted, message_count as messages, input_tokens
from runtime.usage
where agent_id = $1 and model = $2 and counted_tokens is not null and not estimated
order by usage_id desc
limit $3;

-- name: record_usage(agent_id, usage_id, created_at, model, purpose, input_tokens, output_tokens, estimated, counted_tokens, message_count)
insert into runtime.usage (
    agent_id, usage_id, created_at, model, purpose, input_tokens, output_tokens, estimated, counted_tokens,
    message_count
)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);
