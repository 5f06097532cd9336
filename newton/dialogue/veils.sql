-- name: read(agent_id, session_id, mark, max_chars, max_said)
-- What holds in a session, also before a branch: whether the last message of a person was not kept, whether the last
-- message is a question of the assistant, and what persons said last.
with said as not materialized (
    select m.role, m.content, m.position, m.is_notice
    from dialogue.messages as m
    where
        m.agent_id = $1
        and (
            m.session_id = $2
            or exists (
                select
                from dialogue.lineage as l
                where
                    l.agent_id = $1
                    and l.session_id = $2
                    and l.ancestor_id = m.session_id
                    and m.position between l.first_position and l.last_position
            )
        )
)
select
    w.veil,
    w.lifted_by,
    w.choices,
    coalesce((select content like $3 from said where role = 'user' order by position desc limit 1), false) as covers_reply,
    coalesce(
        (select role = 'assistant' and content ~ '[?？][\s"''”»)]*$' from said order by position desc limit 1), false
    ) as is_asked,
    array(
        select left(content, $4) from said where role = 'user' and not is_notice order by position desc limit $5
    ) as said
from (select) as one
left join dialogue.session_wills as w on w.agent_id = $1 and w.session_id = $2;

-- name: save(agent_id, session_id, veil, lifted_by, choices)
insert into dialogue.session_wills (agent_id, session_id, veil, lifted_by, choices)
values ($1, $2, $3, $4, $5)
on conflict (agent_id, session_id) do update
set veil = excluded.veil, lifted_by = excluded.lifted_by, choices = excluded.choices;
