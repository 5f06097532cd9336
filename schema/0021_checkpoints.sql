-- Branches continue from the number of a message; names of positions were removed.
create or replace function memory.redact_references(target_agent uuid, ids uuid[], pattern text) returns void
language plpgsql
security definer
set search_path = pg_catalog
as $$
declare
    redacted_ids uuid[];
begin
    perform runtime.check_agent_scope(target_agent);
    select array_agg(f.memory_id) into redacted_ids
    from memory.forgotten as f
    where f.agent_id = target_agent and f.memory_id = any(ids);

    call cognition.delete_bundles_by_id(target_agent, redacted_ids);
    call cognition.delete_prompt_texts(target_agent, redacted_ids);
    delete from dialogue.context_injections where agent_id = target_agent and injection_id = any(redacted_ids);
    delete from dialogue.artifact_versions where agent_id = target_agent and artifact_id = any(redacted_ids);
    update dialogue.tasks set goal = '[forgotten]' where agent_id = target_agent and task_id = any(redacted_ids);
    update dialogue.task_transitions set text = '[forgotten]'
    where agent_id = target_agent and task_id = any(redacted_ids) and text is not null;
    update heart.documents set title = '[forgotten]', ref = '[forgotten] ' || document_id::text
    where agent_id = target_agent and document_id = any(redacted_ids);
    delete from heart.items where agent_id = target_agent and item_id = any(redacted_ids);
    update dialogue.sessions set ref = '[forgotten] ' || session_id::text
    where agent_id = target_agent and session_id = any(redacted_ids) and ref ~ pattern;
    update dialogue.responses set metadata = '{}'
    where agent_id = target_agent and response_id = any(redacted_ids) and metadata::text ~ pattern;
    update memory.forgotten set reason = '[forgotten]'
    where agent_id = target_agent and memory_id = any(redacted_ids) and reason ~ pattern;
end
$$;

drop table dialogue.checkpoints;
