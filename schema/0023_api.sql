-- What the daemon tells those who listen, and what it answered to requests that may come again.
create table runtime.events (
    agent_id uuid not null references runtime.agents (agent_id),
    number bigint not null check (number > 0),
    type text not null check (type ~ '^[a-z_]+\.[a-z_]+$'),
    at timestamptz not null,
    payload jsonb not null check (jsonb_typeof(payload) = 'object'),
    primary key (agent_id, number)
);

comment on table runtime.events is 'What happened to an agent, in order. A payload has ids and counts, and no words of anybody.';
comment on column runtime.events.number is 'Counts one up with each; given under a lock, so that none appears behind one that was read.';

call runtime.isolate('runtime.events');
grant select, insert, delete on runtime.events to newton_app;

-- Adds an event and lets go of a few that are older than `before`. Who tells next waits until this one has committed, so
-- that numbers become visible in their order; then those who listen on the channel are told whose events to look at.
create procedure runtime.tell(own uuid, type text, at timestamptz, payload jsonb, before timestamptz)
language plpgsql
set search_path = pg_catalog
as $$
begin
    perform pg_advisory_xact_lock(hashtextextended('newton.events ' || own::text, 0));
    insert into runtime.events (agent_id, number, type, at, payload)
    select own, coalesce(max(e.number), 0) + 1, tell.type, tell.at, tell.payload
    from runtime.events as e
    where e.agent_id = own;
    -- the one that was just added stays whatever its time, or numbers would begin again
    delete from runtime.events as e
    where
        e.agent_id = own
        and e.at < tell.before
        and e.number in (select o.number from runtime.events as o where o.agent_id = own order by o.number limit 3)
        and e.number < (select max(o.number) from runtime.events as o where o.agent_id = own);
    perform pg_notify('newton_told', own::text);
end
$$;

grant execute on procedure runtime.tell(uuid, text, timestamptz, jsonb, timestamptz) to newton_app;

-- Lets go of all that was told. Who listens hears that, and the numbers that they resume behind are not given again.
create procedure runtime.silence(own uuid, at timestamptz)
language plpgsql
set search_path = pg_catalog
as $$
declare
    told bigint;
begin
    perform pg_advisory_xact_lock(hashtextextended('newton.events ' || own::text, 0));
    select max(e.number) into told from runtime.events as e where e.agent_id = own;
    if told is not null then
        delete from runtime.events as e where e.agent_id = own;
        insert into runtime.events (agent_id, number, type, at, payload) values (own, told + 1, 'agent.erased', at, '{}');
        perform pg_notify('newton_told', own::text);
    end if;
end
$$;

grant execute on procedure runtime.silence(uuid, timestamptz) to newton_app;

create table runtime.answers (
    agent_id uuid not null references runtime.agents (agent_id),
    key text not null check (key <> ''),
    request bytea not null check (length(request) = 32),
    status smallint not null check (status between 200 and 299),
    answer text not null,
    at timestamptz not null,
    primary key (agent_id, key)
);

create index answers_at on runtime.answers (agent_id, at);

comment on table runtime.answers is 'The answers to POSTs with an Idempotency-Key, kept for a day. They hold ids, and no words of anybody.';
comment on column runtime.answers.request is 'SHA-256 of method, address and body.';

call runtime.isolate('runtime.answers');
grant select, insert, delete on runtime.answers to newton_app;
