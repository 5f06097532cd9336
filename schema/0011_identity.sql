-- Who the agent is and what holds always, line by line, in versions that are only ever added. A person changes it; an agent
-- proposes.
create table heart.tenets (
    agent_id uuid not null references runtime.agents (agent_id),
    tenet_id uuid not null,
    part text not null check (part in ('boundary', 'instruction', 'protocol', 'value', 'preference', 'character')),
    words text check (words <> '' and words !~ '[\n\r]'),
    tokens integer check (tokens > 0),
    at timestamptz not null,
    origin text not null check (origin <> ''),
    trust text not null check (trust in ('operator', 'user', 'agent')),
    session_id uuid,
    position integer,
    primary key (agent_id, tenet_id),
    foreign key (agent_id, session_id, position) references dialogue.messages (agent_id, session_id, position),
    check ((words is null) = (tokens is null)),
    check ((session_id is null) = (position is null))
);

comment on table heart.tenets is 'Every line that was ever in the identity or proposed for it. What tools and the web say is neither.';
comment on column heart.tenets.words is 'Null when they were erased.';
comment on column heart.tenets.tokens is 'Of the line as a context shows it, counted when it was written.';
comment on column heart.tenets.position is 'The line of dialogue that it was heard in, if it was.';

call runtime.isolate('heart.tenets');
grant select, insert on heart.tenets to newton_app;

create table heart.identity (
    agent_id uuid not null references runtime.agents (agent_id),
    version integer not null check (version >= 1),
    at timestamptz not null,
    origin text not null check (origin <> ''),
    trust text not null check (trust in ('operator', 'user')),
    change text not null check (change in ('added', 'changed', 'removed', 'accepted', 'rolled back', 'erased')),
    tenet_id uuid,
    restored integer check (restored between 1 and version - 1),
    because text check (because <> ''),
    standing uuid[] not null,
    primary key (agent_id, version),
    foreign key (agent_id, tenet_id) references heart.tenets (agent_id, tenet_id),
    foreign key (agent_id, restored) references heart.identity (agent_id, version),
    check ((change = 'rolled back') = (restored is not null)),
    check ((change = 'rolled back') = (tenet_id is null))
);

comment on table heart.identity is 'Each change is a version; the last one holds. A roll-back is a version too.';
comment on column heart.identity.tenet_id is 'What was added, changed into, removed, accepted or erased.';
comment on column heart.identity.standing is 'The tenets of this version in order.';

call runtime.isolate('heart.identity');
grant select, insert on heart.identity to newton_app;

-- Tenets that wait, or waited, for a person's yes.
create table heart.proposals (
    agent_id uuid not null,
    tenet_id uuid not null,
    state text not null check (state in ('PROPOSED', 'ACCEPTED', 'REJECTED')),
    gist bytea check (length(gist) = 32),
    primary key (agent_id, tenet_id),
    foreign key (agent_id, tenet_id) references heart.tenets (agent_id, tenet_id),
    check ((state = 'PROPOSED') = (gist is not null))
);

create unique index proposals_open_key on heart.proposals (agent_id, gist) where state = 'PROPOSED';

comment on column heart.proposals.gist is 'Of its words without case and punctuation, while it waits: the same is not proposed twice.';

call runtime.isolate('heart.proposals');
grant select, insert on heart.proposals to newton_app;
grant update (state, gist) on heart.proposals to newton_app;

-- Takes away the words of these tenets, and what was said about changing them. Only procedures that erase may call it;
-- row level security holds in it as everywhere.
create procedure heart.unsay(own uuid, gone uuid[])
language sql
set search_path = pg_catalog
as $$
    update heart.tenets set words = null, tokens = null where agent_id = own and tenet_id = any(gone);
    update heart.identity set because = null where agent_id = own and tenet_id = any(gone) and change <> 'erased';
    update heart.proposals set state = 'REJECTED', gist = null
    where agent_id = own and tenet_id = any(gone) and state = 'PROPOSED';
    call cognition.let_go(own, gone);
$$;

revoke execute on procedure heart.unsay(uuid, uuid[]) from public;

-- Of the tenets that some version says were erased, of the agent in scope. The application may take nothing away by itself.
create procedure heart.erase_tenets(agent uuid)
language plpgsql
security definer
set search_path = pg_catalog
as $$
declare
    own uuid := nullif(current_setting('newton.agent_id', true), '')::uuid; -- the scope counts, whatever was passed
    gone uuid[];
begin
    select array_agg(t.tenet_id) into gone
    from heart.tenets as t
    join heart.identity as i on i.agent_id = own and i.tenet_id = t.tenet_id and i.change = 'erased'
    where t.agent_id = own and own = agent and t.words is not null;

    if gone is not null then
        call heart.unsay(own, gone);
    end if;
end
$$;

revoke execute on procedure heart.erase_tenets(uuid) from public;
grant execute on procedure heart.erase_tenets(uuid) to newton_app;
