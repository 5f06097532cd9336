-- Facts, episodes, procedures, censors, entities, events, documents and the identity.
create table heart.facts (
    agent_id uuid not null,
    memory_id uuid not null,
    subject text check (subject <> ''),
    subject_key text check (subject_key <> ''),
    attribute text check (attribute <> ''),
    single_valued boolean not null,
    valid_from timestamptz not null,
    valid_to timestamptz check (valid_to >= valid_from),
    reconfirmed_at timestamptz,
    source text not null check (source <> ''),
    is_core boolean not null,
    is_retracted boolean not null,
    is_compared boolean not null,
    duplicate_of uuid,
    is_generalization boolean not null,
    is_current boolean not null,
    is_contested boolean not null default false,
    primary key (agent_id, memory_id),
    foreign key (agent_id, memory_id) references memory.memories (agent_id, memory_id),
    foreign key (agent_id, duplicate_of) references heart.facts (agent_id, memory_id) deferrable,
    check ((subject is null) = (subject_key is null)),
    check (not single_valued or (subject_key is not null and attribute is not null)),
    constraint facts_single_value_excl exclude using btree (agent_id with =, subject_key with =, attribute with =)
    where (single_valued and is_current and not is_contested) deferrable initially deferred
);

create index facts_subject_idx on heart.facts (agent_id, subject_key, attribute);
create index facts_duplicate_idx on heart.facts (agent_id, duplicate_of) where duplicate_of is not null;
create index facts_uncompared_idx on heart.facts (agent_id, memory_id) where not is_compared;

-- The facts that took the place of a superseded one, directly or in steps, current or not: by a link, as a value of its
-- attribute, as the original that it repeats, or made from it, also by generalization. With a moment, as of then. In
-- plpgsql, because Citus refuses a recursive query of an SQL function with parameters.
create function heart.list_successors(scoped_agent uuid, superseded_id uuid, moment timestamptz)
returns table (memory_id uuid)
language plpgsql
stable
rows 2
as $$
#variable_conflict use_column
begin
    return query
    with recursive later as (
        select list_successors.superseded_id as memory_id
        union
        select n.memory_id
        from later as o
        cross join lateral (
            select l.memory_id
            from memory.links as l
            where
                l.agent_id = scoped_agent
                and l.other_id = o.memory_id
                and l.link = 'supersedes'
                and (moment is null or l.created_at <= moment)
            union all
            select s.memory_id
            from memory.sources as s
            join heart.facts as f on f.agent_id = scoped_agent and f.memory_id = s.memory_id
            where s.agent_id = scoped_agent and s.source_id = o.memory_id
            union all
            select l.other_id
            from memory.links as l
            where
                l.agent_id = scoped_agent
                and l.memory_id = o.memory_id
                and l.link = 'corroborates'
                and (moment is null or l.created_at <= moment)
        ) as n
    )
    select n.memory_id
    from later as n
    union
    select v.memory_id
    from later as n
    join heart.facts as f on f.agent_id = scoped_agent and f.memory_id = n.memory_id and f.single_valued
    join heart.facts as v on v.agent_id = scoped_agent and v.subject_key = f.subject_key and v.attribute = f.attribute;
end
$$;

comment on column heart.facts.valid_from is
'When it became true in the world; when Newton learned it is memories.created_at.';
comment on column heart.facts.reconfirmed_at is
'The latest time for which a trusted source stated it again: somebody who moves back lives there again.';
comment on column heart.facts.subject_key is 'The normalized subject: case and white space are ignored.';
comment on column heart.facts.single_valued is
'The attribute has one value at a time, so a newer fact supersedes this one.';
comment on column heart.facts.source is
'Where it was stated first. Repetitions from the same source are not independent.';
comment on column heart.facts.is_core is 'A person marked it as a core fact.';
comment on column heart.facts.is_retracted is 'Somebody said that it was never true.';
comment on column heart.facts.is_compared is 'Deduplication has compared it with the known facts of its subject.';
comment on column heart.facts.duplicate_of is 'The fact that this one restates in other words.';
comment on column heart.facts.is_generalization is 'It summarizes its source facts in one statement.';
comment on column heart.facts.is_current is
'It is current knowledge. Derived from the state, and stored here so that an exclusion constraint can allow one value only.';
comment on column heart.facts.is_contested is
'It contradicts another current fact that it may not supersede, until a person settles the conflict. Derived from the links.';

