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
