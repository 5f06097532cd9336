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

-- For whom a token speaks, and how far; no row when it is unknown, expired or revoked. Every request begins with this, so it
-- is one statement: it opens the agent's scope itself and leaves scope and role as they were. What is compared are hashes, of
-- which nobody can choose the beginning, so it does not matter how long that takes. When a token was last used is kept to the
-- minute: a write for each request would cost more than it says.
create function runtime.bearer(own uuid, token uuid, digest bytea, moment timestamptz)
returns table (agent text, scope text)
language plpgsql
as $$
declare
    scope_before constant text := coalesce(current_setting('newton.agent_id', true), '');
    role_before constant text := current_setting('role');
    held runtime.tokens;
begin
    perform set_config('role', 'newton_app', true), set_config('newton.agent_id', own::text, true);
    select t.* into held
    from runtime.tokens as t
    where
        t.agent_id = own
        and t.token_id = token
        and t.hash = digest
        and t.revoked_at is null
        and (t.expires_at is null or t.expires_at > moment);
    if found then
        if held.used_at is null or moment - held.used_at > interval '1 minute' then
            update runtime.tokens set used_at = moment where agent_id = own and token_id = token;
        end if;
        return query select a.name, held.scope from runtime.agents as a where a.agent_id = own;
    end if;
    perform set_config('newton.agent_id', scope_before, true), set_config('role', role_before, true);
end
$$;

grant execute on function runtime.bearer(uuid, uuid, bytea, timestamptz) to newton_app;
