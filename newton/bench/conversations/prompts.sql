-- name: measure_prompts(agent_id)
select count(*), sum(pg_column_size(p.*))::bigint as bytes
from cognition.prompts as p
where p.agent_id = $1;

-- name: measure_texts(agent_id)
select count(*), sum(pg_column_size(t.*))::bigint as bytes
from cognition.prompt_texts as t
where t.agent_id = $1;

-- name: measure_disk(tables)
-- The pages of tables and of their indexes, of all agents.
select
    sum(pg_relation_size(c.oid) + pg_indexes_size(c.oid) + pg_relation_size(nullif(c.reltoastrelid, 0)))::bigint as bytes
from unnest($1::text[]) as t (name)
join pg_class as c on c.oid = t.name::regclass;
