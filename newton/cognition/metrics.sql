-- name: served(agent_id, since, until)
-- The turns of a period, the oldest first, each with its line, its reply and its context, of which nothing is left when a
-- memory that it looked at was forgotten. `opening` are the first turns of their sessions.
select
    t.at, t.session_id, t.how, t.answered_by, q.content as input, r.content as reply,
    not exists (
        select from cognition.turns as e
        where e.agent_id = $1 and e.session_id = t.session_id and e.asked < t.asked
    ) as opening,
    b.bundle_id, b.frame, coalesce((b.trace -> 'frame' ->> 'forced')::boolean, false) as forced, b.profile, b.budget,
    b.tokens,
    (select sum(ms::real) from jsonb_each_text(b.trace -> 'timings_ms') as l (stage, ms)) as ms
from cognition.turns as t
join dialogue.messages as q on q.agent_id = $1 and q.session_id = t.session_id and q.position = t.asked
join dialogue.messages as r on r.agent_id = $1 and r.session_id = t.session_id and r.position = t.replied
left join cognition.bundles as b on b.agent_id = $1 and b.bundle_id = t.bundle_id
where t.agent_id = $1 and t.at >= $2 and t.at <= $3
order by t.at, t.turn_id;

-- name: loaded(agent_id, bundle_ids)
-- What stood in these contexts, as it stood there, with its likeness to the input.
select
    b.bundle_id, m.memory_id, m.kind, m.ref, case c.detail when 'micro' then m.micro else m.summary end as text,
    c.similarity::real as similarity, c.cosine::real as cosine
from cognition.bundles as b
cross join rows from (
    jsonb_array_elements_text(b.trace -> 'candidates' -> 'memory_id'),
    jsonb_array_elements_text(b.trace -> 'candidates' -> 'detail'),
    jsonb_array_elements_text(b.trace -> 'candidates' -> 'features' -> 'similarity'),
    jsonb_array_elements_text(b.trace -> 'candidates' -> 'features' -> 'cosine')
) as c (memory_id, detail, similarity, cosine)
join memory.memories as m on m.agent_id = $1 and m.memory_id = c.memory_id::uuid
where b.agent_id = $1 and b.bundle_id = any($2::uuid[]) and c.detail is not null
order by b.bundle_id, m.memory_id;

-- name: made(agent_id, since, until)
select (created_at at time zone 'UTC')::date as day, kind, count(*) as memories
from memory.memories
where agent_id = $1 and created_at >= $2 and created_at <= $3
group by 1, 2
order by 1, 2;

-- name: cost(agent_id, since, until)
-- Model tokens of the turns of a period.
select coalesce(sum(input_tokens + output_tokens), 0)::bigint as tokens
from runtime.usage
where agent_id = $1 and purpose = 'turn' and at >= $2 and at <= $3;
