-- name: search_vectors(agent_id, model_id, embedding, kinds, limits, quarantined, past_states, excluded_ids, superseded_ids, moment, max_superseded, shown_ids)
-- The nearest of each kind. The scan is exact and reads the agent's vectors once, from the covering index. Hidden
-- memories are excluded before the limit, so they displace nothing; quarantined ones are hidden unless of a given kind or among `shown_ids`. The nearest superseded facts stand for the current
-- facts that took their place, so a memory may be returned twice.
with past as materialized (
    select
        memory_id,
        kind = 'fact' and state = 'SUPERSEDED' and not quarantined and memory_id <> all($8::uuid[]) as is_superseded
    from memory.memories
    where
        agent_id = $1
        and (quarantined or memory.is_obsolete(kind, state))
        and (
            (quarantined and kind <> all($6::text[]) and memory_id not in (select unnest($12::uuid[])))
            or (state = any($7::text[]) and (state <> 'ARCHIVED' or kind <> 'episode'))
        )
    union all
    select memory_id, true
    from unnest($9::uuid[]) as s (memory_id)
)
select
    hit.memory_id, hit.kind, m.word_count, m.thread_id, m.position, m.speaker, m.is_long,
    -hit.distance as similarity
from (
    select n.memory_id, wanted.kind, n.distance
    from unnest($4::text[], $5::integer[]) as wanted (kind, max_rows)
    cross join lateral (
        select e.memory_id, e.embedding <#> $3 as distance
        from memory.embeddings as e
        where
            e.agent_id = $1
            and e.model_id = $2
            and e.kind = wanted.kind
            and e.memory_id not in (select memory_id from past)
            and e.memory_id <> all($8::uuid[])
        order by e.embedding <#> $3
        limit wanted.max_rows
    ) as n
    union all
    select s.memory_id, 'fact' as kind, old.distance
    from (
        select p.memory_id, e.embedding <#> $3 as distance
        from past as p
        join memory.embeddings as e
            on e.agent_id = $1 and e.model_id = $2 and e.kind = 'fact' and e.memory_id = p.memory_id
        where p.is_superseded and 'fact' = any($4::text[])
        order by e.embedding <#> $3
        limit $11
    ) as old
    cross join lateral heart.list_successors($1, old.memory_id, $10::timestamptz) as s
    where s.memory_id not in (select memory_id from past) and s.memory_id <> all($8::uuid[])
) as hit
-- one index lookup each: the planner overestimates the rows and would scan the agent's whole table for a join
cross join lateral (
    select
        word_count, thread_id, position,
        case when kind = 'exchange' then substring(micro from '^\[[0-9-]+\] ([^:]+): ') end as speaker,
        full_tokens is not null as is_long
    from memory.memories
    where agent_id = $1 and memory_id = hit.memory_id
    limit 1
) as m;

