-- Returns true if a memory of this kind in this state is not current knowledge. An archived episode still is: it only
-- lost its details. The function is inlined into the calling query, so partial indexes on the same expression are used.
create function memory.is_obsolete(kind text, state text) returns boolean
language sql
immutable
parallel safe
return state in ('SUPERSEDED', 'INACTIVE', 'RETIRED') or (state = 'ARCHIVED' and kind <> 'episode');

-- Returns true if a list that shows `states` shows the memory. A state is the name of one, or a group: `current` knowledge,
-- `past` knowledge, `quarantined` memories, or `all`. A quarantined memory is in no other group than `all`.
create function memory.has_listed_state(kind text, state text, quarantined boolean, states text[]) returns boolean
language sql
immutable
parallel safe
return 'all' = any(states)
or case
    when memory.is_obsolete(kind, state) then 'past' = any(states) or state = any(states)
    when quarantined then 'quarantined' = any(states)
    else 'current' = any(states) or state = any(states)
end;

-- The importance in [0, 1]: set by a person, or derived from the record. newton/memory/importance.py has the same formula.
create function memory.effective_importance(importance double precision, kind text, state text, outcome text, uses integer)
returns double precision
language sql
immutable
parallel safe
return coalesce(
    importance,
    least(
        0.1
        + case kind when 'decision' then 0.2 when 'episode' then 0.1 else 0 end
        + case state when 'CONFIRMED' then 0.1 when 'CORE' then 0.4 when 'EFFECTIVE' then 0.2 when 'ESCALATED' then 0.3 else 0 end
        + case outcome when 'failure' then 0.2 when 'success' then 0.1 when 'partial' then 0.1 else 0 end
        + least(0.1 * log(1 + uses), 0.2),
        1.0
    )
);

-- The columns that every kind of memory has. Each kind adds its own table with the same memory_id.
create table memory.memories (
    agent_id uuid not null references runtime.agents (agent_id),
    memory_id uuid not null,
    kind text not null,
    state text not null,
    micro text not null check (micro <> '' and micro !~ '[\n\r]'),
    summary text not null check (summary <> '' and summary !~ '[\n\r]'),
    full_text text,
    micro_tokens integer not null check (micro_tokens > 0),
    summary_tokens integer not null check (summary_tokens > 0),
    word_count integer not null check (word_count >= 0),
    prefix_length integer not null default 0 check (prefix_length >= 0),
    full_tokens integer check (full_tokens > 0),
    confidence double precision check (confidence between 0 and 1),
    importance double precision check (importance between 0 and 1),
    outcome text check (outcome in ('success', 'partial', 'failure', 'pending')),
    confirmations integer not null default 0 check (confirmations >= 0),
    uses integer not null default 0 check (uses >= 0),
    occurred_at timestamptz not null,
    created_at timestamptz not null,
    accessed_at timestamptz,
    confirmed_at timestamptz,
    origin text not null check (origin <> ''),
    trust text not null check (trust in ('operator', 'user', 'agent', 'tool', 'web')),
    ref text check (ref <> ''),
    thread_id uuid,
    position integer check (position >= 0),
    quarantined boolean not null,
    content_hash bytea not null check (length(content_hash) = 32),
    language text not null default 'en',
    primary key (agent_id, memory_id),
    unique (agent_id, kind, content_hash),
    unique (agent_id, kind, thread_id, position),
    check ((thread_id is null) = (position is null)),
    constraint memories_state_check check (
        (kind = 'exchange' and state = 'ACTIVE')
        or (kind = 'episode' and state in ('ACTIVE', 'SUMMARIZED', 'ARCHIVED'))
        or (kind = 'fact' and state in ('NEW', 'CONFIRMED', 'CORE', 'SUPERSEDED', 'INACTIVE'))
        or (kind = 'procedure' and state in ('ACTIVE', 'EFFECTIVE', 'INEFFECTIVE', 'RETIRED', 'ARCHIVED'))
        or (kind = 'censor' and state in ('CREATED', 'ACTIVE', 'ESCALATED', 'RETIRED'))
        or (kind in ('event', 'entity', 'relation') and state in ('ACTIVE', 'ARCHIVED'))
        or (kind = 'passage' and state in ('ACTIVE', 'SUPERSEDED', 'ARCHIVED'))
        or (kind = 'decision' and state in ('RECORDED', 'PENDING', 'REVIEWED'))
        or (kind in ('artifact', 'item') and state in ('ACTIVE', 'SUPERSEDED'))
    )
);

