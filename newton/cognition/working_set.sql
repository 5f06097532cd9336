-- name: add_items(agent_id, session_id, memory_ids, positions, now, separator_tokens)
-- Adds memories, given by their ids or as positions of messages of the session. Returns the ids of those that were added, and
-- the tokens of the whole set. In id order, so that two writers of one session cannot deadlock. Artifacts are skipped,
-- because they only repeat what is in the set.
with wanted as (
    select m.memory_id
    from memory.memories as m
    where m.agent_id = $1 and m.memory_id = any($3::uuid[]) and m.kind <> 'artifact'
    union
    select m.memory_id
    from memory.memories as m
    where m.agent_id = $1 and m.kind = 'exchange' and m.thread_id = $2 and m.position = any($4::integer[])
),
added as (
    insert into cognition.working_set as w (agent_id, session_id, memory_id, added_at, accessed_at)
    select $1, $2, memory_id, $5, $5
    from wanted
    order by memory_id
    on conflict (agent_id, session_id, memory_id) do update
    set accessed_at = greatest(w.accessed_at, excluded.accessed_at), access_count = w.access_count + 1
    returning w.memory_id
),
items as (
    select memory_id from cognition.working_set where agent_id = $1 and session_id = $2
    union
    select memory_id from added
)
select
    coalesce(sum(m.summary_tokens + $6::integer), 0)::integer as tokens,
    array(select memory_id from added order by memory_id) as memory_ids
from items as i
join memory.memories as m on m.agent_id = $1 and m.memory_id = i.memory_id;

-- name: list_items(agent_id, session_id)
-- The columns of `get_memories` in memory_reader.sql up to `position`, with times and use count of the session, and the total use count.
select
    m.memory_id, m.kind, m.state, m.micro, m.summary, m.micro_tokens, m.summary_tokens, m.word_count as words,
    m.confidence,
    m.importance, m.outcome, w.access_count as uses, m.occurred_at, w.added_at as created_at, w.accessed_at,
    m.confirmed_at,
    m.trust, m.quarantined, m.ref, m.thread_id as thread, m.position as place, m.uses as uses_in_all
from cognition.working_set as w
join memory.memories as m on m.agent_id = $1 and m.memory_id = w.memory_id
where
    w.agent_id = $1
    and w.session_id = $2
    and (m.kind <> 'relation' or heart.is_relation_current($1, m.memory_id, 'infinity'))
order by m.memory_id;

-- name: list_vectors(agent_id, session_id, model_id)
select e.memory_id, e.embedding
from cognition.working_set as w
join memory.memories as m on m.agent_id = $1 and m.memory_id = w.memory_id
join memory.embeddings as e
    on e.agent_id = $1 and e.model_id = $3 and e.kind = m.kind and e.memory_id = w.memory_id
where w.agent_id = $1 and w.session_id = $2;

-- name: remove_items(agent_id, session_id, memory_ids)
delete from cognition.working_set
where agent_id = $1 and session_id = $2 and memory_id = any($3::uuid[]);

-- name: delete_idle(agent_id, before)
-- Deletes the working sets of sessions without any access since then.
with gone as (
    delete from cognition.working_set as w
    where
        w.agent_id = $1
        and not exists (
            select from cognition.working_set as o
            where o.agent_id = $1 and o.session_id = w.session_id and o.accessed_at >= $2
        )
    returning w.session_id
)
select distinct session_id
from gone;

-- name: get_last_session(agent_id)
select s.session_id, s.ref
from cognition.working_set as w
join dialogue.sessions as s on s.agent_id = $1 and s.session_id = w.session_id
where w.agent_id = $1
order by w.accessed_at desc, w.session_id
limit 1;

-- name: record_profile_use(agent_id, profile, items, tokens, age_hours, now)
insert into cognition.profile_stats as s (agent_id, profile, context_count, item_count, token_count, total_age_hours, last_used_at)
values ($1, $2, 1, $3, $4, $5, $6)
on conflict (agent_id, profile) do update
set
    context_count = s.context_count + 1,
    item_count = s.item_count + excluded.item_count,
    token_count = s.token_count + excluded.token_count,
    total_age_hours = s.total_age_hours + excluded.total_age_hours,
    last_used_at = excluded.last_used_at;

-- name: list_profile_stats(agent_id)
select
    profile, context_count as contexts, item_count as items, token_count as tokens, total_age_hours, last_used_at
from cognition.profile_stats
where agent_id = $1
order by context_count desc, profile;
