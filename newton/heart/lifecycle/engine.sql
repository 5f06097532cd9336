-- name: list_over_cap(agent_id, kind, cap, enough, now, half_life)
-- Memories of a kind that cross its cap: archived ones within the cap and current ones beyond it. Ranked by value:
-- entities by decayed mentions, relations by weight, procedures by smoothed success rate, passages by last access,
-- events by time.
with selected as materialized (
    select memory_id, state, uses, accessed_at, occurred_at, created_at
    from memory.memories
    where agent_id = $1 and kind = $2 and (state = 'ARCHIVED' or not memory.is_obsolete(kind, state))
),
results as (
    select
        a.memory_id,
        count(*) as uses,
        (count(*) filter (where a.result = 'success') + 0.5)
        / (count(*) filter (where a.result in ('success', 'failure')) + 1.0) as share
    from heart.activations as a
    where a.agent_id = $1 and a.memory_id in (select memory_id from selected)
    group by a.memory_id
),
ranked as (
    select
        h.memory_id,
        h.state,
        row_number() over (
            order by
                case $2
                    when 'entity' then coalesce(e.mentions / (e.mentions + $4::float8), 0)
                    * 0.5 ^ greatest(extract(epoch from ($5::timestamptz - e.mentioned_at)) / 86400 / $6::float8, 0)
                    when 'relation' then coalesce(r.weight, 0)
                    when 'procedure' then coalesce(t.share, 0.5)
                    else 0
                end desc,
                case $2 when 'procedure' then coalesce(t.uses, 0) else 0 end desc,
                case $2 when 'passage' then h.accessed_at end desc nulls last,
                h.occurred_at desc,
                h.memory_id desc
        ) as rank
    from selected as h
    left join heart.entities as e on e.agent_id = $1 and e.memory_id = h.memory_id
    left join heart.relations as r on r.agent_id = $1 and r.memory_id = h.memory_id
    left join results as t on t.memory_id = h.memory_id
)
select memory_id, state, rank <= $3 as within
from ranked
where (rank <= $3) = (state = 'ARCHIVED')
order by rank;

-- name: list_ids(agent_id, kind)
-- Ordered so that the facts of one subject and attribute are adjacent and a batch can end between them.
select m.memory_id, f.subject_key, f.attribute, coalesce(f.single_valued, false) as single
from memory.memories as m
left join heart.facts as f on f.agent_id = $1 and f.memory_id = m.memory_id
where m.agent_id = $1 and m.kind = $2
order by f.subject_key, f.attribute, f.single_valued, m.memory_id;

-- name: lock_keys(agent_id, keys)
-- Serializes writers of the same single-valued attribute. Locks are taken in order to avoid deadlocks, and mapped to 256
-- keys, because the server's lock table is small; two attributes may share one.
select pg_advisory_xact_lock(k.key)
from (select count(*) from runtime.agents where agent_id = $1) as node
cross join (
    select distinct (hashtextextended($1::uuid::text, 0) << 8) | (hashtextextended(e.key, 0) & 255) as key
    from unnest($2::text[]) as e (key)
    order by 1
) as k;

-- name: find_affected_facts(agent_id, memory_ids)
-- The facts themselves, those that they supersede or contradict or the reverse, their generalizations, and all facts in
-- these generalizations.
with general as (
    select g.memory_id
    from heart.facts as g
    where g.agent_id = $1 and g.is_generalization and g.memory_id = any($2::uuid[])
    union
    select g.memory_id
    from memory.sources as s
    join heart.facts as g on g.agent_id = $1 and g.memory_id = s.memory_id and g.is_generalization
    where s.agent_id = $1 and s.source_id = any($2::uuid[])
),
touched as (
    select memory_id
    from unnest($2::uuid[]) as t (memory_id)
    union
    select memory_id
    from general
    union
    select other_id
    from memory.links
    where agent_id = $1 and memory_id = any($2::uuid[]) and link in ('supersedes', 'contradicts')
    union
    select memory_id
    from memory.links
    where agent_id = $1 and other_id = any($2::uuid[]) and link in ('supersedes', 'contradicts')
    union
    select s.source_id
    from general as g
    join memory.sources as s on s.agent_id = $1 and s.memory_id = g.memory_id
)
select f.memory_id, f.subject_key, f.attribute, f.single_valued as single
from touched as t
join heart.facts as f on f.agent_id = $1 and f.memory_id = t.memory_id;

