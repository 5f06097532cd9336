-- name: spent(agent_id, since)
select coalesce(sum(input_tokens + output_tokens), 0)::bigint as tokens
from runtime.usage
where agent_id = $1 and at >= $2;

-- name: record(agent_id, usage_id, at, model, purpose, input_tokens, output_tokens, estimated)
insert into runtime.usage (agent_id, usage_id, at, model, purpose, input_tokens, output_tokens, estimated)
values ($1, $2, $3, $4, $5, $6, $7, $8);