call runtime.isolate('heart.facts');
grant select, insert on heart.facts to newton_app;
grant update (
    subject, subject_key, is_core, is_retracted, is_compared, duplicate_of, reconfirmed_at, is_current, is_contested
)
on heart.facts to newton_app;

-- Attributes that a person declared as single-valued or multi-valued. All others follow the shipped list.
create table heart.attributes (
    agent_id uuid not null references runtime.agents (agent_id),
    attribute text not null check (attribute <> ''),
    single_valued boolean not null,
    primary key (agent_id, attribute)
);

call runtime.isolate('heart.attributes');
grant select, insert on heart.attributes to newton_app;
grant update (single_valued) on heart.attributes to newton_app;

create table heart.episodes (
    agent_id uuid not null,
    memory_id uuid not null,
    session_id uuid,
    first_position integer,
    last_position integer,
    title text not null check (title <> ''),
    started_at timestamptz not null,
    ended_at timestamptz not null check (ended_at >= started_at),
    participants text[] not null,
    extracted_at timestamptz,
    parsed_at timestamptz,
    primary key (agent_id, memory_id),
    foreign key (agent_id, memory_id) references memory.memories (agent_id, memory_id),
    foreign key (agent_id, session_id) references dialogue.sessions (agent_id, session_id),
    unique (agent_id, session_id, first_position),
    check (
        (session_id is null and first_position is null and last_position is null)
        or (session_id is not null and first_position >= 0 and last_position >= first_position)
    )
);

create index episodes_covered_idx on heart.episodes (agent_id, session_id, last_position);

comment on column heart.episodes.first_position is
'An episode made from a session covers this range of messages; ranges do not overlap.';

comment on column heart.episodes.extracted_at is 'When facts were extracted from its messages; null until then.';
comment on column heart.episodes.parsed_at is 'When the statement parser read it because the model failed; null if it did not.';

call runtime.isolate('heart.episodes');
grant select, insert on heart.episodes to newton_app;
grant update (extracted_at, parsed_at, title) on heart.episodes to newton_app;

-- How something is done. A changed procedure is a new memory that supersedes the old one, so usage statistics belong to
-- one text.
create table heart.procedures (
    agent_id uuid not null,
    memory_id uuid not null,
    name text not null check (name <> ''),
    version integer not null check (version > 0),
    description text not null check (description <> ''),
    domain text not null check (domain <> ''),
    triggers text[] not null,
    frames text[] not null,
    tools text[] not null,
    goals text[] not null,
    steps text[] not null check (cardinality(steps) > 0),
    details text not null,
    is_retired boolean not null,
    primary key (agent_id, memory_id),
    unique (agent_id, name, version),
    foreign key (agent_id, memory_id) references memory.memories (agent_id, memory_id)
);

comment on column heart.procedures.goals is 'What the procedure is good for.';
comment on column heart.procedures.steps is 'The only part that enters a context.';
comment on column heart.procedures.details is 'How it was done before; not shown in contexts.';

comment on column heart.procedures.is_retired is 'A newer version replaced it, or a person retired it.';

call runtime.isolate('heart.procedures');
grant select, insert on heart.procedures to newton_app;
grant update (is_retired) on heart.procedures to newton_app;

