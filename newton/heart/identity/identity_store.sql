-- name: lock_identity(agent_id)
select pg_advisory_xact_lock(hashtextextended($1::uuid::text, 11))
from (select count(*) from runtime.agents where agent_id = $1) as node;

-- name: get_version(agent_id, version, moment)
-- The tenets of a version, of the last one, or of the last one by a moment, in order; one row with nulls if it has none.
-- Each row also lists the texts of removed tenets. `said_on` is the day of a tenet in force because the user said so: it
-- came from a message and did not wait as a proposal.
with i as materialized (
    select version, active_tenets
    from heart.identity_versions
    where
        agent_id = $1
        and ($2::integer is null or version = $2)
        and ($3::timestamptz is null or created_at <= $3)
    order by version desc
    limit 1
),
-- every tenet that was ever active was changed by some version
g as materialized (
    select
        array(
            select o.text
            from heart.identity_versions as e
            join heart.tenets as o on o.agent_id = $1 and o.tenet_id = e.tenet_id
            where e.agent_id = $1 and e.version <= i.version and o.text is not null and o.tenet_id <> all(i.active_tenets)
        ) as gone
    from i
)
select
    i.version, t.tenet_id, t.section as part, t.text as words, t.tokens, g.gone,
    case when t.session_id is not null and p.tenet_id is null then (t.created_at at time zone 'utc')::date end as said_on
from i
cross join g
left join lateral unnest(i.active_tenets) with ordinality as s (tenet_id, place) on true
left join heart.tenets as t on t.agent_id = $1 and t.tenet_id = s.tenet_id and t.text is not null
left join heart.proposals as p on p.agent_id = $1 and p.tenet_id = t.tenet_id
order by s.place;

-- name: list_versions(agent_id)
select
    version, created_at as at, origin, trust, change, tenet_id, restored_version as restored, reason,
    active_tenets as standing
from heart.identity_versions
where agent_id = $1
order by version;

-- name: list_tenets(agent_id)
-- Every tenet, in order of creation.
select
    t.tenet_id, t.section as part, t.text as words, t.tokens, t.created_at as at, t.origin, t.trust, t.session_id,
    t.position, p.state, p.normalized_hash as gist
from heart.tenets as t
left join heart.proposals as p on p.agent_id = $1 and p.tenet_id = t.tenet_id
where t.agent_id = $1
order by t.tenet_id;

-- name: list_requested_lines(agent_id, session_id, first, last)
-- Tenets requested in a range of messages of a session, and active tenets.
select t.text as words
from heart.tenets as t
where
    t.agent_id = $1
    and t.text is not null
    and (
        (t.session_id = $2::uuid and t.position between $3::integer and $4::integer)
        or t.tenet_id = any(
            coalesce((select active_tenets from heart.identity_versions where agent_id = $1 order by version desc limit 1), '{}')
        )
    );

-- name: insert_tenet(agent_id, tenet_id, section, text, tokens, created_at, origin, trust, session_id, position)
insert into heart.tenets (agent_id, tenet_id, section, text, tokens, created_at, origin, trust, session_id, position)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);

-- name: insert_version(agent_id, created_at, origin, trust, change, tenet_id, restored_version, reason, active_tenets)
insert into heart.identity_versions (agent_id, version, created_at, origin, trust, change, tenet_id, restored_version, reason, active_tenets)
select $1, coalesce(max(version), 0) + 1, $2, $3, $4, $5, $6, $7, $8, $9
from heart.identity_versions
where agent_id = $1
returning agent_id;

-- name: insert_proposal(agent_id, tenet_id, normalized_hash)
insert into heart.proposals (agent_id, tenet_id, state, normalized_hash)
values ($1, $2, 'PROPOSED', $3);

-- name: resolve_proposal(agent_id, normalized_hash, state)
update heart.proposals
set state = $3, normalized_hash = null
where agent_id = $1 and normalized_hash = $2;

-- name: erase_tenets(agent_id)
select heart.erase_tenets($1);
