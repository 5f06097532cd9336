-- How many users a token may serve with a memory of their own: each new one makes an agent.
alter table runtime.tokens add column max_users integer check (max_users > 0);
comment on column runtime.tokens.max_users is
'How many users with a memory of their own the agent may have for this token to add one; null for the usual number.';
