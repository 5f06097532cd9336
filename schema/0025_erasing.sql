-- Words about somebody stand in what is no memory, too: the goals of tasks, the titles of documents, contexts, which hold
-- the input that they were made for, and, where they match the pattern, the names of sessions and of places in them and
-- the reasons why something was forgotten. Of the agent in scope, only what is in memory.forgotten.
create procedure memory.unsay(agent uuid, ids uuid[], pattern text)
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
    update dialogue.sessions set ref = '[forgotten] ' || session_id
    where agent_id = own and session_id = any(noted) and ref ~* pattern;
    update dialogue.checkpoints set name = '[forgotten] ' || gen_random_uuid()
    where agent_id = own and session_id = any(noted) and name ~* pattern;
    update memory.forgotten set because = '[forgotten]'
    where agent_id = own and memory_id = any(noted) and because ~* pattern;
end
$$;

revoke execute on procedure memory.unsay(uuid, uuid[], text) from public;
grant execute on procedure memory.unsay(uuid, uuid[], text) to newton_app;