comment on column memory.memories.micro is
'One line of about 20 tokens, generated when the memory is written; for a decision, again when its outcome is recorded.';
comment on column memory.memories.summary is 'One line of at most about 100 tokens, for a fact 400, generated with micro.';
comment on column memory.memories.full_text is
'The complete text; null if the kind stores it elsewhere (an exchange: in its message).';
comment on column memory.memories.thread_id is
'The sequence that the memory is part of, with its position in it: for an exchange, its session; for an item, its texts.';
comment on column memory.memories.micro_tokens is
'Tokens of the line as rendered in a context, including bullet and line end.';
comment on column memory.memories.word_count is
'Number of indexed words, with repetitions: the document length of BM25.';
comment on column memory.memories.prefix_length is
'Characters of the label or date with which micro, summary and the windows of a long text begin.';
comment on column memory.memories.full_tokens is
'Tokens of the whole text as one line of a context; null unless it has windows.';
comment on column memory.memories.origin is
'The entry point it came through (chat, cli, import, …). Set by code, immutable.';
comment on column memory.memories.importance is
'Set by a person; null if the importance is computed from the memory''s record.';
comment on column memory.memories.trust is
'Trust level of the author; for a derived memory the lowest of its sources. Immutable.';
comment on column memory.memories.quarantined is 'Written by a tool or the web and not corroborated yet.';
comment on column memory.memories.language is
'ISO 639-1 code of the language in which its words are indexed; en unless another language was detected.';
comment on column memory.memories.ref is 'The caller''s id: unique per kind; for an exchange, unique in its session.';

create unique index memories_ref_key on memory.memories (agent_id, kind, ref, thread_id)
nulls not distinct
where ref is not null;
-- Artifacts repeat what other memories say, so they do not count in the document frequencies of BM25.
create index memories_corpus_idx on memory.memories (agent_id) include (word_count) where word_count > 0 and kind <> 'artifact';
create index memories_hidden_idx on memory.memories (agent_id, memory_id) include (quarantined, state, kind)
where quarantined or memory.is_obsolete(kind, state);
create index memories_kind_idx on memory.memories (agent_id, kind, memory_id);

-- Returns the words of a text as the search index has them. `words` are the text search configuration, the text, and its names
-- in a language other than English, which are stemmed as in English too. Accents are removed from the stems, since they are
-- often left out.
create function memory.search_words(words text[]) returns tsvector
language sql
stable
parallel safe
return case
    when words[1] = 'english' and words[2] !~ '[À-ſЀ-ӿ]' then to_tsvector('pg_catalog.english', words[2])
    else replace(
        translate(
            (
                to_tsvector(words[1]::regconfig, words[2])
                || ts_delete(
                    to_tsvector('pg_catalog.english', words[3]),
                    tsvector_to_array(to_tsvector(words[1]::regconfig, words[2]))
                )
            )::text,
            'àáâãäåçèéêëìíîïñòóôõöøùúûüýÿāēīōūăąćčďđęěğłńňřśšşťůűźżžё',
            'aaaaaaceeeeiiiinoooooouuuuyyaeiouaaccddeeglnnrssstuuzzzе'
        ),
        'œ', 'oe'
    )::tsvector
end;

call runtime.isolate('memory.memories');
grant select, insert on memory.memories to newton_app;
-- Origin, trust, kind and hash are not in this list, so the application cannot change them.
grant update (
    state, quarantined, confirmations, confirmed_at, accessed_at, uses, importance, outcome, confidence, full_text,
    micro, summary, micro_tokens, summary_tokens
)
on memory.memories to newton_app;