-- name: get_fact_evidence(agent_id, memory_ids)
-- Each of them, and every other value of a single-valued attribute.
with own as materialized (
    select memory_id
    from unnest($2::uuid[]) as o (memory_id)
    union
    select other.memory_id
    from heart.facts as f
    join heart.facts as other
        on
            other.agent_id = $1
            and other.subject_key = f.subject_key
            and other.attribute = f.attribute
            and other.single_valued
    where f.agent_id = $1 and f.memory_id = any($2::uuid[]) and f.single_valued
),
confirmation_counts as materialized (
    select
        c.memory_id,
        count(*) filter (
            where c.trust not in ('tool', 'web') or m.trust in ('tool', 'web')
        )::integer as confirmations,
        -- all that models state by themselves is one source
        count(distinct case when c.trust = 'agent' then '' else c.source end) filter (
            where c.trust not in ('tool', 'web') and c.source <> f.source and not (c.trust = 'agent' and m.trust = 'agent')
        )::integer as sources,
        -- and what they pass on from tools and pages is one origin, through whichever interface
        count(distinct case when c.source = 'model' then '' else c.origin end) filter (
            where c.trust in ('tool', 'web') and c.origin <> m.origin and not (c.source = 'model' and f.source = 'model')
        )::integer as outside,
        bool_or(c.trust in ('operator', 'user')) as vouched
    from own as o
    join memory.confirmations as c on c.agent_id = $1 and c.memory_id = o.memory_id
    join memory.memories as m on m.agent_id = $1 and m.memory_id = o.memory_id
    join heart.facts as f on f.agent_id = $1 and f.memory_id = o.memory_id
    group by c.memory_id
),
restated as materialized (
    -- a duplicate confirms its original, unless it is quarantined or retracted, or only the original is a person's
    select
        g.duplicate_of as memory_id, max(greatest(g.valid_from, g.reconfirmed_at)) as at,
        max(greatest(least(g.valid_from, m.created_at), g.reconfirmed_at)) as stated_at
    from own as o
    join heart.facts as g on g.agent_id = $1 and g.duplicate_of = o.memory_id and not g.is_retracted
    join memory.memories as m on m.agent_id = $1 and m.memory_id = g.memory_id and not m.quarantined
    join memory.memories as t on t.agent_id = $1 and t.memory_id = o.memory_id
    where t.trust not in ('operator', 'user') or m.trust in ('operator', 'user')
    group by g.duplicate_of
),
superseded as materialized (
    -- a link counts unless the superseding fact was retracted; of the two, the one stated last applies. A fact that was
    -- stated again after the end of its validity holds again.
    select
        l.other_id as memory_id, max(greatest(l.created_at, f.reconfirmed_at)) as at, min(f.valid_from) as since,
        nullif(
            max(case when f.valid_to >= greatest(f.valid_from, f.reconfirmed_at) then f.valid_to else 'infinity' end),
            'infinity'
        ) as until
    from own as o
    join memory.links as l on l.agent_id = $1 and l.other_id = o.memory_id and l.link = 'supersedes'
    join heart.facts as f on f.agent_id = $1 and f.memory_id = l.memory_id and not f.is_retracted
    group by l.other_id
),
outlived as materialized (
    -- superseded by the fact that it superseded, because that one was stated again later
    select l.memory_id, min(old.reconfirmed_at) as since
    from own as o
    join memory.links as l on l.agent_id = $1 and l.memory_id = o.memory_id and l.link = 'supersedes'
    join heart.facts as f on f.agent_id = $1 and f.memory_id = o.memory_id
    join heart.facts as old on old.agent_id = $1 and old.memory_id = l.other_id and not old.is_retracted
    where old.reconfirmed_at > greatest(l.created_at, f.reconfirmed_at)
    group by l.memory_id
),
generalized_by as materialized (
    select s.source_id, s.memory_id
    from own as o
    join memory.sources as s on s.agent_id = $1 and s.source_id = o.memory_id
    join heart.facts as g on g.agent_id = $1 and g.memory_id = s.memory_id and g.is_generalization and not g.is_retracted
    join memory.memories as w on w.agent_id = $1 and w.memory_id = s.memory_id
    join memory.memories as m on m.agent_id = $1 and m.memory_id = s.source_id
    where w.trust in ('operator', 'user') or m.trust not in ('operator', 'user')  -- it ends nothing of a person otherwise
),
invalid_generalizations as materialized (
    -- generalizations with a source that was retracted or superseded
    select s.memory_id, bool_or(f.is_retracted) as wrong
    from (
        select o.memory_id
        from own as o
        join heart.facts as g on g.agent_id = $1 and g.memory_id = o.memory_id and g.is_generalization
        union
        select memory_id
        from generalized_by
    ) as g
    join memory.sources as s on s.agent_id = $1 and s.memory_id = g.memory_id
    join heart.facts as f on f.agent_id = $1 and f.memory_id = s.source_id
    where
        f.is_retracted
        or exists (
            select
            from memory.links as l
            join heart.facts as n on n.agent_id = $1 and n.memory_id = l.memory_id and not n.is_retracted
            where l.agent_id = $1 and l.other_id = f.memory_id and l.link = 'supersedes'
        )
    group by s.memory_id
),
general as materialized (
    select distinct source_id as memory_id
    from generalized_by
    where memory_id not in (select memory_id from invalid_generalizations)
)
select
    m.memory_id, m.state, m.quarantined, f.subject_key, f.attribute, f.single_valued as single,
    greatest(f.valid_from, f.reconfirmed_at, a.at) as since,
    greatest(least(f.valid_from, m.created_at), f.reconfirmed_at, a.stated_at) as stated_at, f.valid_to, m.created_at, f.is_core,
    f.duplicate_of,
    case
        when f.is_generalization then (
            select count(*) from memory.sources as s where s.agent_id = $1 and s.memory_id = m.memory_id
        )
        else 0
    end::integer as generalizes,
    g.memory_id is not null as generalized,
    f.is_retracted or coalesce(p.wrong, false) as wrong,
    case
        when p.memory_id is not null then m.created_at
        when s.at >= coalesce(greatest(f.reconfirmed_at, a.at), '-infinity') then s.since
        else l.since
    end as superseded_since,
    case
        when p.memory_id is null and s.at >= coalesce(greatest(f.reconfirmed_at, a.at), '-infinity') then s.until
    end as superseded_until,
    m.trust, coalesce(m.full_text, m.summary) as text,
    coalesce(t.confirmations, 0) as confirmations,
    coalesce(t.sources, 0) as sources,
    coalesce(t.outside, 0) as outside,
    coalesce(t.vouched, false) as vouched
