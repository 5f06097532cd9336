-- name: find_latest_versions(agent_id, session_id, names)
-- The latest version of each name that the session sees. A branch continues the versions of its ancestors.
with visible as (
    select $2::uuid as session_id, null::integer as last_position, null::timestamptz as until
    union all
    select l.ancestor_id, l.last_position, s.created_at
    from dialogue.lineage as l
    join dialogue.sessions as s on s.agent_id = $1 and s.session_id = $2
    where l.agent_id = $1 and l.session_id = $2
)
select distinct on (a.name) a.name, a.version, a.sha256
from dialogue.artifact_versions as a
join visible as v on v.session_id = a.session_id
where
    a.agent_id = $1
    and a.name = any($3::text[])
    and (v.until is null or coalesce(a.position <= v.last_position, a.created_at <= v.until))
order by a.name, a.version desc;

-- name: insert_versions(agent_id, session_id, versions, now, origin)
insert into dialogue.artifact_versions (
    agent_id, artifact_id, session_id, name, version, kind, media_type, line_count, byte_count, sha256, source, position,
    origin, trust, created_at
)
select
    $1, v.artifact_id, $2, v.name, v.version, v.kind, v.media_type, v.line_count, v.byte_count, decode(v.sha256, 'hex'),
    v.source, v.position, $5, v.trust, $4
from jsonb_to_recordset($3::jsonb) as v (
    artifact_id uuid, name text, version integer, kind text, media_type text, line_count integer, byte_count bigint,
    sha256 text, source text, position integer, trust text
)
returning agent_id;

-- name: insert_chunks(agent_id, artifact_ids, first_lines, line_counts, texts, endings)
insert into dialogue.artifact_chunks (agent_id, artifact_id, first_line, line_count, text, ending)
select $1, c.artifact_id, c.first_line, c.line_count, c.text, c.ending
from unnest($2::uuid[], $3::integer[], $4::integer[], $5::text[], $6::text[])
    as c (artifact_id, first_line, line_count, text, ending)
returning agent_id;

-- name: list_versions(agent_id, session_id, name)
-- The versions that the session sees, of one name or of all, the newest first.
with visible as (
    select $2::uuid as session_id, null::integer as last_position, null::timestamptz as until
    union all
    select l.ancestor_id, l.last_position, s.created_at
    from dialogue.lineage as l
    join dialogue.sessions as s on s.agent_id = $1 and s.session_id = $2
    where l.agent_id = $1 and l.session_id = $2
)
select
    a.artifact_id, a.name, a.version, a.kind, a.media_type, a.line_count, a.byte_count, encode(a.sha256, 'hex') as sha256,
    a.source, a.position, a.origin, a.trust, a.created_at
from dialogue.artifact_versions as a
join visible as v on v.session_id = a.session_id
where
    a.agent_id = $1
    and ($3::text is null or a.name = $3)
    and (v.until is null or coalesce(a.position <= v.last_position, a.created_at <= v.until))
order by a.created_at desc, a.artifact_id desc;

-- name: find_last_session(agent_id)
-- The session in which an artifact was stored last.
select session_id
from dialogue.artifact_versions
where agent_id = $1
order by created_at desc, artifact_id desc
limit 1;

-- name: read_ranges(agent_id, artifact_ids, chunks_after, first_lines, last_lines)
-- The lines of ranges, in order. `chunks_after` is the line after which the first chunk of a range begins. The caller
-- subtracts it, because row level security does not let an expression that can overflow limit an index scan.
select
    r.ordinal - 1 as place,
    greatest(r.first_line, c.first_line) as first_line,
    (string_to_array(c.text, e'\n'))[greatest(r.first_line - c.first_line + 1, 1):r.last_line - c.first_line + 1] as lines
from unnest($2::uuid[], $3::integer[], $4::integer[], $5::integer[]) with ordinality
    as r (artifact_id, chunks_after, first_line, last_line, ordinal)
join dialogue.artifact_chunks as c
    on c.agent_id = $1
    and c.artifact_id = r.artifact_id
    and c.first_line > r.chunks_after
    and c.first_line <= r.last_line
    and c.first_line + c.line_count > r.first_line
order by r.ordinal, c.first_line;

-- name: read_all_chunks(agent_id, artifact_id)
select first_line, line_count, text, ending
from dialogue.artifact_chunks
where agent_id = $1 and artifact_id = $2
order by first_line;

