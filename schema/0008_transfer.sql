-- Export and import of a whole agent. The table list is read from the catalog, so a new table is included automatically.
-- Returns the agent tables in foreign key order: referenced tables first.
create function runtime.agent_tables() returns setof regclass
language sql
stable
set search_path = pg_catalog
as $$
    with recursive agent_table as (
        select c.oid
        from pg_class as c
        join pg_attribute as a on a.attrelid = c.oid and a.attname = 'agent_id' and not a.attisdropped
        where
            c.relkind in ('r', 'p')
            and not c.relispartition
            and c.relname !~ '_[0-9]{6,}$' -- a shard, which the catalog of a node of a distributed database also lists
            and c.relnamespace::regnamespace::text in ('memory', 'heart', 'brain', 'dialogue', 'cognition', 'runtime')
    ),
    depth as (
        select oid, 0 as steps
        from agent_table
        union
        select k.conrelid, d.steps + 1
        from depth as d
        join pg_constraint as k on k.confrelid = d.oid and k.contype = 'f' and k.conrelid <> k.confrelid
        where d.steps < 50
    )
    select oid::regclass
    from depth
    group by oid
    order by max(steps), oid::regclass::text
$$;

grant execute on function runtime.agent_tables() to newton_app;

-- The columns in an export: all but generated ones and agent_id, because a file can be imported under another agent.
create function runtime.exported_columns(target_table regclass) returns text[]
language sql
stable
set search_path = pg_catalog
as $$
    select array_agg(attname::text order by attnum)
    from pg_attribute
    where attrelid = target_table and attnum > 0 and not attisdropped and attgenerated = '' and attname <> 'agent_id'
$$;

-- Returns the rows of an agent in primary key order, one JSON object each. Row level security applies to the caller.
create function runtime.export_rows(target_agent uuid, target_table regclass) returns setof text
language plpgsql
stable
set timezone = 'UTC'
set search_path = pg_catalog, public
as $$
declare
    keys text;
    skipped_columns text[];
begin
    select string_agg(
        format(case when a.atttypid = 'text'::regtype then 't.%I collate "C"' else 't.%I' end, a.attname), ', '
        order by k.ordinal
    ) into keys
    from pg_index as i
    cross join unnest(i.indkey::smallint[]) with ordinality as k (attnum, ordinal)
    join pg_attribute as a on a.attrelid = target_table and a.attnum = k.attnum
    where i.indrelid = target_table and i.indisprimary and k.ordinal <= i.indnkeyatts;

    select array_agg(attname::text) into skipped_columns
    from pg_attribute
    where attrelid = target_table and attnum > 0 and not attisdropped and not attname = any(runtime.exported_columns(target_table));

    return query execute format(
        'select (to_jsonb(t) - $2)::text from %s as t where t.agent_id = $1 order by %s', target_table, keys
    ) using target_agent, skipped_columns;
end
$$;

grant execute on function runtime.export_rows(uuid, regclass) to newton_app;
grant execute on function runtime.exported_columns(regclass) to newton_app;

create function runtime.count_rows(target_agent uuid, target_table regclass) returns bigint
language plpgsql
stable
set search_path = pg_catalog
as $$
declare
    found bigint;
begin
    execute format('select count(*) from %s where agent_id = $1', target_table) into found using target_agent;
    return found;
end
$$;

grant execute on function runtime.count_rows(uuid, regclass) to newton_app;

-- Inserts rows in the format of `export_rows`. Missing columns get their defaults; unknown columns raise an error. Each
-- trust in `higher_trusts` is lowered to `max_trust`, because a file can claim any.
create procedure runtime.import_rows(
    target_agent uuid, target_table regclass, new_rows jsonb, max_trust text, higher_trusts text[]
)
language plpgsql
set timezone = 'UTC'
set search_path = pg_catalog, public
as $$
declare
    column_names text[] := array(select jsonb_object_keys(new_rows -> 0));
    columns text;
begin
    if not column_names <@ runtime.exported_columns(target_table) then
        raise data_exception using message = format('%s has columns that are not known here', target_table);
    end if;
    if 'trust' = any(column_names) and cardinality(higher_trusts) > 0 then
        new_rows := (
            select jsonb_agg(
                case
                    when row_value ->> 'trust' = any(higher_trusts) then row_value || jsonb_build_object('trust', max_trust)
                    else row_value
                end
                order by position
            )
            from jsonb_array_elements(new_rows) with ordinality as given (row_value, position)
        );
    end if;
    select string_agg(format('%I', name), ', ') into columns from unnest(column_names) as name;
    execute format(
        'insert into %s (agent_id, %s) select $1, %s from jsonb_populate_recordset(null::%s, $2) returning agent_id',
        target_table, columns, columns, target_table
    ) using target_agent, new_rows;
end
$$;

grant execute on procedure runtime.import_rows(uuid, regclass, jsonb, text, text[]) to newton_app;
