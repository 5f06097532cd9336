-- name: list_text_tables()
-- All tables of Newton, each as a quoted name.
select oid::regclass::text as name
from pg_class
where
    relkind = 'r'
    and relname !~ '_[0-9]{6,}$'
    and relnamespace::regnamespace::text = any('{memory,heart,brain,dialogue,cognition,runtime}')
order by oid::regclass::text;