-- Decisions that are recorded but not carried out yet.
create index memories_open_decisions_idx on memory.memories (agent_id, occurred_at desc)
where kind = 'decision' and state = 'RECORDED';

-- Searches by time range, and lists by time: a page reads as many entries of each kind as it has rows. The other columns are
-- the filters of a list, which therefore reads no other row.
create index memories_occurred_idx on memory.memories (agent_id, kind, occurred_at, memory_id)
include (state, quarantined, origin, trust, created_at);
create index memories_created_idx on memory.memories (agent_id, kind, created_at, memory_id)
include (state, quarantined, origin, trust, occurred_at);

-- Returns true if a memory matches the conditions of a list; null for `origins` or `trusts` permits all of them, and a range of
-- times excludes its end. The planner inlines it, so that a range still limits what it reads of an index.
create function memory.matches_filter(
    kind text,
    state text,
    quarantined boolean,
    origin text,
    trust text,
    occurred_at timestamptz,
    created_at timestamptz,
    states text[],
    origins text[],
    trusts text[],
    since timestamptz,
    until timestamptz,
    created_since timestamptz,
    created_until timestamptz
)
returns boolean
language sql
immutable
parallel safe
return memory.has_listed_state(kind, state, quarantined, states)
and (origins is null or origin = any(origins))
and (trusts is null or trust = any(trusts))
and occurred_at >= since and occurred_at < until
and created_at >= created_since and created_at < created_until;

-- Returns the number by which a list sorts a memory; 0 for one without it, such as one that was never accessed.
create function memory.sort_key(
    kind text,
    state text,
    outcome text,
    importance double precision,
    uses integer,
    created_at timestamptz,
    occurred_at timestamptz,
    accessed_at timestamptz,
    confirmed_at timestamptz,
    sort text
)
returns numeric
language sql
stable
parallel safe
return case sort
    when 'created' then extract(epoch from created_at)
    when 'occurred' then extract(epoch from occurred_at)
    when 'accessed' then coalesce(extract(epoch from accessed_at), 0)
    when 'confirmed' then coalesce(extract(epoch from confirmed_at), 0)
    when 'uses' then uses
    when 'importance'
        then round(memory.effective_importance(importance, kind, state, outcome, uses)::numeric, 6)
end;

-- The memories that a derived memory was made from. Its trust is never higher than theirs.
create table memory.sources (
    agent_id uuid not null,
    memory_id uuid not null,
    source_id uuid not null,
    primary key (agent_id, memory_id, source_id),
    foreign key (agent_id, memory_id) references memory.memories (agent_id, memory_id),
    foreign key (agent_id, source_id) references memory.memories (agent_id, memory_id)
);

create index sources_source_idx on memory.sources (agent_id, source_id);

call runtime.isolate('memory.sources');

-- Returns true if the only source of a memory is a message of the session from the position `first` on, except at the
-- positions `excluded`.
create function memory.is_stated_only_in(
    agent_id uuid, memory_id uuid, session_id uuid, first integer, excluded integer[]
) returns boolean
language sql
stable
parallel safe
begin atomic
    select exists (
        select
        from memory.sources as s
        join memory.memories as x on x.agent_id = is_stated_only_in.agent_id and x.memory_id = s.source_id
        where s.agent_id = is_stated_only_in.agent_id and s.memory_id = is_stated_only_in.memory_id
        having
            count(*) = 1
            and bool_and(
                x.kind = 'exchange'
                and x.thread_id = is_stated_only_in.session_id
                and x.position >= is_stated_only_in.first
                and x.position <> all(is_stated_only_in.excluded)
            )
    );
end;
grant select, insert on memory.sources to newton_app;

