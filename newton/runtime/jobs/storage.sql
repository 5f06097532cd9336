-- name: list_table_stats(agent_id)
-- Parts of the tables in which the agent has its rows, which are the same for all; none of anybody's rows is read.
select
    s.schemaname || '.' || s.relname as name,
    s.n_live_tup as live,
    s.n_dead_tup as dead,
    greatest(s.last_vacuum, s.last_autovacuum) as vacuumed_at
from pg_stat_user_tables as s
where s.schemaname = any('{memory,heart,brain,dialogue,cognition,runtime}') and $1::uuid is not null
order by s.n_dead_tup desc, name;
