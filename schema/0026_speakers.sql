-- Who speaks through a token: a person, an app that relays persons, or a model. The tokens that exist are of apps.
alter table runtime.tokens
add column speaker text not null default 'app'
constraint tokens_speaker_check check (speaker in ('person', 'app', 'model'));

comment on column runtime.tokens.speaker is
'Whose word a request with the token is: a person''s own tool, an app through which persons talk, or a model.';

drop function runtime.authenticate_token(uuid, uuid, bytea, timestamptz);

-- As before, with the speaker of the token.
create function runtime.authenticate_token(target_agent uuid, presented_id uuid, presented_hash bytea, moment timestamptz)
returns table (agent text, scope text, users text, first_user bytea, name text, speaker text)
language plpgsql
as $$
declare
    scope_before constant text := coalesce(current_setting('newton.agent_id', true), '');
    role_before constant text := current_setting('role');
    stored runtime.tokens;
begin
    perform set_config('role', 'newton_app', true), set_config('newton.agent_id', target_agent::text, true);
    select t.* into stored
    from runtime.tokens as t
    where
        t.agent_id = target_agent
        and t.token_id = presented_id
        and t.hash = presented_hash
        and t.revoked_at is null
        and (t.expires_at is null or t.expires_at > moment);
    if found then
        if stored.used_at is null or moment - stored.used_at > interval '1 minute' then
            update runtime.tokens set used_at = moment where agent_id = target_agent and token_id = presented_id;
        end if;
        return query
        select a.name, stored.scope, stored.users, stored.first_user, stored.name, stored.speaker
        from runtime.agents as a
        where a.agent_id = target_agent;
    end if;
    perform set_config('newton.agent_id', scope_before, true), set_config('role', role_before, true);
end
$$;

grant execute on function runtime.authenticate_token(uuid, uuid, bytea, timestamptz) to newton_app;