from own as o
join memory.memories as m on m.agent_id = $1 and m.memory_id = o.memory_id
join heart.facts as f on f.agent_id = $1 and f.memory_id = o.memory_id
left join confirmation_counts as t on t.memory_id = o.memory_id
left join restated as a on a.memory_id = o.memory_id
left join superseded as s on s.memory_id = o.memory_id
left join outlived as l on l.memory_id = o.memory_id
left join general as g on g.memory_id = o.memory_id
left join invalid_generalizations as p on p.memory_id = o.memory_id
order by o.memory_id;

-- name: update_current(agent_id, memory_ids, latest_start)
-- is_current follows from the state, is_contested from the links; the exclusion constraint relies on both. A fact that is
-- not valid yet is not current. One that becomes current is compared with the others again.
update heart.facts as f
set
    is_current = n.is_current, is_contested = n.is_contested,
    is_compared = f.is_compared and (f.is_current or not n.is_current)
from (
    select
        m.memory_id,
        m.state in ('NEW', 'CONFIRMED', 'CORE') and not m.quarantined and t.valid_from <= $3 as is_current,
        m.state in ('NEW', 'CONFIRMED', 'CORE')
        and exists (
            select
            from memory.links as l
            join memory.memories as o on o.agent_id = $1 and o.memory_id = l.other_id
            where
                l.agent_id = $1
                and l.memory_id = m.memory_id
                and l.link = 'contradicts'
                and o.state in ('NEW', 'CONFIRMED', 'CORE')
                and not exists (
                    select
                    from memory.links as settled
                    where
                        settled.agent_id = $1
                        and settled.memory_id = l.memory_id
                        and settled.other_id = l.other_id
                        and settled.link = 'compatible'
                )
        ) as is_contested
    from memory.memories as m
    join heart.facts as t on t.agent_id = $1 and t.memory_id = m.memory_id
    where m.agent_id = $1 and m.memory_id = any($2::uuid[])
) as n
where f.agent_id = $1 and f.memory_id = n.memory_id and (f.is_current, f.is_contested) is distinct from (n.is_current, n.is_contested);

-- name: get_episode_ages(agent_id, memory_ids)
select m.memory_id, m.state, e.ended_at
from memory.memories as m
join heart.episodes as e on e.agent_id = $1 and e.memory_id = m.memory_id
where m.agent_id = $1 and m.memory_id = any($2::uuid[]) and m.state <> 'ARCHIVED';

