-- One agent as a whole: carried to a file and back. What a table holds is told by the catalog, so none is forgotten.

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

-- Rows that refer to rows of their own table may come in any order, if the unit of work asks for it.
alter table dialogue.sessions alter constraint sessions_agent_id_parent_id_fkey deferrable;
alter table dialogue.tasks alter constraint tasks_agent_id_session_id_parent_id_fkey deferrable;
alter table dialogue.tasks alter constraint tasks_agent_id_session_id_instead_of_fkey deferrable;
alter table heart.facts alter constraint facts_agent_id_same_as_fkey deferrable;

-- A chain that was carried to an agent of another name still begins as it did.
alter table brain.heads add column began uuid;
update brain.heads set began = agent_id;
alter table brain.heads alter column began set not null;

comment on column brain.heads.began is 'The id of the agent with which its first record begins.';

-- The words by which the meaning of a memory is known.
create view memory.cues with (security_invoker = true) as
select
    m.agent_id,
    m.memory_id,
    m.kind,
    regexp_replace(
        case m.kind
            when 'exchange' then coalesce(d.name, initcap(d.role)) || ': ' || d.content
            when 'episode' then e.title || ': ' || coalesce(m.full_text, m.summary)
            when 'censor' then c.trigger
            else coalesce(m.full_text, m.summary)
        end,
        '\s+', ' ', 'g'
    ) as text
from memory.memories as m
left join dialogue.messages as d
    on d.agent_id = m.agent_id and m.kind = 'exchange' and d.session_id = m.thread and d.position = m.place
left join heart.episodes as e on e.agent_id = m.agent_id and e.memory_id = m.memory_id
left join heart.censors as c on c.agent_id = m.agent_id and c.memory_id = m.memory_id;

grant select on memory.cues to newton_app;

-- Takes an agent away with all that it was, of the agent in scope; what was told of it goes by `runtime.silence`, which is
-- for the end. Who calls it says so first, outside.
create procedure runtime.wipe(agent uuid)
language plpgsql
security definer
set search_path = pg_catalog
as $$
declare
    own uuid := nullif(current_setting('newton.agent_id', true), '')::uuid; -- the scope counts, whatever was passed
    part regclass;
begin
    if own is distinct from agent then
        return;
    end if;
    for part in select p from runtime.parts() with ordinality as t (p, place) order by place desc loop
        continue when part in ('runtime.agents'::regclass, 'runtime.tokens'::regclass, 'runtime.events'::regclass);
        execute format('delete from %s where agent_id = $1', part) using own;
    end loop;
end
$$;

revoke execute on procedure runtime.wipe(uuid) from public;
grant execute on procedure runtime.wipe(uuid) to newton_app;

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

-- By which model's vectors an agent's memories are found. Another model's are made beside them, and then it is flipped.
create table memory.active_models (
    agent_id uuid primary key references runtime.agents (agent_id),
    model_id uuid not null references memory.models (model_id),
    at timestamptz not null
);

call runtime.isolate('memory.active_models');
grant select, insert, update (model_id, at) on memory.active_models to newton_app;

insert into memory.active_models (agent_id, model_id, at)
select distinct on (agent_id) agent_id, model_id, now()
from memory.embeddings
group by agent_id, model_id
order by agent_id, count(*) desc, model_id;

-- Vectors of models that are not active any more go, of the agent in scope.
create procedure memory.drop_old_vectors(agent uuid)
language sql
security definer
set search_path = pg_catalog
as $$
    delete from memory.embeddings as e
    using memory.active_models as a
    where
        a.agent_id = agent
        and agent = nullif(current_setting('newton.agent_id', true), '')::uuid
        and e.agent_id = agent
        and e.model_id <> a.model_id;
$$;

revoke execute on procedure memory.drop_old_vectors(uuid) from public;
grant execute on procedure memory.drop_old_vectors(uuid) to newton_app;
