-- name: list_crowded_attributes(agent_id, max_facts)
-- Current facts of each multi-valued attribute with more than max_facts of them, oldest first; those of persons apart from
-- those of models, which stand for none of a person. Left out are facts from tools and the web, because merging them would
-- quarantine the result, those with an end date, and what a person marked as core or confirmed for a model.
with eligible as (
    select
        f.subject_key, f.attribute, f.subject, f.memory_id, m.full_text, m.trust, f.valid_from,
        m.trust in ('operator', 'user') as is_of_person
    from heart.facts as f
    join memory.memories as m on m.agent_id = $1 and m.memory_id = f.memory_id and m.trust not in ('tool', 'web')
    where
        f.agent_id = $1
        and f.is_current
        and not f.single_valued
        and not f.is_generalization
        and not f.is_core
        and f.valid_to is null
        and f.subject_key is not null
        and f.attribute is not null
        and (
            m.trust in ('operator', 'user')
            or not exists (
                select
                from memory.confirmations as c
                where c.agent_id = $1 and c.memory_id = f.memory_id and c.trust in ('operator', 'user')
            )
        )
),
crowded as (
    select subject_key, attribute, is_of_person
    from eligible
    group by subject_key, attribute, is_of_person
    having count(*) > $2
)
select e.subject_key, e.attribute, e.subject, e.memory_id, e.full_text, e.trust, e.valid_from, e.is_of_person
from crowded as c
join eligible as e on e.subject_key = c.subject_key and e.attribute = c.attribute and e.is_of_person = c.is_of_person
order by e.subject_key, e.attribute, e.is_of_person, e.valid_from, e.memory_id;
