-- LLM usage as reported by the endpoints. The daily token limit is checked against the sum.
create table runtime.usage (
    agent_id uuid not null references runtime.agents (agent_id),
    usage_id uuid not null,
    created_at timestamptz not null,
    model text not null,
    purpose text not null,
    input_tokens integer not null check (input_tokens >= 0),
    output_tokens integer not null check (output_tokens >= 0),
    estimated boolean not null,
    counted_tokens integer check (counted_tokens >= 0),
    message_count integer check (message_count >= 0),
    primary key (agent_id, usage_id)
);

create index usage_day_idx on runtime.usage (agent_id, created_at) include (input_tokens, output_tokens);

create index usage_samples_idx on runtime.usage (agent_id, model, usage_id) where counted_tokens is not null and not estimated;

comment on column runtime.usage.counted_tokens is
'Tokens of the request by our own tokenizer, to calibrate it against the model''s.';
comment on column runtime.usage.estimated is 'The endpoint reported no usage, so the tokens were counted here.';

call runtime.isolate('runtime.usage');
grant select, insert on runtime.usage to newton_app;

-- API tokens of the agents. Only a hash is stored, from which the token cannot be recovered.
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
    users text check (users in ('per_user', 'shared')),
    first_user bytea check (length(first_user) = 32),
    primary key (agent_id, token_id)
);

comment on column runtime.tokens.hash is 'SHA-256 of the token. The token is long and random, so no salt is needed.';
comment on column runtime.tokens.scope is
'read: query; write: also remember, decide and chat; admin: also forget, erase and run jobs.';
comment on column runtime.tokens.users is
'Whether each user that requests name has a memory of their own, or all share one; null: only one user is accepted.';
comment on column runtime.tokens.first_user is 'SHA-256 of the only user, once a request has named one.';

call runtime.isolate('runtime.tokens');
grant select, insert on runtime.tokens to newton_app;
grant update (revoked_at, used_at, first_user) on runtime.tokens to newton_app;

-- Authenticates a token: returns its agent, scope and users, or no row if it is unknown, expired or revoked. Every request
-- begins with this call, so it is a single statement that sets the agent scope itself and restores it on failure.
-- Comparing hashes needs no constant-time comparison, because a caller cannot choose a hash prefix. used_at has a
-- resolution of one minute to avoid a write per request.
create function runtime.authenticate_token(target_agent uuid, presented_id uuid, presented_hash bytea, moment timestamptz)
returns table (agent text, scope text, users text, first_user bytea, name text)
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
        select a.name, stored.scope, stored.users, stored.first_user, stored.name
        from runtime.agents as a
        where a.agent_id = target_agent;
    end if;
    perform set_config('newton.agent_id', scope_before, true), set_config('role', role_before, true);
end
$$;

grant execute on function runtime.authenticate_token(uuid, uuid, bytea, timestamptz) to newton_app;

-- Job queue: one row for each run of a job for an agent. A slot is the scheduled time of a run.
create table runtime.jobs (
    agent_id uuid not null references runtime.agents (agent_id),
    job_id uuid not null,
    name text not null check (name <> ''),
    slot timestamptz not null,
    state text not null default 'queued' check (state in ('queued', 'running', 'done', 'dead')),
    attempts integer not null default 0 check (attempts >= 0),
    due_at timestamptz not null,
    epoch bigint not null default 0,
    holder text check (holder <> ''),
    leased_until timestamptz,
    started_at timestamptz,
    finished_at timestamptz,
    result jsonb,
    reason text,
    error text,
    primary key (agent_id, job_id),
    unique (agent_id, name, slot),
    check ((state = 'running') = (leased_until is not null)),
    check ((state in ('done', 'dead')) = (finished_at is not null)),
    check (state <> 'running' or (holder is not null and started_at is not null)),
    check (state <> 'dead' or error is not null)
);

comment on table runtime.jobs is 'All times are by the clock of the database, so that several machines agree on them.';
comment on column runtime.jobs.epoch is
'Fencing token, raised by each claim. A run can only be finished with the epoch of its claim.';
comment on column runtime.jobs.result is
'What the run did, as numbers and ids, never as text of a memory; null if there was nothing to do.';

-- At most one queued or running run per job and agent: missed slots are merged. The index only holds unfinished runs, so
-- it stays small, and due runs of all agents are found in it.
create unique index jobs_live_idx on runtime.jobs (agent_id, name) include (job_id, due_at, state, leased_until)
where state in ('queued', 'running');

call runtime.isolate('runtime.jobs');
grant select, delete on runtime.jobs to newton_app;
-- A distributed database writes out the defaults of columns, so these need the right too.
grant insert (agent_id, job_id, name, slot, due_at, state, attempts, epoch) on runtime.jobs to newton_app;
grant update (state, attempts, due_at, leased_until, finished_at, result, reason, error) on runtime.jobs to newton_app;

create policy worker on runtime.jobs to newton_worker using (true);
grant select on runtime.jobs to newton_worker;
grant insert (agent_id, job_id, name, slot, due_at, state, attempts, epoch) on runtime.jobs to newton_worker;
grant update (state, attempts, due_at, epoch, holder, leased_until, started_at, finished_at, error)
on runtime.jobs to newton_worker;

-- The event stream, and the responses stored for idempotency keys.
create table runtime.events (
    agent_id uuid not null references runtime.agents (agent_id),
    number bigint not null check (number > 0),
    type text not null check (type ~ '^[a-z_]+\.[a-z_]+$'),
    occurred_at timestamptz not null,
    payload jsonb not null check (jsonb_typeof(payload) = 'object'),
    primary key (agent_id, number)
);

comment on table runtime.events is 'Events of an agent, in order. A payload contains ids and counts, never user text.';
comment on column runtime.events.number is
'Consecutive numbers, assigned under a lock, so that no event becomes visible behind one that was already read.';

