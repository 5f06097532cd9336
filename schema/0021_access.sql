-- Who may speak to the daemon for an agent. A token's own words are kept nowhere; what is stored cannot be turned back
-- into them.
create table runtime.tokens (
    agent_id uuid not null references runtime.agents (agent_id),
    token_id uuid not null,
    name text not null check (name <> ''),
    scope text not null check (scope in ('read', 'write', 'admin')),
    hash bytea not null check (length(hash) = 32),
    created_at timestamptz not null,
    expires_at timestamptz,
    revoked_at timestamptz,
    used_at timestamptz,
    primary key (agent_id, token_id)
);

comment on column runtime.tokens.hash is 'SHA-256 of the token, which is random and long, so that it needs no salt.';
comment on column runtime.tokens.scope is 'read: ask; write: also remember, decide and talk; admin: also forget, erase and run jobs.';

call runtime.isolate('runtime.tokens');
grant select, insert on runtime.tokens to newton_app;
grant update (revoked_at, used_at) on runtime.tokens to newton_app;