-- Actions that are forbidden or need a warning.
create table heart.censors (
    agent_id uuid not null,
    memory_id uuid not null,
    match_mode text not null check (match_mode in ('phrase', 'pattern', 'meaning')),
    trigger text not null check (trigger <> ''),
    action text not null check (action in ('warn', 'block')),
    reason text not null check (reason <> ''),
    domain text check (domain <> ''),
    threshold integer not null check (threshold > 0),
    is_retired boolean not null,
    relaxed_at timestamptz,
    primary key (agent_id, memory_id),
    foreign key (agent_id, memory_id) references memory.memories (agent_id, memory_id)
);

comment on column heart.censors.relaxed_at is
'When a person last made it a warning again. Earlier activations do not count towards the threshold.';
comment on column heart.censors.match_mode is
'How the trigger is matched: as a phrase, as a regular expression (pattern) or by meaning.';
comment on column heart.censors.threshold is 'Number of justified activations after which a warning becomes a block.';
comment on column heart.censors.is_retired is 'A person disabled it.';

call runtime.isolate('heart.censors');
grant select, insert on heart.censors to newton_app;
grant update (is_retired, relaxed_at) on heart.censors to newton_app;

-- Each use of a procedure or match of a censor, with its result.
create table heart.activations (
    agent_id uuid not null,
    memory_id uuid not null,
    activation_id uuid not null,
    activated_at timestamptz not null,
    stage text not null check (stage <> ''),
    result text check (result in ('success', 'failure', 'neutral', 'false_positive')),
    evaluated_at timestamptz,
    primary key (agent_id, memory_id, activation_id),
    foreign key (agent_id, memory_id) references memory.memories (agent_id, memory_id),
    check ((result is null) = (evaluated_at is null))
);

comment on column heart.activations.stage is 'Where it happened: input, action, output, or a name given by the caller.';

call runtime.isolate('heart.activations');
grant select, insert on heart.activations to newton_app;
grant update (result, evaluated_at) on heart.activations to newton_app;

-- People, organisations and things, found by name.
create table heart.entities (
    agent_id uuid not null,
    memory_id uuid not null,
    name text not null check (name <> ''),
    key text not null check (key <> ''),
    type text not null check (type <> ''),
    aliases text[] not null,
    properties jsonb not null,
    mentions integer not null check (mentions >= 0),
    mentioned_at timestamptz not null,
    primary key (agent_id, memory_id),
    unique (agent_id, key),
    foreign key (agent_id, memory_id) references memory.memories (agent_id, memory_id)
);

comment on column heart.entities.key is 'The normalized name.';

call runtime.isolate('heart.entities');
grant select, insert on heart.entities to newton_app;
grant update (type, aliases, properties, mentions, mentioned_at) on heart.entities to newton_app;

-- The memories that mention an entity.
create table heart.mentions (
    agent_id uuid not null,
    entity_id uuid not null,
    memory_id uuid not null,
    primary key (agent_id, entity_id, memory_id),
    foreign key (agent_id, entity_id) references heart.entities (agent_id, memory_id),
    foreign key (agent_id, memory_id) references memory.memories (agent_id, memory_id)
);

create index mentions_memory_idx on heart.mentions (agent_id, memory_id);

call runtime.isolate('heart.mentions');
grant select, insert on heart.mentions to newton_app;

-- Progress of jobs that process memories in id order. A job starts slightly before the watermark, because ids are not
-- committed in order.
create table heart.watermarks (
    agent_id uuid not null references runtime.agents (agent_id),
    job text not null check (job <> ''),
    memory_id uuid not null,
    primary key (agent_id, job)
);

call runtime.isolate('heart.watermarks');
grant select, insert on heart.watermarks to newton_app;
grant update (memory_id) on heart.watermarks to newton_app;

