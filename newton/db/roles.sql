-- name: find_names()
select
    current_database()::text as database,
    exists (
        select from pg_proc as p join pg_namespace as n on n.oid = p.pronamespace
        where n.nspname = 'runtime' and p.proname = 'app_role' and has_schema_privilege(n.oid, 'usage')
    ) as has_functions,
    exists (
        select from pg_class as c join pg_namespace as n on n.oid = c.relnamespace
        where n.nspname = 'runtime' and c.relname = 'schema_migrations'
    ) as is_installed;

-- name: read_names()
select runtime.app_role() as app, runtime.worker_role() as worker;

-- name: list_confined()
-- The tables in which the database user sees and writes only the rows of the agent in scope, but for policies.
select c.oid, c.oid::regclass::text as name
from pg_class as c
where
    c.relrowsecurity
    and c.relkind = 'r'
    and c.relnamespace::regnamespace::text = any('{memory,heart,brain,dialogue,cognition,runtime}')
    and row_security_active(c.oid)
order by c.oid;

-- name: list_remaining(oids)
-- The tables of these that still exist, by the names that they have now.
select oid::regclass::text as name
from pg_class
where oid = any($1::oid[])
order by oid;

-- name: list_hidden()
-- The tables of which the database user does not see all rows: those without a permissive policy that shows all.
select c.oid::regclass::text as name
from pg_class as c
where
    c.relrowsecurity
    and c.relkind = 'r'
    and c.relnamespace::regnamespace::text = any('{memory,heart,brain,dialogue,cognition,runtime}')
    and row_security_active(c.oid)
    and not (
        exists (
            select from pg_policy as p
            where
                p.polrelid = c.oid
                and p.polpermissive
                and p.polcmd in ('r', '*')
                and pg_get_expr(p.polqual, p.polrelid) = 'true'
                and (0 = any(p.polroles) or current_user::regrole = any(p.polroles))
        )
        and not exists (select from pg_policy as p where p.polrelid = c.oid and not p.polpermissive)
    )
order by c.oid::regclass::text;
