-- An owner that cannot bypass row level security may read the rows of all agents, for backups. It may still write only
-- those of the agent in scope. The tables belong to it, so this gives it no right that it could not take.
create or replace procedure runtime.isolate(target regclass)
language plpgsql
as $$
begin
    execute format('alter table %s enable row level security', target);
    execute format('alter table %s force row level security', target);
    execute format(
        'create policy agent on %s using (agent_id = nullif(current_setting(''newton.agent_id'', true), '''')::uuid)',
        target
    );
    call runtime.permit_owner(target);
end
$$;

create procedure runtime.permit_owner(target regclass)
language plpgsql
as $$
begin
    if not (select rolsuper or rolbypassrls from pg_roles where rolname = current_user) then
        execute format('create policy owner on %s for select to %I using (true)', target, current_user);
    end if;
end
$$;

do $$
declare
    target regclass;
begin
    for target in select * from runtime.agent_tables() loop
        call runtime.permit_owner(target);
    end loop;
end
$$;