call runtime.isolate('runtime.events');
grant select, insert, delete on runtime.events to newton_app;

-- Publishes an event, deletes a few events older than `keep_after`, and notifies listeners. Other publishers of the same
-- agent wait until this transaction has committed, so that numbers become visible in order.
create procedure runtime.publish_event(target_agent uuid, type text, occurred_at timestamptz, payload jsonb, keep_after timestamptz)
language plpgsql
set search_path = pg_catalog
as $$
declare
    last_number bigint;
begin
    perform pg_advisory_xact_lock(hashtextextended('newton.events ' || target_agent::text, 0))
    from (select count(*) from runtime.agents as a where a.agent_id = target_agent) as node;
    select max(e.number) into last_number from runtime.events as e where e.agent_id = target_agent;
    insert into runtime.events (agent_id, number, type, occurred_at, payload)
    values (
        target_agent, coalesce(last_number, 0) + 1, publish_event.type, publish_event.occurred_at, publish_event.payload
    );
    -- never delete the last event, or the numbering would restart
    delete from runtime.events as e
    where
        e.agent_id = target_agent
        and e.occurred_at < publish_event.keep_after
        and e.number in (select o.number from runtime.events as o where o.agent_id = target_agent order by o.number limit 3)
        and e.number < (select max(o.number) from runtime.events as o where o.agent_id = target_agent);
    perform pg_notify('newton_events', target_agent::text);
end
$$;

grant execute on procedure runtime.publish_event(uuid, text, timestamptz, jsonb, timestamptz) to newton_app;

-- Deletes all events of an agent. Subscribers receive agent.erased, and the numbers are not reused.
create procedure runtime.clear_events(target_agent uuid, cleared_at timestamptz)
language plpgsql
set search_path = pg_catalog
as $$
declare
    last_number bigint;
begin
    perform pg_advisory_xact_lock(hashtextextended('newton.events ' || target_agent::text, 0))
    from (select count(*) from runtime.agents as a where a.agent_id = target_agent) as node;
    select max(e.number) into last_number from runtime.events as e where e.agent_id = target_agent;
    if last_number is not null then
        delete from runtime.events as e where e.agent_id = target_agent;
        insert into runtime.events (agent_id, number, type, occurred_at, payload)
        values (target_agent, last_number + 1, 'agent.erased', cleared_at, '{}');
        perform pg_notify('newton_events', target_agent::text);
    end if;
end
$$;

grant execute on procedure runtime.clear_events(uuid, timestamptz) to newton_app;

create table runtime.idempotency_keys (
    agent_id uuid not null references runtime.agents (agent_id),
    key text not null check (key <> ''),
    request_hash bytea not null check (length(request_hash) = 32),
    status_code smallint not null check (status_code between 200 and 299),
    response_body text not null,
    created_at timestamptz not null,
    primary key (agent_id, key)
);

create index idempotency_keys_created_idx on runtime.idempotency_keys (agent_id, created_at);

comment on table runtime.idempotency_keys is
'Responses to POST requests with an Idempotency-Key, kept for a day. They contain ids, never user text.';
comment on column runtime.idempotency_keys.request_hash is 'SHA-256 of method, URL and body.';

call runtime.isolate('runtime.idempotency_keys');
grant select, insert, delete on runtime.idempotency_keys to newton_app;


-- Answers of persons to the question whether the agent may call a tool of a server.
create table runtime.tool_permissions (
    agent_id uuid not null references runtime.agents (agent_id),
    permission_id uuid not null,
    server text not null check (server <> ''),
    tool text not null check (tool <> ''),
    verdict text not null check (verdict in ('allow', 'deny')),
    fingerprint bytea check (length(fingerprint) = 32),
    session_id uuid,
    source text not null check (source in ('person', 'trust')),
    created_at timestamptz not null,
    primary key (agent_id, permission_id),
    unique nulls not distinct (agent_id, server, tool, session_id),
    check ((verdict = 'allow') = (fingerprint is not null))
);

comment on table runtime.tool_permissions is 'A permission holds for the tool as it was when a person gave it.';
comment on column runtime.tool_permissions.fingerprint is
'SHA-256 of the server''s address and of the tool''s description, schema and annotations.';
comment on column runtime.tool_permissions.source is
'trust: nobody was asked, because the tool reads and the user trusts its server.';

call runtime.isolate('runtime.tool_permissions');
grant select, insert, delete on runtime.tool_permissions to newton_app;
grant update (verdict, fingerprint, source, created_at) on runtime.tool_permissions to newton_app;

-- Calls of tools of servers, without their texts, which are in events of the session.
create table runtime.tool_actions (
    agent_id uuid not null references runtime.agents (agent_id),
    action_id uuid not null,
    session_id uuid not null,
    server text not null check (server <> ''),
    tool text not null check (tool <> ''),
    arguments_hash bytea not null check (length(arguments_hash) = 32),
    permission text not null check (permission in ('read', 'once', 'session', 'always')),
    outcome text not null check (outcome in ('success', 'failure', 'interrupted')),
    started_at timestamptz not null,
    finished_at timestamptz not null,
    primary key (agent_id, action_id),
    check (finished_at >= started_at)
);

create index tool_actions_tool_idx on runtime.tool_actions (agent_id, server, tool, finished_at);

comment on column runtime.tool_actions.permission is
'How the call was permitted: a read of a trusted server, or the answer of a person: once, for the session, always.';
comment on column runtime.tool_actions.outcome is
'interrupted: the turn was stopped before the tool answered, and it is not known what the tool did.';

call runtime.isolate('runtime.tool_actions');
grant select, insert on runtime.tool_actions to newton_app;
