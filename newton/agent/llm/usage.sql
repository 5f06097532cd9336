-- name: sum_tokens(agent_id, since, summary_purpose, of_summaries)
-- Of all calls if of_summaries is null.
select coalesce(sum(input_tokens + output_tokens), 0)::bigint as tokens
from runtime.usage
where agent_id = $1 and created_at >= $2 and ($4::boolean is null or (purpose = $3) = $4);

-- name: count_share(agent_id, since, purpose)
select
    coalesce(sum(input_tokens + output_tokens), 0)::bigint as tokens,
    coalesce(sum(input_tokens + output_tokens) filter (where purpose = $3), 0)::bigint as own
from runtime.usage
where agent_id = $1 and created_at >= $2;

-- name: read_usage(agent_id, since, summary_purpose, model, max_rows)
-- The tokens since then of all calls but those that summarized conversations, with the latest calls of a model whose
-- prompts were counted; one row without a call if there is none.
select t.tokens, s.counted, s.messages, s.input_tokens
from (
    select coalesce(sum(input_tokens + output_tokens), 0)::bigint as tokens
    from runtime.usage
    where agent_id = $1 and created_at >= $2 and purpose <> $3
) as t
left join (
    select counted_tokens as counted, message_count as messages, input_tokens
    from runtime.usage
    where agent_id = $1 and model = $4 and counted_tokens is not null and not estimated
    order by usage_id desc
    limit $5
) as s on true;

-- name: record_usage(agent_id, usage_id, created_at, model, purpose, input_tokens, output_tokens, estimated, counted_tokens, message_count)
insert into runtime.usage (
    agent_id, usage_id, created_at, model, purpose, input_tokens, output_tokens, estimated, counted_tokens,
    message_count
)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);
