-- name: get_entity(agent_id, entity_id)
select e.memory_id, e.name, e.type, e.aliases, e.mentions, e.mentioned_at, e.properties::text as properties, m.state
from heart.entities as e
join memory.memories as m on m.agent_id = $1 and m.memory_id = e.memory_id
where e.agent_id = $1 and e.memory_id = $2;

-- name: list_mentions(agent_id, entity_id, max_rows)
-- Current knowledge only, latest first.
select n.memory_id
from heart.mentions as n
join memory.memories as m on m.agent_id = $1 and m.memory_id = n.memory_id
where
    n.agent_id = $1
    and n.entity_id = $2
    and memory.has_listed_state(m.kind, m.state, m.quarantined, array['current'])
order by m.occurred_at desc, m.memory_id desc
limit $3;