-- Each repetition of a memory, with its author and ref, so that one statement never counts twice.
create table memory.confirmations (
    agent_id uuid not null,
    memory_id uuid not null,
    ref text not null check (ref <> ''),
    confirmed_at timestamptz not null,
    origin text not null check (origin <> ''),
    trust text not null check (trust in ('operator', 'user', 'agent', 'tool', 'web')),
    source text not null check (source <> ''),
    primary key (agent_id, memory_id, ref),
    foreign key (agent_id, memory_id) references memory.memories (agent_id, memory_id)
);

comment on column memory.confirmations.source is
'Where it was said, for example a session, or an entry point on one day. Repetitions from the same source are not independent.';

create index confirmations_ref_idx on memory.confirmations (agent_id, ref);

call runtime.isolate('memory.confirmations');
grant select, insert on memory.confirmations to newton_app;

-- Relations between memories. Insert only.
create table memory.links (
    agent_id uuid not null,
    memory_id uuid not null,
    link text not null check (
        link in (
            'supersedes', 'was_wrong', 'corroborates', 'near', 'evidence', 'part_of', 'depends_on', 'relates', 'contradicts',
            'compatible', 'undecided'
        )
    ),
    other_id uuid not null check (other_id <> memory_id),
    created_at timestamptz not null,
    primary key (agent_id, memory_id, link, other_id),
    foreign key (agent_id, memory_id) references memory.memories (agent_id, memory_id),
    foreign key (agent_id, other_id) references memory.memories (agent_id, memory_id)
);

create index links_other_idx on memory.links (agent_id, other_id, link);
-- Read for every context.
create index links_contradictions_idx on memory.links (agent_id) include (memory_id, other_id) where link = 'contradicts';

comment on column memory.links.link is
'memory_id supersedes other_id, says that it was wrong (was_wrong), corroborates it, is similar to it but undecided
(near), is evidence for it, or was created in it (part_of); contradicts it, and both may hold (compatible) or a model could
not decide (undecided); between decisions also: depends_on, relates.';

call runtime.isolate('memory.links');
grant select, insert on memory.links to newton_app;

-- Every state change with its reason. The state at a past moment is the from_state of the first transition after it.
create table memory.transitions (
    agent_id uuid not null,
    memory_id uuid not null,
    transition_id uuid not null,
    changed_at timestamptz not null,
    event text not null check (event <> ''),
    from_state text not null check (from_state <> ''),
    to_state text not null check (to_state <> ''),
    reason text not null check (reason <> ''),
    origin text not null check (origin <> ''),
    primary key (agent_id, memory_id, transition_id),
    foreign key (agent_id, memory_id) references memory.memories (agent_id, memory_id)
);

call runtime.isolate('memory.transitions');
grant select, insert on memory.transitions to newton_app;

-- Every change that a person made to a field of a memory, with its author.
create table memory.edits (
    agent_id uuid not null,
    memory_id uuid not null,
    edit_id uuid not null,
    edited_at timestamptz not null,
    field text not null check (field in ('importance', 'core', 'subject')),
    old_value text,
    new_value text,
    origin text not null check (origin <> ''),
    author text not null check (author <> ''),
    primary key (agent_id, memory_id, edit_id),
    foreign key (agent_id, memory_id) references memory.memories (agent_id, memory_id)
);

comment on column memory.edits.author is
'Who changed it, as the interface knows it: the name of a token, the operator, or the trust of the caller.';

call runtime.isolate('memory.edits');
grant select, insert on memory.edits to newton_app;

-- Full texts that are rarely read, compressed without loss.
create table memory.archived_texts (
    agent_id uuid not null,
    memory_id uuid not null,
    compressed bytea not null,
    primary key (agent_id, memory_id),
    foreign key (agent_id, memory_id) references memory.memories (agent_id, memory_id)
);

comment on column memory.archived_texts.compressed is 'zlib of the UTF-8 text.';

call runtime.isolate('memory.archived_texts');
grant select, insert on memory.archived_texts to newton_app;

