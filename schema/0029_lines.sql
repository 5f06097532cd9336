-- The forms of a text keep its lines. Their only line break is the newline: a context indents what follows one.
alter table memory.memories
    drop constraint memories_micro_check,
    drop constraint memories_summary_check,
    add constraint memories_micro_check check (micro <> '' and micro !~ E'[\\r\\v\\f\\u001c-\\u001e\\u0085\\u2028\\u2029]'),
    add constraint memories_summary_check check (summary <> '' and summary !~ E'[\\r\\v\\f\\u001c-\\u001e\\u0085\\u2028\\u2029]');
alter table memory.windows
    drop constraint windows_text_check,
    add constraint windows_text_check check (text <> '' and text !~ E'[\\r\\v\\f\\u001c-\\u001e\\u0085\\u2028\\u2029]');

-- In a context each further line of a long text has up to four tokens more: its break and its indentation. Texts that
-- were stored before were counted as one line. The owner of the table is subject to its policies as well.
alter table memory.memories no force row level security;
update memory.memories
set full_tokens = full_tokens + 4 * (length(full_text) - length(replace(full_text, E'\n', '')))
where full_tokens is not null and full_text like E'%\n%';
alter table memory.memories force row level security;