-- name: search_bm25(agent_id, input, kinds, limits, k1, b, quarantined, past_states, excluded_ids, uncounted_ids, measures, superseded_ids, moment, max_superseded, shown_ids)
-- Exact BM25 over the postings. `lexical` is the score divided by the maximum that any text could reach. `known_share` is
-- the share of the input's words that any text has, weighted by their rarity; a word that no text has is the rarest. `texts` is
-- the number of texts that were searched, without procedures, which may ship with Newton; without a hit, one row has no memory. Words of `measures` ask for an amount, which an answer has instead of them, so they are not counted. The best superseded facts
-- stand for the current facts that took their place, so a memory may be returned twice.
with past as materialized (
    select
        memory_id,
        kind = 'fact' and state = 'SUPERSEDED' and not quarantined and memory_id <> all($9::uuid[]) as is_superseded
    from memory.memories
    where
        agent_id = $1
        and (quarantined or memory.is_obsolete(kind, state))
        and (
            (quarantined and kind <> all($7::text[]) and memory_id not in (select unnest($15::uuid[])))
            or (state = any($8::text[]) and (state <> 'ARCHIVED' or kind <> 'episode'))
        )
    union all
    select memory_id, true
    from unnest($12::uuid[]) as s (memory_id)
),
-- what was excluded at the moment asked about, such as the message that asks, or was created later does not count
uncounted as (
    select count(*) as texts, coalesce(sum(word_count), 0) as word_count
    from memory.memories
    where agent_id = $1 and memory_id = any($10::uuid[]) and word_count > 0 and kind <> 'artifact'
),
corpus as materialized (
    select
        (m.texts - u.texts)::float8 as texts,
        m.texts - u.texts - m.procedures as told,
        greatest((m.word_count - u.word_count)::float8 / nullif(m.texts - u.texts, 0), 1) as mean
    from (
        select
            count(*) as texts,
            count(*) filter (where kind = 'procedure') as procedures,
            sum(word_count) as word_count
        from memory.memories
        where agent_id = $1 and word_count > 0 and kind <> 'artifact'
    ) as m
    cross join uncounted as u
),
-- the maximum score of a word, and the terms of its length normalization
weight as materialized (
    select
        h.lexeme,
        h.texts,
        ln(1 + (c.texts - h.texts + 0.5) / (h.texts + 0.5)) * ($5::float8 + 1) as best,
        -- in a small corpus every known word is frequent, so the rarity is that among at least 1,000 texts
        ln(1 + (greatest(c.texts, 1000) - h.texts + 0.5) / (h.texts + 0.5)) as rarity,
        $5::float8 * (1 - $6::float8) as fixed,
        $5::float8 * $6::float8 / c.mean as growing,
        h.lexeme = any(tsvector_to_array(to_tsvector('english', $11::text))) as is_measure
    from (
        select w.lexeme, n.texts
        from unnest(tsvector_to_array(memory.search_words($2))) as w (lexeme)
        cross join lateral (
            select count(*) as texts
            from memory.postings as p
            where p.agent_id = $1 and p.lexeme = w.lexeme and p.memory_id <> all($10::uuid[]) and p.kind <> 'artifact'
        ) as n
    ) as h
    cross join corpus as c
),
best as (
    select
        sum(best) filter (where texts > 0) as score,
        coalesce(
            sum(rarity) filter (where texts > 0 and not is_measure) / sum(rarity) filter (where not is_measure), 0
        ) as known_share,
        (select c.told from corpus as c) as texts
    from weight
),
scored as materialized (
    select
        p.memory_id,
        p.kind,
        p.memory_id in (select memory_id from past) as is_superseded,
        sum(w.best * p.tf / (p.tf + w.fixed + w.growing * p.word_count)) as score
    from weight as w
    join memory.postings as p on p.agent_id = $1 and p.lexeme = w.lexeme
    where
        p.kind <> 'artifact' and p.memory_id <> all($10::uuid[])
        and p.memory_id not in (select memory_id from past where not is_superseded)
        and (p.memory_id <> all($9::uuid[]) or p.memory_id = any($12::uuid[]))
    group by p.memory_id, p.kind
)
select
    r.memory_id, r.kind, m.word_count, m.thread_id, m.position, m.speaker, m.is_long,
    r.score / b.score as lexical,
    b.known_share,
    b.texts
from best as b
left join (
    -- top k per kind without sorting the rest
    select n.memory_id, n.kind, n.score
    from unnest($3::text[], $4::integer[]) as wanted (kind, max_rows)
    cross join lateral (
        select s.memory_id, s.kind, s.score
        from scored as s
        where s.kind = wanted.kind and not s.is_superseded
        order by s.score desc, s.memory_id
        limit wanted.max_rows
    ) as n
    -- skip kinds without hits
    where wanted.kind in (select kind from scored)
    union all
    select s.memory_id, 'fact' as kind, old.score
    from (
        select memory_id, score
        from scored
        where is_superseded and 'fact' = any($3::text[])
        order by score desc, memory_id
        limit $14
    ) as old
    cross join lateral heart.list_successors($1, old.memory_id, $13::timestamptz) as s
    where s.memory_id not in (select memory_id from past) and s.memory_id <> all($9::uuid[])
) as r
    on true