-- name: list_full_texts(agent_id, memory_ids)
select memory_id, full_text
from memory.memories
where agent_id = $1 and memory_id = any($2::uuid[]) and full_text is not null;

-- name: archive_texts(agent_id, memory_ids, compressed_texts)
-- Only the first archived text is complete; a later one would contain the shortened text.
insert into memory.archived_texts (agent_id, memory_id, compressed)
select $1, c.memory_id, c.compressed
from unnest($2::uuid[], $3::bytea[]) as c (memory_id, compressed)
on conflict do nothing;

-- name: shorten_texts(agent_id, memory_ids, texts)
update memory.memories as m
set full_text = s.text
from unnest($2::uuid[], $3::text[]) as s (memory_id, text)
where m.agent_id = $1 and m.memory_id = s.memory_id;

-- name: get_procedure_records(agent_id, memory_ids)
with record as materialized (
    select
        memory_id,
        count(*)::integer as activations,
        count(*) filter (where result = 'success')::integer as successes,
        count(*) filter (where result = 'failure')::integer as failures
    from heart.activations
    where agent_id = $1 and memory_id = any($2::uuid[])
    group by memory_id
)
select
    m.memory_id, m.state, p.is_retired as retired,
    coalesce(r.activations, 0) as activations,
    coalesce(r.successes, 0) as successes,
    coalesce(r.failures, 0) as failures
from memory.memories as m
join heart.procedures as p on p.agent_id = $1 and p.memory_id = m.memory_id
left join record as r on r.memory_id = m.memory_id
where m.agent_id = $1 and m.memory_id = any($2::uuid[]);

-- name: get_censor_records(agent_id, memory_ids)
with record as materialized (
    select
        a.memory_id,
        count(*)::integer as activations,
        count(*) filter (where a.result = 'false_positive')::integer as false_positives
    from heart.activations as a
    join heart.censors as c on c.agent_id = $1 and c.memory_id = a.memory_id
    where
        a.agent_id = $1
        and a.memory_id = any($2::uuid[])
        and (c.relaxed_at is null or a.activated_at > c.relaxed_at)
    group by a.memory_id
)
select
    m.memory_id, m.state, c.is_retired as retired, c.threshold,
    coalesce(r.activations, 0) as activations,
    coalesce(r.false_positives, 0) as false_positives,
    (
        select t.event
        from memory.transitions as t
        where t.agent_id = $1 and t.memory_id = m.memory_id and t.to_state = 'ESCALATED'
        order by t.changed_at desc, t.transition_id desc
        limit 1
    ) is not distinct from 'escalated' as escalated_by_matches
from memory.memories as m
join heart.censors as c on c.agent_id = $1 and c.memory_id = m.memory_id
left join record as r on r.memory_id = m.memory_id
where m.agent_id = $1 and m.memory_id = any($2::uuid[]);

-- name: list_short_forms(agent_id, memory_ids)
select memory_id, state, micro, summary, micro_tokens, summary_tokens
from memory.memories
where agent_id = $1 and memory_id = any($2::uuid[]);

-- name: list_started(agent_id, latest_start)
-- Facts whose validity has begun, and that are not current yet.
select f.memory_id
from heart.facts as f
join memory.memories as m on m.agent_id = $1 and m.memory_id = f.memory_id
where
    f.agent_id = $1
    and not f.is_current
    and f.valid_from <= $2
    and m.state in ('NEW', 'CONFIRMED', 'CORE')
    and not m.quarantined;

-- name: insert_activations(agent_id, memory_ids, activation_ids, stage, now)
insert into heart.activations (agent_id, memory_id, activation_id, activated_at, stage)
select $1, a.memory_id, a.activation_id, $5, $4
from unnest($2::uuid[], $3::uuid[]) as a (memory_id, activation_id)
on conflict do nothing;

-- name: count_use(agent_id, memory_ids, now)
update memory.memories
set uses = uses + 1, accessed_at = $3
where agent_id = $1 and memory_id = any($2::uuid[]);

-- name: set_result(agent_id, memory_id, activation_id, result, now)
-- Of the last unrated activation if none is named. A result is final; setting it again changes nothing.
update heart.activations as a
set result = $4, evaluated_at = $5
where
    a.agent_id = $1
    and a.memory_id = $2
    and a.result is null
    and a.activation_id = coalesce(
        $3,
        (
            select l.activation_id
            from heart.activations as l
            where l.agent_id = $1 and l.memory_id = $2 and l.result is null
            order by l.activated_at desc, l.activation_id desc
            limit 1
        )
    )
returning a.activation_id;
