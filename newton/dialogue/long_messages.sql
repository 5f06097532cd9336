-- name: list_long_messages(agent_id, max_rows, form_tokens, min_uses)
select
    m.memory_id, m.micro, m.micro_tokens, coalesce(d.name, initcap(d.role)) as speaker, d.content, d.tokens, d.said_at
from memory.memories as m
join dialogue.messages as d on d.agent_id = $1 and d.session_id = m.thread_id and d.position = m.position
where
    m.agent_id = $1
    and m.kind = 'exchange'
    and not m.quarantined
    and d.tokens > $3
    and m.uses >= $4
    and not exists (
        select
        from memory.line_summaries as c
        where c.agent_id = $1 and c.memory_id = m.memory_id
    )
order by m.uses desc, m.memory_id
limit $2;

-- name: find_by_hash(agent_id, content_hash, max_tokens)
select text
from memory.line_summaries
where agent_id = $1 and content_hash = $2 and max_tokens = $3
limit 1;

-- name: insert_summary(agent_id, memory_id, content_hash, max_tokens, text, now)
-- Skips memories that were forgotten meanwhile.
insert into memory.line_summaries (agent_id, memory_id, content_hash, max_tokens, text, created_at)
select $1, memory_id, $3, $4, $5, $6
from memory.memories
where agent_id = $1 and memory_id = $2
on conflict do nothing;
