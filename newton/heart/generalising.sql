-- name: crowded(agent_id, most)
-- The current facts of each many-valued attribute that has more than so many, the oldest first.
with crowded as (
    select subject_key, attribute
    from heart.facts
    where agent_id = $1 and holds and not single and not generalises and subject_key is not null and attribute is not null
    group by subject_key, attribute
    having count(*) > $2
)
select f.subject_key, f.attribute, f.subject, f.memory_id, m.full_text, m.trust, f.valid_from
from crowded as c
join heart.facts as f
    on
        f.agent_id = $1
        and f.subject_key = c.subject_key
        and f.attribute = c.attribute
        and f.holds
        and not f.single
        and not f.generalises
join memory.memories as m on m.agent_id = $1 and m.memory_id = f.memory_id
order by f.subject_key, f.attribute, f.valid_from, f.memory_id;
