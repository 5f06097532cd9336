-- name: find_by_id(agent_id, memory_id, kind)
select memory_id
from memory.memories
where agent_id = $1 and memory_id = $2 and ($3::text is null or kind = $3);

-- name: find_by_id_suffix(agent_id, id_suffix, kind, max_rows)
select memory_id
from memory.memories
where
    agent_id = $1
    and right(replace(memory_id::text, '-', ''), length($2)) = $2
    and ($3::text is null or kind = $3)
limit $4;

-- name: find_forgotten(agent_id, id_suffix)
select kind, forgotten_at, reason
from memory.forgotten
where agent_id = $1 and right(replace(memory_id::text, '-', ''), length($2)) = $2
limit 1;

-- name: get_record(agent_id, memory_id)
select
    m.memory_id, m.kind, m.state, m.micro, m.summary, coalesce(m.full_text, d.content) as full_text,
    c.compressed as packed,
    m.confidence, m.importance, m.outcome, m.confirmations, m.uses, m.occurred_at, m.created_at, m.confirmed_at,
    m.origin, m.trust, m.quarantined, m.ref
from memory.memories as m
left join memory.archived_texts as c on c.agent_id = $1 and c.memory_id = m.memory_id
left join dialogue.messages as d
    on d.agent_id = $1 and m.kind = 'exchange' and d.session_id = m.thread_id and d.position = m.position
where m.agent_id = $1 and m.memory_id = $2;

-- name: list_related(agent_id, memory_id)
-- Related memories in both directions, with the relation as a phrase after "it".
select r.link, r.other_id, m.kind, m.state, m.micro
from (
    select 'was made from' as link, source_id as other_id
    from memory.sources
    where agent_id = $1 and memory_id = $2
    union all
    select 'is a source of', memory_id
    from memory.sources
    where agent_id = $1 and source_id = $2
    union all
    select
        case link
            when 'supersedes' then 'supersedes'
            when 'was_wrong' then 'says was wrong'
            when 'corroborates' then 'corroborates'
            when 'near' then 'is near'
            when 'evidence' then 'is evidence for'
            when 'depends_on' then 'depends on'
            when 'relates' then 'relates to'
            when 'contradicts' then 'contradicts'
            else 'was born in'
        end,
        other_id
    from memory.links
    where agent_id = $1 and memory_id = $2
    union all
    select
        case link
            when 'supersedes' then 'is superseded by'
            when 'was_wrong' then 'was said to be wrong by'
            when 'corroborates' then 'is corroborated by'
            when 'near' then 'is near'
            when 'evidence' then 'has as evidence'
            when 'depends_on' then 'is depended on by'
            when 'relates' then 'relates to'
            when 'contradicts' then 'is contradicted by'
            else 'bore'
        end,
        memory_id
    from memory.links
    where agent_id = $1 and other_id = $2
) as r
join memory.memories as m on m.agent_id = $1 and m.memory_id = r.other_id
order by r.link, r.other_id;
