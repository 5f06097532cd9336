-- name: find_contents(agent_id, session_id)
-- What a session and those of which it is a branch have. The answers only change from no to yes while it goes on.
with own as (
    select $2::uuid as session_id
    union all
    select ancestor_id
    from dialogue.lineage
    where agent_id = $1 and session_id = $2
)
select
    exists (
        select
        from own
        join dialogue.artifact_versions as a on a.agent_id = $1 and a.session_id = own.session_id
    ) as has_artifacts,
    exists (
        select
        from own
        join dialogue.tasks as t on t.agent_id = $1 and t.session_id = own.session_id
    ) as has_tasks,
    exists (
        select
        from own
        join cognition.working_set as w on w.agent_id = $1 and w.session_id = own.session_id
        join memory.memories as m on m.agent_id = $1 and m.memory_id = w.memory_id
        where m.kind = 'decision'
    ) as has_decisions,
    array(
        select distinct b.frame
        from own
        join cognition.bundles as b on b.agent_id = $1 and b.session_id = own.session_id
    ) as frames;