-- Earlier versions of the short texts of a memory, so that stored contexts can be replayed and past ones rebuilt. The
-- version at a past moment is the first one replaced after it. Erasing a memory's text deletes its versions too.
create table memory.memory_versions (
    agent_id uuid not null,
    memory_id uuid not null,
    version_id uuid not null,
    replaced_at timestamptz not null,
    micro text not null,
    summary text not null,
    micro_tokens integer not null,
    summary_tokens integer not null,
    outcome text,
    primary key (agent_id, memory_id, version_id),
    foreign key (agent_id, memory_id) references memory.memories (agent_id, memory_id)
);

comment on column memory.memory_versions.outcome is
'The outcome at the time of this version; it changes together with the short texts.';

call runtime.isolate('memory.memory_versions');
grant select, insert on memory.memory_versions to newton_app;

-- Inverted index, agent first: exact BM25 from one range scan, under row level security.
create table memory.postings (
    agent_id uuid not null,
    lexeme text not null,
    memory_id uuid not null,
    kind text not null,
    tf integer not null check (tf > 0),
    word_count integer not null check (word_count > 0),
    primary key (agent_id, lexeme, memory_id) include (kind, tf, word_count)
);

comment on table memory.postings is
'Written by the statement that writes the memory. There is no foreign key, because it would cost two thirds of the insert time.';

call runtime.isolate('memory.postings');
grant select, insert on memory.postings to newton_app;

-- Embedding models. Shared by all agents.
create table memory.models (
    model_id uuid primary key,
    identity text not null check (identity <> ''),
    dimensions integer not null check (dimensions between 1 and 1300)
);

comment on column memory.models.dimensions is 'At most 1,300: a longer vector does not fit into the covering index.';

-- A distributed database has a copy of this table on each node, and asks for the right to update before it writes to all
-- of them. No policy permits an update.
alter table memory.models enable row level security;
create policy models_select on memory.models for select using (true);
create policy models_insert on memory.models for insert with check (true);
grant select, insert, update on memory.models to newton_app;

-- One vector per memory and model. The primary key includes the vector, so an exact scan of one agent never reads the
-- heap.
create table memory.embeddings (
    agent_id uuid not null,
    model_id uuid not null references memory.models (model_id),
    kind text not null,
    memory_id uuid not null,
    embedding halfvec not null,
    primary key (agent_id, model_id, kind, memory_id) include (embedding),
    foreign key (agent_id, memory_id) references memory.memories (agent_id, memory_id)
);

alter table memory.embeddings alter column embedding set storage plain;

call runtime.isolate('memory.embeddings');
grant select, insert on memory.embeddings to newton_app;

-- Windows: consecutive sentences of a long text. A context shows the window that answers if the whole text does not fit.
create table memory.windows (
    agent_id uuid not null,
    memory_id uuid not null,
    position integer not null check (position >= 0),
    text text not null check (text <> '' and text !~ '[\n\r]'),
    tokens integer not null check (tokens > 0),
    lexemes text[] not null,
    primary key (agent_id, memory_id, position),
    foreign key (agent_id, memory_id) references memory.memories (agent_id, memory_id)
);

comment on column memory.windows.text is 'Without the prefix of the memory; an ellipsis stands for each end that is cut.';
comment on column memory.windows.tokens is
'Tokens of the line as rendered in a context, with prefix, bullet and line end.';
comment on column memory.windows.lexemes is 'The distinct indexed words.';

call runtime.isolate('memory.windows');
grant select, insert on memory.windows to newton_app;

-- One vector per window and model, stored in the transaction that stores the vector of the memory.
create table memory.window_embeddings (
    agent_id uuid not null,
    model_id uuid not null references memory.models (model_id),
    memory_id uuid not null,
    position integer not null,
    embedding halfvec not null,
    primary key (agent_id, model_id, memory_id, position) include (embedding),
    foreign key (agent_id, memory_id, position) references memory.windows (agent_id, memory_id, position)
);

alter table memory.window_embeddings alter column embedding set storage plain;

call runtime.isolate('memory.window_embeddings');
grant select, insert on memory.window_embeddings to newton_app;

