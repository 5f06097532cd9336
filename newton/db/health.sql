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