-- name: search_lines(agent_id, artifact_ids, query, max_chunks)
-- Lines with words of the query, in the chunks with the most and the rarest of them. `words` are those of the line, and
-- `weights` their inverse document frequencies; `total` is the weight of all words of the query.
with word as materialized (
    select lexeme
    from unnest(dialogue.artifact_words($3))
),
hit as materialized (
    select c.artifact_id, c.first_line, array(select lexeme from word where lexeme = any(tsvector_to_array(c.words))) as found
    from dialogue.artifact_chunks as c
    where
        c.agent_id = $1
        and c.artifact_id = any($2::uuid[])
        and tsvector_to_array(c.words) && (select array_agg(lexeme) from word)
),
size as (
    select count(*)::double precision as chunks
    from dialogue.artifact_chunks
    where agent_id = $1 and artifact_id = any($2::uuid[])
),
weighted as materialized (
    select
        w.lexeme,
        ln(1 + (s.chunks + 0.5) / ((select count(*) from hit as h where w.lexeme = any(h.found)) + 0.5)) as weight
    from word as w
    cross join size as s
),
ranked as (
    select
        h.artifact_id, h.first_line,
        (select sum(w.weight) from weighted as w where w.lexeme = any(h.found)) as score
    from hit as h
    order by score desc, h.artifact_id, h.first_line
    limit $4
)
select
    r.artifact_id,
    (c.first_line + l.ordinal - 1)::integer as line,
    f.words,
    f.weights,
    (select sum(weight) from weighted) as total
from ranked as r
join dialogue.artifact_chunks as c on c.agent_id = $1 and c.artifact_id = r.artifact_id and c.first_line = r.first_line
cross join lateral string_to_table(c.text, e'\n') with ordinality as l (text, ordinal)
cross join lateral (
    select array_agg(w.lexeme order by w.lexeme) as words, array_agg(w.weight order by w.lexeme) as weights
    from weighted as w
    where w.lexeme = any(tsvector_to_array(dialogue.artifact_words(l.text)))
) as f
where f.words is not null;

-- name: search_vectors(agent_id, artifact_ids, model_id, vector, max_rows, half_lines)
-- The lines with the highest similarity and those with the highest contrast. With v a vector, q that of the query, m the mean
-- of an artifact of n lines, and a = n / (n + half_lines), the contrast is the cosine of v - am and q - am.
with line as materialized (
    select artifact_id, first_line, embedding
    from dialogue.artifact_vectors
    where agent_id = $1 and artifact_id = any($2::uuid[]) and model_id = $3
),
mean as materialized (
    select artifact_id, avg(embedding) as m, count(*) / (count(*) + $6::double precision) as a
    from line
    group by artifact_id
),
product as materialized (
    select
        l.artifact_id, l.first_line, c.a, -(l.embedding <#> $4::halfvec) as vq, -(l.embedding <#> c.m) as vm,
        -(c.m <#> $4::halfvec) as mq, -(c.m <#> c.m) as mm
    from line as l
    join mean as c using (artifact_id)
),
scored as materialized (
    select
        artifact_id, first_line as line, vq as similarity,
        (vq - a * vm - a * mq + a * a * mm)
        / sqrt(greatest(1 - 2 * a * vm + a * a * mm, 1e-6) * greatest(1 - 2 * a * mq + a * a * mm, 1e-6)) as contrast
    from product
)
(select * from scored order by similarity desc, artifact_id, line limit $5)
union
(select * from scored order by contrast desc, artifact_id, line limit $5);

-- name: list_without_vectors(agent_id, model_id, skipped, max_rows)
-- Texts none of whose passages has a vector of the model, oldest first.
select a.artifact_id, a.media_type
from dialogue.artifact_versions as a
where
    a.agent_id = $1
    and a.line_count > 0
    and a.artifact_id <> all($3::uuid[])
    and not exists (
        select
        from dialogue.artifact_vectors as v
        where v.agent_id = $1 and v.artifact_id = a.artifact_id and v.model_id = $2
    )
order by a.artifact_id
limit $4;

-- name: insert_vectors(agent_id, artifact_id, model_id, first_lines, vectors)
-- Only for a version that still exists.
insert into dialogue.artifact_vectors (agent_id, artifact_id, model_id, first_line, embedding)
select $1, $2, $3, v.first_line, v.embedding
from unnest($4::integer[], $5::halfvec[]) as v (first_line, embedding)
where exists (select from dialogue.artifact_versions where agent_id = $1 and artifact_id = $2)
on conflict do nothing;

-- name: find_last_request(agent_id, session_id, position)
-- The last message of a user before a position.
select left(content, 4000) as content
from dialogue.messages
where agent_id = $1 and session_id = $2 and position < $3 and role = 'user' and not is_notice
order by position desc
limit 1;
