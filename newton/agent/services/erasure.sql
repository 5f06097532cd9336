-- name: list_names(agent_id)
-- The names of all entities.
select name, aliases
from heart.entities
where agent_id = $1
order by memory_id;

-- name: list_texts_with(agent_id, pattern)
-- The stored messages and memories that a pattern matches, with the speakers of messages; then the next messages of a user
-- and the facts about such a subject, which may speak of it by a pronoun, with the words before.
with named as (
    select session_id, position, content, name
    from dialogue.messages
    where agent_id = $1 and (content ~ $2 or name ~ $2)
)
select content as text, coalesce(name, '') as speaker, '' as before
from named
union
select m.content, coalesce(m.name, ''), n.content
from named as n
join dialogue.messages as m
    on m.agent_id = $1 and m.session_id = n.session_id and m.position > n.position and m.position <= n.position + 4
where m.role = 'user'
union
select full_text, '', ''
from memory.memories
where agent_id = $1 and full_text ~ $2
union
select m.full_text, '', f.subject
from heart.facts as f
join memory.memories as m on m.agent_id = $1 and m.memory_id = f.memory_id
where f.agent_id = $1 and f.subject ~ $2;

-- name: list_uses(agent_id, pattern)
-- The texts that a pattern matches, messages before other memories, each in the order in which it was stored.
(
    select content as text
    from dialogue.messages
    where agent_id = $1 and content ~ $2
    order by said_at, session_id, position
)
union all
(
    select full_text
    from memory.memories
    where agent_id = $1 and kind not in ('exchange', 'entity', 'relation') and full_text ~ $2
    order by memory_id
);

-- name: find_memories_about(agent_id, keys, pattern, shipped, archived)
-- Memories said by or about a person: found by speaker, subject, mentioned entity or text, and those in archived.
-- Procedures shipped on disk are skipped. A mention by one word may mean something else, so its text has to match.
with named as (
    select memory_id
    from heart.entities
    where agent_id = $1 and (key = any($2::text[]) or name ~ $3 or array_to_string(aliases, ' ') ~ $3)
),
said as materialized (  -- so that each text is searched once
    select session_id, position
    from dialogue.messages
    where agent_id = $1 and (lower(name) = any($2::text[]) or name ~ $3 or content ~ $3 or tool_calls::text ~ $3)
),
decided as materialized (
    select record_id
    from brain.decision_texts
    where agent_id = $1 and texts::text ~ $3
),
found as (
    select memory_id
    from named
    union
    select unnest($5::uuid[]) as memory_id
    union
    select memory_id
    from heart.mentions
    where
        agent_id = $1
        and entity_id in (
            select n.memory_id
            from named as n
            join heart.entities as e on e.agent_id = $1 and e.memory_id = n.memory_id
            where e.name like '% %' and e.key = any($2::text[])
        )
    union
    select memory_id
    from heart.facts
    where agent_id = $1 and (subject_key = any($2::text[]) or subject ~ $3)
    union
    select m.memory_id
    from said as d
    join memory.memories as m
        on m.agent_id = $1 and m.kind = 'exchange' and m.thread_id = d.session_id and m.position = d.position
    union
    select memory_id
    from memory.memories
    where agent_id = $1 and concat_ws(' ', micro, summary, full_text) ~ $3
    union
    select memory_id
    from heart.procedures
    where agent_id = $1 and concat_ws(' ', description, details, steps::text, goals::text, triggers::text) ~ $3
    union
    select memory_id
    from memory.memory_versions
    where agent_id = $1 and concat_ws(' ', micro, summary) ~ $3
    union
    select memory_id
    from memory.edits
    where agent_id = $1 and field = 'subject' and concat_ws(' ', old_value, new_value) ~ $3
    union
    select p.memory_id
    from heart.passages as p
    join heart.documents as d on d.agent_id = $1 and d.document_id = p.document_id
    where p.agent_id = $1 and concat_ws(' ', d.title, substring(d.ref from '[^/]*$')) ~ $3
    union
    select memory_id
    from heart.items
    where agent_id = $1 and memory_id is not null and concat_ws(' ', array_to_string(namespace, ' '), key, value) ~ $3
    union
    select r.decision_id
    from decided as d
    join brain.decision_records as r on r.agent_id = $1 and r.record_id = d.record_id
)
select m.memory_id, m.kind, m.micro
from found as f
join memory.memories as m on m.agent_id = $1 and m.memory_id = f.memory_id
where (m.micro <> '[erased]' or m.kind <> 'decision') and m.origin <> $4
order by m.kind, m.memory_id;

-- name: find_tenets(agent_id, pattern)
select tenet_id
from heart.tenets
where agent_id = $1 and text ~ $2
order by tenet_id;

-- name: find_other_records(agent_id, pattern)
-- Records outside of memories that contain the text: tasks, documents by title and file name, items, artifacts, bundles,
-- texts of prompts, names of sessions, labels of responses, and reasons for forgetting.
select task_id as id, 'task' as kind
from dialogue.tasks as t
where
    t.agent_id = $1
    and (
        t.goal ~ $2
        or exists (
            select
            from dialogue.task_transitions as s
            where s.agent_id = $1 and s.session_id = t.session_id and s.task_id = t.task_id and s.text ~ $2
        )
    )
union all
select document_id, 'document'
from heart.documents
where agent_id = $1 and concat_ws(' ', title, substring(ref from '[^/]*$')) ~ $2
union all
select item_id, 'item'
from heart.items
where agent_id = $1 and concat_ws(' ', array_to_string(namespace, ' '), key, value) ~ $2
union all
select injection_id, 'injection'
from dialogue.context_injections
where agent_id = $1 and text ~ $2
union all
select a.artifact_id, 'artifact'
from dialogue.artifact_versions as a
where
    a.agent_id = $1
    and (
        concat_ws(' ', a.name, a.source) ~ $2
        or exists (
            select
            from dialogue.artifact_chunks as c
            where c.agent_id = $1 and c.artifact_id = a.artifact_id and c.text ~ $2
        )
    )
union all
select bundle_id, 'context'
from cognition.bundles
where agent_id = $1 and concat_ws(' ', input, text, trace::text) ~ $2
union all
select text_id, 'prompt'
from cognition.prompt_texts
where agent_id = $1 and kind not in ('edition', 'fixed') and content ~ $2
union all
select session_id, 'session'
from dialogue.sessions
where agent_id = $1 and ref ~ $2
union all
select response_id, 'response'
from dialogue.responses
where agent_id = $1 and metadata::text ~ $2
union all
select memory_id, 'reason'
from memory.forgotten
where agent_id = $1 and reason ~ $2
order by kind, id;

-- name: record_forgotten(agent_id, ids, kinds, now, reason, origin)
insert into memory.forgotten (agent_id, memory_id, kind, forgotten_at, reason, origin)
select $1, g.id, g.kind, $4, $5, $6
from unnest($2::uuid[], $3::text[]) as g (id, kind)
on conflict do nothing;

-- name: redact_references(agent_id, ids, pattern)
select memory.redact_references($1, $2, $3);

-- name: erase_agent(agent_id)
select runtime.erase_agent($1);
