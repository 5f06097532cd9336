-- name: reform(agent_id, memory_ids, micros, summaries, micro_tokens, summary_tokens, full_texts, outcomes)
-- The short forms of decisions of which more is known than when they were recorded.
update memory.memories as m
set
    micro = f.micro,
    summary = f.summary,
    micro_tokens = f.micro_tokens,
    summary_tokens = f.summary_tokens,
    full_text = f.full_text,
    outcome = f.outcome
from unnest($2::uuid[], $3::text[], $4::text[], $5::integer[], $6::integer[], $7::text[], $8::text[]) as f (
    memory_id, micro, summary, micro_tokens, summary_tokens, full_text, outcome
)
where m.agent_id = $1 and m.kind = 'decision' and m.memory_id = f.memory_id;

-- name: states(agent_id, memory_ids)
select memory_id, state
from memory.memories
where agent_id = $1 and memory_id = any($2::uuid[]);

-- name: superseding(agent_id, memory_id)
-- What a decision supersedes, and what that superseded in turn.
with recursive before as (
    select other_id
    from memory.links
    where agent_id = $1 and memory_id = $2 and link = 'supersedes'
    union
    select l.other_id
    from before as b
    join memory.links as l on l.agent_id = $1 and l.memory_id = b.other_id and l.link = 'supersedes'
)
select other_id
from before;

-- name: erase(agent_id)
call brain.erase($1);