-- Relations between entities. Their evidence are the memories linked to them.
create table heart.relations (
    agent_id uuid not null,
    memory_id uuid not null,
    source_id uuid not null,
    type text not null check (type <> ''),
    target_id uuid not null,
    weight double precision not null check (weight between 0 and 1),
    primary key (agent_id, memory_id),
    unique (agent_id, source_id, type, target_id),
    foreign key (agent_id, memory_id) references memory.memories (agent_id, memory_id),
    foreign key (agent_id, source_id) references heart.entities (agent_id, memory_id),
    foreign key (agent_id, target_id) references heart.entities (agent_id, memory_id)
);

create index relations_target_idx on heart.relations (agent_id, target_id);

call runtime.isolate('heart.relations');
grant select, insert on heart.relations to newton_app;
grant update (weight) on heart.relations to newton_app;

-- Events: a file read or written, a command run, an error, or a type named by the caller.
create table heart.events (
    agent_id uuid not null,
    memory_id uuid not null,
    session_id uuid,
    type text not null check (type <> ''),
    payload jsonb not null,
    position integer check (position >= 0),
    primary key (agent_id, memory_id),
    foreign key (agent_id, memory_id) references memory.memories (agent_id, memory_id),
    foreign key (agent_id, session_id) references dialogue.sessions (agent_id, session_id),
    check (position is null or session_id is not null)
);

comment on column heart.events.position is
'The message of the session from which the event was made; null for an event that a program sent.';

call runtime.isolate('heart.events');
grant select, insert on heart.events to newton_app;

create index events_session_idx on heart.events (agent_id, session_id, memory_id) where session_id is not null;

-- Ingested documents, each split into passages.
create table heart.documents (
    agent_id uuid not null references runtime.agents (agent_id),
    document_id uuid not null,
    ref text not null check (ref <> ''),
    title text not null check (title <> ''),
    format text not null check (format <> ''),
    content_hash bytea not null check (length(content_hash) = 32),
    source_hash bytea check (length(source_hash) = 32),
    passage_count integer not null check (passage_count >= 0),
    dated_at timestamptz,
    ingested_at timestamptz not null,
    primary key (agent_id, document_id),
    unique (agent_id, ref)
);

comment on column heart.documents.ref is 'The path, or the name given by the caller.';
comment on column heart.documents.content_hash is
'Hash of the passages: ingesting the same document again changes nothing.';

comment on column heart.documents.source_hash is
'Hash of the file and of how it was read: the same file is not read again. Null if the document is no file.';
comment on column heart.documents.passage_count is 'The number of passages of the last ingestion.';
comment on column heart.documents.dated_at is 'When the document was written or last changed, if that is known.';

call runtime.isolate('heart.documents');
grant select, insert on heart.documents to newton_app;
grant update (title, format, content_hash, source_hash, passage_count, dated_at, ingested_at) on heart.documents
to newton_app;

create table heart.passages (
    agent_id uuid not null,
    memory_id uuid not null,
    document_id uuid not null,
    position integer not null check (position >= 0),
    heading text not null,
    location text not null,
    primary key (agent_id, memory_id),
    foreign key (agent_id, memory_id) references memory.memories (agent_id, memory_id),
    foreign key (agent_id, document_id) references heart.documents (agent_id, document_id)
);

comment on column heart.passages.location is
'The position in the document, such as "page 3" or "lines 10-42"; empty if it is unknown.';

create index passages_document_idx on heart.passages (agent_id, document_id, position);

call runtime.isolate('heart.passages');
grant select, insert on heart.passages to newton_app;
grant update (position, location) on heart.passages to newton_app;

-- Items: JSON values of programs, each with a namespace and a key.
create table heart.items (
    agent_id uuid not null references runtime.agents (agent_id),
    item_id uuid not null,
    namespace text[] collate "C" not null check (cardinality(namespace) between 1 and 10),
    key text collate "C" not null check (key <> ''),
    value jsonb not null check (jsonb_typeof(value) = 'object'),
    memory_id uuid,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    primary key (agent_id, item_id),
    unique (agent_id, namespace, key),
    foreign key (agent_id, memory_id) references memory.memories (agent_id, memory_id)
);

