-- name: list_table_stats(agent_id)
-- Table statistics, which are shared by all agents; no rows are read.
select
    s.schemaname || '.' || s.relname as name,
    s.n_live_tup as live,
    s.n_dead_tup as dead,
    greatest(s.last_vacuum, s.last_autovacuum) as vacuumed_at
from pg_stat_user_tables as s
where s.schemaname = any('{memory,heart,brain,dialogue,cognition,runtime}') and $1::uuid is not null
order by s.n_dead_tup desc, name;
