-- name: list_corrections(agent_id, memory_ids)
-- The facts that are in place of these facts now, with their texts.
select x.memory_id, x.kind, x.micro
from memory.memories as old
cross join lateral heart.list_successors($1, old.memory_id, null) as s
join memory.memories as x on x.agent_id = $1 and x.memory_id = s.memory_id
where old.agent_id = $1 and old.memory_id = any($2::uuid[]) and old.kind = 'fact';

-- name: list_answers(agent_id, memory_ids, patterns)
-- The replies of models to these messages, and other replies with one of these words. A reply need not be a memory.
select d.session_id, d.position, d.content, r.memory_id, answered.is_direct
from dialogue.messages as d
left join memory.memories as r
    on r.agent_id = $1 and r.kind = 'exchange' and r.thread_id = d.session_id and r.position = d.position
cross join lateral (
    select exists (
        select
        from memory.memories as x
        where
            x.agent_id = $1
            and x.memory_id = any($2::uuid[])
            and x.kind = 'exchange'
            and x.thread_id = d.session_id
            and x.position < d.position
            and not exists (
                select
                from dialogue.messages as n
                where
                    n.agent_id = $1
                    and n.session_id = x.thread_id
                    and n.role = 'user'
                    and n.position > x.position
                    and n.position < d.position
            )
    ) as is_direct
) as answered
where
    d.agent_id = $1
    and d.role in ('assistant', 'tool')
    and d.content <> ''
    and (answered.is_direct or d.content ilike any($3::text[]))
order by d.session_id, d.position;

-- name: forget_answers(agent_id, session_ids, positions)
select dialogue.forget_answers($1, $2, $3);

-- name: restore_rest(agent_id, session_id, position, rest, speaker, size)
select dialogue.restore_rest($1, $2, $3, $4, $5, $6);

-- name: drop_responses(agent_id, texts)
delete from runtime.idempotency_keys as k
using unnest($2::text[]) as t (text)
where k.agent_id = $1 and position(t.text in k.response_body) > 0;
