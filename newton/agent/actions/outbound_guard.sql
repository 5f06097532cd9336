-- name: list_memory_texts(agent_id, memory_ids, session_id, max_chars, passages)
-- The memories that the parts of a session's prompt state, those of earlier inputs included, and the passages whose ids
-- end so.
select m.kind, m.trust, m.quarantined, left(coalesce(m.full_text, m.summary), $4) as text, d.format,
    exists(
        select from heart.events as e where e.agent_id = $1 and e.memory_id = m.memory_id and e.type = 'error'
    ) as is_error
from memory.memories as m
left join heart.passages as p on p.agent_id = $1 and p.memory_id = m.memory_id
left join heart.documents as d on d.agent_id = $1 and d.document_id = p.document_id
where
    m.agent_id = $1
    and m.memory_id in (
        select unnest($2::uuid[])
        union
        select unnest(b.memory_ids)
        from dialogue.prompt_blocks as b
        where b.agent_id = $1 and b.session_id = $3
        union
        select r.memory_id
        from heart.passages as r
        inner join unnest($5::text[]) as s (ending) on right(replace(r.memory_id::text, '-', ''), length(s.ending)) = s.ending
        where r.agent_id = $1
    );

-- name: list_foreign_lines(agent_id, session_id)
-- The positions of a session's replies that were made with text of tools or the web in view, and of what a model
-- reported of the user, here or in a session that this one continues.
with owner as (
    select ancestor_id as session_id, first_position, last_position
    from dialogue.lineage
    where agent_id = $1 and session_id = $2
    union all
    select $2::uuid, 0, 2147483647
)
select m.position
from owner as o
join dialogue.messages as m
    on m.agent_id = $1 and m.session_id = o.session_id and m.position between o.first_position and o.last_position
where m.min_trust = any(case m.role when 'assistant' then '{tool,web}' when 'user' then '{agent,tool,web}' end::text[]);

-- name: list_tied_memories(agent_id, input, values, trusts, max_chars, limit)
-- The current memories of a person that have a word of their message and one of the values of a call.
select m.kind, m.trust, m.quarantined, left(coalesce(m.full_text, m.summary), $5) as text, d.format
from memory.memories as m
left join heart.passages as p on p.agent_id = $1 and p.memory_id = m.memory_id
left join heart.documents as d on d.agent_id = $1 and d.document_id = p.document_id
where
    m.agent_id = $1
    and m.memory_id in (
        select t.memory_id
        from unnest(tsvector_to_array(memory.search_words($2))) as w (lexeme)
        inner join memory.postings as t on t.agent_id = $1 and t.lexeme = w.lexeme
    )
    and m.trust = any($4::text[])
    and not m.quarantined
    and not memory.is_obsolete(m.kind, m.state)
    and exists (
        select from unnest($3::text[]) as v (value)
        where strpos(lower(coalesce(m.full_text, m.summary)), lower(v.value)) > 0
    )
order by m.memory_id
limit $6;
