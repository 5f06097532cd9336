-- Removes the text of the rules that a user laid down in messages which are recorded as forgotten, of the agent in scope.
-- A line that a person accepted as a proposal is erased separately.
create function heart.forget_rules(target_agent uuid) returns void
language plpgsql
security definer
set search_path = pg_catalog
as $$
declare
    removed_tenets uuid[];
begin
    perform runtime.check_agent_scope(target_agent);
    select array_agg(t.tenet_id) into removed_tenets
    from heart.tenets as t
    join memory.memories as m
        on m.agent_id = target_agent and m.kind = 'exchange' and m.thread_id = t.session_id and m.position = t.position
    join memory.forgotten as f on f.agent_id = target_agent and f.memory_id = m.memory_id
    where
        t.agent_id = target_agent
        and t.text is not null
        and not exists (
            select
            from heart.proposals as p
            where p.agent_id = target_agent and p.tenet_id = t.tenet_id
        );

    if removed_tenets is not null then
        call heart.redact_tenets(target_agent, removed_tenets);
    end if;
end
$$;

revoke execute on function heart.forget_rules(uuid) from public;
grant execute on function heart.forget_rules(uuid) to newton_app;