create index items_memory_idx on heart.items (agent_id, memory_id) where memory_id is not null;

comment on column heart.items.memory_id is
'The memory of its text, with thread_id = item_id; null if the item is not indexed. Forgetting the memory deletes the item.';

-- Returns true if a JSON value meets all conditions of a filter, a JSON array of {path, test, operand}. A missing value is
-- null. Only two numbers or two strings are greater or less than each other.
create function heart.meets_conditions(value jsonb, conditions jsonb) returns boolean
language sql
immutable
parallel safe
return not exists (
    select
    from jsonb_to_recordset(conditions) as c (path text[], test text, operand jsonb)
    cross join lateral (
        select coalesce(value #> c.path, 'null') as found, coalesce(c.operand, 'null') as wanted
    ) as v
    where not case c.test
        when 'equal' then v.found = v.wanted
        when 'unequal' then v.found <> v.wanted
        when 'type' then jsonb_typeof(v.found) = v.wanted #>> '{}'
        when 'length' then case when jsonb_typeof(v.found) = 'array' then jsonb_array_length(v.found) = v.wanted::integer else false end
        else
            jsonb_typeof(v.found) = jsonb_typeof(v.wanted)
            and jsonb_typeof(v.found) in ('number', 'string')
            and case c.test
                when 'greater' then v.found > v.wanted
                when 'greater_or_equal' then v.found >= v.wanted
                when 'less' then v.found < v.wanted
                when 'less_or_equal' then v.found <= v.wanted
                else false
            end
    end
);

call runtime.isolate('heart.items');
grant select, insert, delete on heart.items to newton_app;
grant update (value, memory_id, updated_at) on heart.items to newton_app;

-- The identity: what the agent is and what always applies, in append-only versions. People change it; agents only
-- propose.
create table heart.tenets (
    agent_id uuid not null references runtime.agents (agent_id),
    tenet_id uuid not null,
    section text not null check (section in ('boundary', 'instruction', 'protocol', 'value', 'preference', 'character')),
    text text check (text <> '' and text !~ '[\n\r]'),
    tokens integer check (tokens > 0),
    created_at timestamptz not null,
    origin text not null check (origin <> ''),
    trust text not null check (trust in ('operator', 'user', 'agent')),
    session_id uuid,
    position integer,
    primary key (agent_id, tenet_id),
    foreign key (agent_id, session_id, position) references dialogue.messages (agent_id, session_id, position),
    check ((text is null) = (tokens is null)),
    check ((session_id is null) = (position is null))
);

comment on table heart.tenets is
'Every line that was ever part of the identity or proposed for it. Text from tools and the web is never accepted here.';
comment on column heart.tenets.text is 'Null after erasure.';
comment on column heart.tenets.tokens is 'Tokens of the line as shown in a context, counted when it was written.';
comment on column heart.tenets.position is 'The message in which it was requested, if any.';

call runtime.isolate('heart.tenets');
grant select, insert on heart.tenets to newton_app;

create table heart.identity_versions (
    agent_id uuid not null references runtime.agents (agent_id),
    version integer not null check (version >= 1),
    created_at timestamptz not null,
    origin text not null check (origin <> ''),
    trust text not null check (trust in ('operator', 'user')),
    change text not null check (change in ('added', 'changed', 'removed', 'accepted', 'rolled back', 'erased')),
    tenet_id uuid,
    restored_version integer check (restored_version between 1 and version - 1),
    reason text check (reason <> ''),
    active_tenets uuid[] not null,
    primary key (agent_id, version),
    foreign key (agent_id, tenet_id) references heart.tenets (agent_id, tenet_id),
    foreign key (agent_id, restored_version) references heart.identity_versions (agent_id, version),
    check ((change = 'rolled back') = (restored_version is not null)),
    check ((change = 'rolled back') = (tenet_id is null))
);

comment on table heart.identity_versions is
'Each change is a version and the last one applies. A roll-back is a version too.';
comment on column heart.identity_versions.tenet_id is
'The tenet that was added, changed to, removed, accepted or erased.';
comment on column heart.identity_versions.active_tenets is 'The tenets of this version, in order.';

call runtime.isolate('heart.identity_versions');
grant select, insert on heart.identity_versions to newton_app;

-- Tenets that wait, or waited, for approval by a person.
create table heart.proposals (
    agent_id uuid not null,
    tenet_id uuid not null,
    state text not null check (state in ('PROPOSED', 'ACCEPTED', 'REJECTED')),
    normalized_hash bytea check (length(normalized_hash) = 32),
    primary key (agent_id, tenet_id),
    foreign key (agent_id, tenet_id) references heart.tenets (agent_id, tenet_id),
    check ((state = 'PROPOSED') = (normalized_hash is not null))
);

create unique index proposals_pending_key on heart.proposals (agent_id, normalized_hash) where state = 'PROPOSED';

comment on column heart.proposals.normalized_hash is
'Hash of the text without case and punctuation while the proposal is pending, so that the same tenet is not proposed twice.';

call runtime.isolate('heart.proposals');
grant select, insert on heart.proposals to newton_app;
grant update (state, normalized_hash) on heart.proposals to newton_app;

-- The words that may refer to an entity: its names, and its first and last name alone. Inputs are looked up here, so a
-- context only reads the entities that it may mention.
create table heart.entity_names (
    agent_id uuid not null,
    spelling text not null check (spelling <> ''),
    entity_id uuid not null,
    primary key (agent_id, spelling, entity_id),
    foreign key (agent_id, entity_id) references heart.entities (agent_id, memory_id)
);

create index entity_names_entity_idx on heart.entity_names (agent_id, entity_id);

call runtime.isolate('heart.entity_names');
grant select, insert on heart.entity_names to newton_app;

-- Returns true if a relation was current at a moment: a person had stated it, or a fact that is evidence for it was
-- current. Row level security applies to the caller.
create function heart.is_relation_current(target_agent uuid, relation_id uuid, moment timestamptz) returns boolean
language sql
stable
set search_path = pg_catalog
as $$
    select exists (
        select
        from memory.confirmations as c
        where c.agent_id = target_agent and c.memory_id = relation_id and c.confirmed_at <= moment
    )
    or exists (
        select
        from memory.links as l
        join memory.memories as f on f.agent_id = target_agent and f.memory_id = l.memory_id
        where
            l.agent_id = target_agent
            and l.other_id = relation_id
            and l.link = 'evidence'
            and l.created_at <= moment
            and not memory.is_obsolete(
                f.kind,
                coalesce(
                    (
                        select t.from_state
                        from memory.transitions as t
                        where t.agent_id = target_agent and t.memory_id = f.memory_id and t.changed_at > moment
                        order by t.changed_at, t.transition_id
                        limit 1
                    ),
                    f.state
                )
            )
    )
$$;

-- The text that is embedded for each memory.
create view memory.embedding_texts with (security_invoker = true) as
select
    m.agent_id,
    m.memory_id,
    m.kind,
    regexp_replace(
        case m.kind
            when 'exchange' then coalesce(d.name, initcap(d.role)) || ': ' || d.content
            when 'episode' then e.title || ': ' || coalesce(m.full_text, m.summary)
            when 'censor' then c.trigger
            else coalesce(m.full_text, m.summary)
        end,
        '\s+', ' ', 'g'
    ) as text
from memory.memories as m
left join dialogue.messages as d
    on d.agent_id = m.agent_id and m.kind = 'exchange' and d.session_id = m.thread_id and d.position = m.position
left join heart.episodes as e on e.agent_id = m.agent_id and e.memory_id = m.memory_id
left join heart.censors as c on c.agent_id = m.agent_id and c.memory_id = m.memory_id;

grant select on memory.embedding_texts to newton_app;

