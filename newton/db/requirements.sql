-- name: describe_server()
select
    current_setting('server_version') as version,
    (select extversion from pg_extension where extname = 'vector') as pgvector,
    current_setting('fsync') = 'on'
    and current_setting('full_page_writes') = 'on'
    and current_setting('synchronous_commit') <> 'off' as durable,
    to_tsvector('english', '«ÉCOLE»') = to_tsvector('english', 'école') as utf8,
    (select not rolsuper and not rolbypassrls from pg_roles where rolname = current_user) as rls_enforced,
    count(*) as tables,
    count(*) filter (where relrowsecurity and relforcerowsecurity) as isolated
from pg_class
join pg_attribute on attrelid = pg_class.oid and attname = 'agent_id'
where
    relkind = 'r'
    and relname !~ '_[0-9]{6,}$' -- a shard
    and relnamespace::regnamespace::text = any('{memory,heart,brain,dialogue,cognition,runtime}');

-- name: describe_owner()
select
    current_database()::text as database,
    current_user::text as owner,
    current_setting('server_version') as version,
    current_setting('server_version_num')::int / 10000 as major,
    current_setting('server_encoding') as encoding,
    pg_is_in_recovery() as is_standby,
    r.rolsuper as is_superuser,
    r.rolcreaterole as creates_roles,
    has_database_privilege(current_database(), 'create') as creates_schemas,
    has_schema_privilege(p.oid, 'usage') as uses_public,
    has_schema_privilege('public', p.oid, 'usage') as is_public_open,
    pg_has_role(p.nspowner, 'usage') as opens_public,
    e.extversion as vector,
    n.nspname::text as vector_schema,
    a.default_version as vector_available,
    exists (
        select from pg_class as c join pg_namespace as s on s.oid = c.relnamespace
        where s.nspname = 'runtime' and c.relname = 'schema_migrations'
    ) as is_installed,
    array(
        select s.nspname::text from pg_namespace as s
        where s.nspname = any('{memory,heart,brain,dialogue,cognition,runtime}')
        order by s.nspname
    ) as schemas,
    array(
        select s.nspname::text from pg_namespace as s
        where s.nspname = any('{memory,heart,brain,dialogue,cognition,runtime}') and not pg_has_role(s.nspowner, 'usage')
        order by s.nspname
    ) as foreign_schemas
from pg_roles as r
left join pg_extension as e on e.extname = 'vector'
left join pg_namespace as n on n.oid = e.extnamespace
left join pg_available_extensions as a on a.name = 'vector'
left join pg_namespace as p on p.nspname = 'public'
where r.rolname = current_user;

-- name: describe_role(role)
select
    rolsuper or rolbypassrls or rolcreaterole or rolcreatedb or rolreplication as is_privileged,
    pg_has_role(oid, 'usage with admin option') as may_grant,
    coalesce(has_schema_privilege(oid, to_regnamespace('public'), 'usage'), false) as uses_public
from pg_roles
where rolname = $1;