-- Transactional outbox: memories that wait for their embedding. The row commits with the memory and is deleted when the
-- vector is stored.
create table memory.outbox (
    agent_id uuid not null,
    memory_id uuid not null,
    text text not null check (text <> ''),
    attempts integer not null default 0,
    error text,
    primary key (agent_id, memory_id),
    foreign key (agent_id, memory_id) references memory.memories (agent_id, memory_id)
);

comment on column memory.outbox.text is 'The text to embed; deleted with the row when the vector is stored.';

call runtime.isolate('memory.outbox');
grant select, insert, delete on memory.outbox to newton_app;
grant update (attempts, error) on memory.outbox to newton_app;

-- Tombstones: what was forgotten, when, why and through which entry point. The texts themselves are deleted.
create table memory.forgotten (
    agent_id uuid not null references runtime.agents (agent_id),
    memory_id uuid not null,
    kind text not null,
    forgotten_at timestamptz not null,
    reason text not null check (reason <> ''),
    origin text not null check (origin <> ''),
    primary key (agent_id, memory_id)
);

call runtime.isolate('memory.forgotten');
grant select, insert on memory.forgotten to newton_app;

-- Shorter versions of long messages, written by a model. The same text is never shortened twice.
create table memory.line_summaries (
    agent_id uuid not null,
    memory_id uuid not null,
    content_hash bytea not null check (length(content_hash) = 32),
    max_tokens integer not null check (max_tokens > 0),
    text text check (text <> '' and text !~ '[\n\r]'),
    created_at timestamptz not null,
    primary key (agent_id, memory_id, max_tokens),
    foreign key (agent_id, memory_id) references memory.memories (agent_id, memory_id)
);

create index line_summaries_content_idx on memory.line_summaries (agent_id, content_hash, max_tokens);

comment on column memory.line_summaries.memory_id is
'The memory that it was generated for. Forgetting the memory deletes the row.';
comment on column memory.line_summaries.max_tokens is 'The token limit that was requested.';
comment on column memory.line_summaries.text is 'Null if the model''s answer was unusable: empty, or not short enough.';

call runtime.isolate('memory.line_summaries');
grant select, insert on memory.line_summaries to newton_app;

-- Times other than its own that a memory refers to: "yesterday", said on 8 May, is 7 May.
create table memory.mentioned_times (
    agent_id uuid not null,
    memory_id uuid not null,
    starts_at timestamptz not null,
    ends_at timestamptz not null,
    primary key (agent_id, starts_at, memory_id, ends_at),
    foreign key (agent_id, memory_id) references memory.memories (agent_id, memory_id),
    check (starts_at < ends_at and ends_at - starts_at <= interval '366 days')
);

comment on table memory.mentioned_times is
'Resolved against the memory''s own time when it is written. No range is longer than a year, so a range query has a lower bound.';

create index mentioned_times_memory_idx on memory.mentioned_times (agent_id, memory_id);

call runtime.isolate('memory.mentioned_times');
grant select, insert on memory.mentioned_times to newton_app;

-- Memories in which the person states an instruction or a preference for later requests.
create table memory.standing_statements (
    agent_id uuid not null,
    memory_id uuid not null,
    standing text not null check (standing in ('manner', 'instruction', 'preference')),
    primary key (agent_id, memory_id),
    foreign key (agent_id, memory_id) references memory.memories (agent_id, memory_id)
);

comment on table memory.standing_statements is
'Found when the memory is written or embedded; a manner is on the form of every answer. Considered for every request, because a request seldom has words of them.';

call runtime.isolate('memory.standing_statements');
grant select, insert on memory.standing_statements to newton_app;

-- The embedding model that searches use for each agent. A new model is filled beside it before the switch.
create table memory.active_models (
    agent_id uuid primary key references runtime.agents (agent_id),
    model_id uuid not null references memory.models (model_id),
    activated_at timestamptz not null
);

call runtime.isolate('memory.active_models');
grant select, insert, update (model_id, activated_at) on memory.active_models to newton_app;

