-- name: set_single_valued(agent_id, attribute, single_valued)
insert into heart.attributes (agent_id, attribute, single_valued)
values ($1, $2, $3)
on conflict (agent_id, attribute) do update set single_valued = excluded.single_valued;

-- name: get_declared(agent_id, attributes)
select attribute, single_valued as single
from heart.attributes
where agent_id = $1 and attribute = any($2::text[]);

-- name: list_attributes(agent_id)
select coalesce(f.attribute, a.attribute) as attribute, a.single_valued as single
from (
    select distinct attribute
    from heart.facts
    where agent_id = $1 and attribute is not null
) as f
full join (
    select attribute, single_valued
    from heart.attributes
    where agent_id = $1
) as a on a.attribute = f.attribute
order by 1;
