-- name: list_tables()
-- The tables that hold text of an agent: those of vectors hold none.
select part::text as name
from runtime.agent_tables() as part
where part::text !~ 'embeddings|vectors';

-- name: count_matches(agent_id, table_name, pattern)
select count(*)::integer as found
from (select runtime.export_rows($1, $2::text::regclass) as line) as stored
where line ~ $3;

-- name: list_archived_texts(agent_id)
select memory_id, compressed
from memory.archived_texts
where agent_id = $1;
