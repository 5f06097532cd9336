-- name: list_crowded_attributes(agent_id, max_facts)
-- Current facts of each multi-valued attribute with more than max_facts of them, oldest first. Facts from tools and the
-- web are left out, because merging them would quarantine the result, and so are facts with an end date.
with crowded as (
    select f.subject_key, f.attribute
    from heart.facts as f
    join memory.memories as m on m.agent_id = $1 and m.memory_id = f.memory_id and m.trust not in ('tool', 'web')
    where
        f.agent_id = $1
        and f.is_current
        and not f.single_valued
        and not f.is_generalization
        and f.valid_to is null
        and f.subject_key is not null
        and f.attribute is not null
    group by f.subject_key, f.attribute
    having count(*) > $2
)
select f.subject_key, f.attribute, f.subject, f.memory_id, m.full_text, m.trust, f.valid_from
from crowded as c
join heart.facts as f
    on
        f.agent_id = $1
        and f.subject_key = c.subject_key
        and f.attribute = c.attribute
        and f.is_current
        and not f.single_valued
        and not f.is_generalization
        and f.valid_to is null
join memory.memories as m on m.agent_id = $1 and m.memory_id = f.memory_id and m.trust not in ('tool', 'web')
order by f.subject_key, f.attribute, f.valid_from, f.memory_id;