left join lateral (
    select
        word_count, thread_id, position,
        case when kind = 'exchange' then substring(micro from '^\[[0-9-]+\] ([^:]+): ') end as speaker,
        full_tokens is not null as is_long
    from memory.memories
    where agent_id = $1 and memory_id = r.memory_id
    limit 1
) as m
    on true;

-- name: get_similarities(agent_id, model_id, embedding, kinds, memory_ids)
select memory_id, -(embedding <#> $3) as similarity
from memory.embeddings
where agent_id = $1 and model_id = $2 and kind = any($4::text[]) and memory_id = any($5::uuid[]);

-- name: find_best_windows(agent_id, model_id, embedding, input, memory_ids, word_weight)
-- Of each long text the window with the highest sum of cosine similarity and share of the input's words.
with query as materialized (
    select tsvector_to_array(memory.search_words($4)) as lexemes
)
select distinct on (s.memory_id) s.memory_id, s.position, s.text, s.tokens, s.similarity
from (
    select
        w.memory_id, w.position, w.text, w.tokens,
        coalesce(-(e.embedding <#> $3), 0) as similarity,
        (select count(*) from unnest(w.lexemes) as l (lexeme) where l.lexeme = any(q.lexemes))::float8
        / greatest(cardinality(q.lexemes), 1) as word_share
    from query as q
    cross join memory.windows as w
    left join memory.window_embeddings as e
        on e.agent_id = $1 and e.model_id = $2 and e.memory_id = w.memory_id and e.position = w.position
    where w.agent_id = $1 and w.memory_id = any($5::uuid[])
) as s
order by s.memory_id, s.similarity + $6::float8 * s.word_share desc, s.position;

-- name: get_adjacent_messages(agent_id, model_id, embedding, thread_ids, positions, quarantined, excluded_ids, shown_ids)
-- Messages at these positions with their similarity. A message has no obsolete state.
select
    m.memory_id, m.kind, m.word_count, m.thread_id, m.position, m.speaker, false as is_long,
    coalesce(e.similarity, 0) as similarity
from unnest($4::uuid[], $5::integer[]) as wanted (thread_id, position)
cross join lateral (
    select
        memory_id, kind, word_count, thread_id, position,
        substring(micro from '^\[[0-9-]+\] ([^:]+): ') as speaker
    from memory.memories
    where
        agent_id = $1
        and kind = 'exchange'
        and thread_id = wanted.thread_id
        and position = wanted.position
        and ('exchange' = any($6::text[]) or not quarantined or memory_id in (select unnest($8::uuid[])))
        and memory_id <> all($7::uuid[])
    limit 1
) as m
left join lateral (
    select -(embedding <#> $3) as similarity
    from memory.embeddings
    where agent_id = $1 and model_id = $2 and kind = 'exchange' and memory_id = m.memory_id
    limit 1
) as e on true;

-- name: list_hidden_at(agent_id, moment, quarantined, past_states)
-- Memories that did not exist yet at a moment, or were hidden then; `is_superseded` are the facts that were superseded.
with past_memories as (
    select
        m.memory_id,
        m.kind,
        m.created_at,
        coalesce(later.from_state, m.state) as state,
        m.quarantined or coalesce(later.released, false) as quarantined
    from memory.memories as m
    left join (
        select distinct on (t.memory_id)
            t.memory_id,
            t.from_state,
            bool_or(t.event = 'released') over (partition by t.memory_id) as released
        from memory.transitions as t
        where t.agent_id = $1 and t.changed_at > $2
        order by t.memory_id, t.changed_at, t.transition_id
    ) as later on later.memory_id = m.memory_id
    where m.agent_id = $1
)
select
    memory_id,
    created_at > $2 as is_later,
    created_at <= $2 and kind = 'fact' and state = 'SUPERSEDED' and not quarantined as is_superseded
from past_memories
where
    created_at > $2
    or (quarantined and kind <> all($3::text[]))
    or (state = any($4::text[]) and (state <> 'ARCHIVED' or kind <> 'episode'));
