-- The tables of agents in an order in which rows can be written: what is referred to comes first.
create function runtime.parts() returns setof regclass
language sql
stable
set search_path = pg_catalog
as $$
    with recursive part as (
        select c.oid
        from pg_class as c
        join pg_attribute as a on a.attrelid = c.oid and a.attname = 'agent_id' and not a.attisdropped
        where
            c.relkind in ('r', 'p')
            and not c.relispartition
            and c.relnamespace::regnamespace::text in ('memory', 'heart', 'brain', 'dialogue', 'cognition', 'runtime')
    ),
    depth as (
        select oid, 0 as steps
        from part
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

grant execute on function runtime.parts() to newton_app;

-- What a file carries of a table: not the agent's id, which is that of whoever takes it in, nor what is generated.
create function runtime.carried(part regclass) returns text[]
language sql
stable
set search_path = pg_catalog
as $$
    select array_agg(attname::text order by attnum)
    from pg_attribute
    where attrelid = part and attnum > 0 and not attisdropped and attgenerated = '' and attname <> 'agent_id'
$$;

-- The rows of an agent in the order of their key, one JSON object each. Row level security holds in it as everywhere.
create function runtime.rows_of(own uuid, part regclass) returns setof text
language plpgsql
stable
set timezone = 'UTC'
set search_path = pg_catalog, public
as $$
declare
    keys text;
    left_out text[];
begin
    select string_agg(
        format(case when a.atttypid = 'text'::regtype then 't.%I collate "C"' else 't.%I' end, a.attname), ', '
        order by k.place
    ) into keys
    from pg_index as i
    cross join unnest(i.indkey::smallint[]) with ordinality as k (attnum, place)
    join pg_attribute as a on a.attrelid = part and a.attnum = k.attnum
    where i.indrelid = part and i.indisprimary and k.place <= i.indnkeyatts;

    select array_agg(attname::text) into left_out
    from pg_attribute
    where attrelid = part and attnum > 0 and not attisdropped and not attname = any(runtime.carried(part));

    return query execute format(
        'select (to_jsonb(t) - $2)::text from %s as t where t.agent_id = $1 order by %s', part, keys
    ) using own, left_out;
end
$$;

grant execute on function runtime.rows_of(uuid, regclass) to newton_app;
grant execute on function runtime.carried(regclass) to newton_app;

create function runtime.count_of(own uuid, part regclass) returns bigint
language plpgsql
stable
set search_path = pg_catalog
as $$
declare
    found bigint;
begin
    execute format('select count(*) from %s where agent_id = $1', part) into found using own;
    return found;
end
$$;

grant execute on function runtime.count_of(uuid, regclass) to newton_app;

-- Writes rows as `rows_of` gave them. A column that they do not name gets its default; one that is not known is refused.
create procedure runtime.take_rows(own uuid, part regclass, given jsonb)
language plpgsql
set timezone = 'UTC'
set search_path = pg_catalog, public
as $$
declare
    named text[] := array(select jsonb_object_keys(given -> 0));
    columns text;
begin
    if not named <@ runtime.carried(part) then
        raise data_exception using message = format('%s has columns that are not known here', part);
    end if;
    select string_agg(format('%I', name), ', ') into columns from unnest(named) as name;
    execute format(
        'insert into %s (agent_id, %s) select $1, %s from jsonb_populate_recordset(null::%s, $2)',
        part, columns, columns, part
    ) using own, given;
end
$$;

grant execute on procedure runtime.take_rows(uuid, regclass, jsonb) to newton_app;

-- How many rows there are of every table, as far as whoever asks may see them.
create function runtime.census() returns table (part text, rows bigint)
language plpgsql
stable
set search_path = pg_catalog
as $$
begin
    for part in select p::text from runtime.parts() as p loop
        execute format('select count(*) from %s', part) into rows;
        return next;
    end loop;
end
$$;

revoke execute on function runtime.census() from public;
