-- name: list_turns(agent_id, since, until)
-- The turns of a period, oldest first, with input, reply and bundle. The bundle is null if a memory in it was forgotten
-- or its retention has ended. `opening` is true for the first turn of a session.
select
    t.created_at as at, t.session_id, t.method as how, t.answered_by, q.content as input, r.content as reply,
    not exists (
        select from cognition.turns as e
        where e.agent_id = $1 and e.session_id = t.session_id and e.input_position < t.input_position
    ) as opening,
    b.bundle_id, b.frame, b.profile, b.budget, b.tokens, b.input as made_for, b.trace, b.memory_ids, b.candidates
from cognition.turns as t
join dialogue.messages as q on q.agent_id = $1 and q.session_id = t.session_id and q.position = t.input_position
join dialogue.messages as r on r.agent_id = $1 and r.session_id = t.session_id and r.position = t.reply_position
left join cognition.bundles as b on b.agent_id = $1 and b.bundle_id = t.bundle_id
where t.agent_id = $1 and t.created_at >= $2 and t.created_at <= $3
order by t.created_at, t.turn_id;

-- name: list_forms(agent_id, memory_ids)
select memory_id, ref, micro, summary, coalesce(full_text, summary) as part, coalesce(full_text, summary) as "full"
from memory.memories
where agent_id = $1 and memory_id = any($2::uuid[]);

-- name: count_created(agent_id, since, until)
-- Without artifacts, because they only repeat other memories.
select (created_at at time zone 'UTC')::date as day, kind, count(*) as memories
from memory.memories
where agent_id = $1 and created_at >= $2 and created_at <= $3 and kind <> 'artifact'
group by 1, 2
order by 1, 2;

-- name: count_facts(agent_id, until)
-- Facts that are neither duplicates nor quarantined, and the confirmed ones of them. The duplicates and the confirmations are
-- few, so that only one table is read whole.
with stored as (
    select count(*) as facts
    from memory.memories
    where agent_id = $1 and kind = 'fact' and not quarantined and created_at <= $2
),
repeated as (
    select count(*) as facts
    from heart.facts as f
    join memory.memories as m on m.agent_id = $1 and m.memory_id = f.memory_id
    where f.agent_id = $1 and f.duplicate_of is not null and not m.quarantined and m.created_at <= $2
),
confirmed as (
    select count(distinct c.memory_id) as facts
    from memory.confirmations as c
    join heart.facts as f on f.agent_id = $1 and f.memory_id = c.memory_id
    join memory.memories as m on m.agent_id = $1 and m.memory_id = c.memory_id
    where
        c.agent_id = $1
        and c.confirmed_at <= $2
        and f.duplicate_of is null
        and not m.quarantined
        and m.created_at <= $2
)
select stored.facts - repeated.facts as total, confirmed.facts as confirmed
from stored, repeated, confirmed;

-- name: count_rated_uses(agent_id, since, until)
-- Matches of censors, and uses of procedures by their result.
select
    count(*) filter (where m.kind = 'censor') as matches,
    count(*) filter (where m.kind = 'censor' and a.result = 'false_positive') as false_positives,
    count(*) filter (where m.kind = 'procedure' and a.result = 'success') as successes,
    count(*) filter (where m.kind = 'procedure' and a.result = 'failure') as failures
from heart.activations as a
join memory.memories as m on m.agent_id = $1 and m.memory_id = a.memory_id
where a.agent_id = $1 and a.activated_at >= $2 and a.activated_at <= $3;

-- name: sum_turn_tokens(agent_id, since, until)
-- LLM tokens used by the turns of a period.
select coalesce(sum(input_tokens + output_tokens), 0)::bigint as tokens
from runtime.usage
where agent_id = $1 and purpose = 'turn' and created_at >= $2 and created_at <= $3;

-- name: list_prefixes(agent_id, since, until)
-- The characters of the first prompt of each turn of a period and of those that the prompt before it had too, by why that
-- one was not repeated to its end.
with opening as (
    select distinct on (session_id, input_position) difference, message_chars, identical_chars
    from cognition.prompts
    where agent_id = $1 and created_at >= $2 and created_at <= $3
    order by session_id, input_position, prompt_id
)
select
    coalesce(difference, '') as difference, count(*) as prompts, sum(message_chars)::bigint as message_chars,
    sum(identical_chars)::bigint as identical_chars
from opening
where message_chars is not null
group by 1
order by 1;
