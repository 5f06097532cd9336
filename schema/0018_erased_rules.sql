-- As before, and the blocks with the text of an identity line, such as one that is in force no more.
create or replace procedure dialogue.erase_prompt_blocks(target_agent uuid, bundle_ids uuid[], removed_ids uuid[])
language sql
set search_path = pg_catalog
as $$
    with erased as (
        update dialogue.prompt_blocks as b
        set text = '[forgotten]', tokens = 0, bundle_id = null, memory_ids = '{}'
        where
            b.agent_id = target_agent
            and (
                b.bundle_id = any(bundle_ids)
                or b.memory_ids && removed_ids
                or exists (
                    select
                    from memory.memories as m
                    where
                        m.agent_id = target_agent
                        and m.memory_id = any(removed_ids)
                        and length(m.summary) >= 8  -- a short text occurs in others by chance
                        and strpos(b.text, regexp_replace(m.summary, '^\[[0-9-]+\] ', '')) > 0
                )
                or exists (
                    select
                    from heart.tenets as t
                    where
                        t.agent_id = target_agent
                        and t.tenet_id = any(removed_ids)
                        and strpos(b.text, t.text || E'\n') > 0  -- at the end of a line, so that it may be short
                )
            )
        returning b.session_id, b.position
    )
    update cognition.prompts as p
    set salt = null
    from erased as e
    where
        p.agent_id = target_agent
        and p.input_position >= e.position
        and (
            p.session_id = e.session_id
            or exists (
                select
                from dialogue.lineage as l
                where
                    l.agent_id = target_agent
                    and l.session_id = p.session_id
                    and l.ancestor_id = e.session_id
                    and e.position between l.first_position and l.last_position
            )
        );
$$;

-- As before, but of blocks first, which are found by the text; and with the tenets that a later message made of one of
-- these, which repeat it before what the message adds.
create or replace procedure heart.redact_tenets(target_agent uuid, tenet_ids uuid[])
language plpgsql
set search_path = pg_catalog
as $$
declare
    removed_ids uuid[];
begin
    select array_agg(t.tenet_id) into removed_ids
    from heart.tenets as t
    where
        t.agent_id = target_agent
        and (
            t.tenet_id = any(tenet_ids)
            or exists (
                select
                from heart.tenets as o
                where
                    o.agent_id = target_agent
                    and o.tenet_id = any(tenet_ids)
                    and starts_with(t.text, o.text || ' (since ')
            )
        );

    call cognition.delete_bundles(target_agent, removed_ids);
    update heart.tenets set text = null, tokens = null where agent_id = target_agent and tenet_id = any(removed_ids);
    update heart.identity_versions set reason = null where agent_id = target_agent and tenet_id = any(removed_ids) and change <> 'erased';
    update heart.proposals set state = 'REJECTED', normalized_hash = null
    where agent_id = target_agent and tenet_id = any(removed_ids) and state = 'PROPOSED';
end
$$;
