-- Words about somebody stand in what is no memory, too: the goals of tasks, the titles of documents, and contexts, which
-- hold the input that they were made for. Of the agent in scope, only what is in memory.forgotten.
create procedure memory.unsay(agent uuid, ids uuid[])
language plpgsql
security definer
set search_path = pg_catalog
as $$
declare
    own uuid := nullif(current_setting('newton.agent_id', true), '')::uuid; -- the scope counts, whatever was passed
    noted uuid[];
begin
    select array_agg(f.memory_id) into noted
    from memory.forgotten as f
    where f.agent_id = own and own = agent and f.memory_id = any(ids);

    delete from cognition.bundles where agent_id = own and bundle_id = any(noted);
    update dialogue.tasks set goal = '[forgotten]' where agent_id = own and task_id = any(noted);
    update dialogue.task_steps set words = '[forgotten]'
    where agent_id = own and task_id = any(noted) and words is not null;
    update heart.documents set title = '[forgotten]', ref = '[forgotten] ' || document_id
    where agent_id = own and document_id = any(noted);
end
$$;

revoke execute on procedure memory.unsay(uuid, uuid[]) from public;
grant execute on procedure memory.unsay(uuid, uuid[]) to newton_app;
