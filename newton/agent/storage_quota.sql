-- name: measure_storage(agent_id)
-- The bytes of the stored texts, as compressed on disk, without indexes. No text is read.
select
    (
        select coalesce(sum(coalesce(pg_column_size(full_text), 0) + pg_column_size(summary)), 0)
        from memory.memories
        where agent_id = $1
    )
    + (
        select coalesce(sum(pg_column_size(content) + coalesce(pg_column_size(tool_calls), 0)), 0)
        from dialogue.messages
        where agent_id = $1
    )
    + (
        select coalesce(sum(pg_column_size(text) + pg_column_size(words)), 0)
        from dialogue.artifact_chunks
        where agent_id = $1
    )
    + (select coalesce(sum(pg_column_size(content)), 0) from cognition.prompt_texts where agent_id = $1)
    + (select coalesce(sum(pg_column_size(text)), 0) from dialogue.prompt_blocks where agent_id = $1)
    + (select coalesce(sum(pg_column_size(value)), 0) from heart.items where agent_id = $1)::bigint as bytes;
