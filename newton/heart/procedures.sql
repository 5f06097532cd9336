-- name: lock_procedures(agent_id)
select pg_advisory_xact_lock(hashtextextended($1::uuid::text, 2))
from (select count(*) from runtime.agents where agent_id = $1) as node;

-- name: list_latest_versions(agent_id)
-- The last version of each procedure.
select distinct on (p.name)
    p.name, p.version, p.memory_id, p.is_retired as retired, p.steps as core, m.content_hash, m.origin
from heart.procedures as p
join memory.memories as m on m.agent_id = $1 and m.memory_id = p.memory_id
where p.agent_id = $1
order by p.name, p.version desc;

-- name: insert_procedures(agent_id, procedures)
insert into heart.procedures (
    agent_id, memory_id, name, version, description, domain, triggers, frames, tools, goals, steps, details, is_retired,
    front_matter
)
select
    $1, d.memory_id, d.name, d.version, d.description, d.domain, d.triggers, d.frames, d.tools, d.goals, d.core,
    d.details, false, d.front_matter
from jsonb_to_recordset($2::jsonb) as d (
    memory_id uuid, name text, version integer, description text, domain text, triggers text[], frames text[],
    tools text[], goals text[], core text[], details text, front_matter jsonb
)
returning agent_id;

-- name: retire_procedures(agent_id, memory_ids, retired)
update heart.procedures
set is_retired = $3
where agent_id = $1 and memory_id = any($2::uuid[]) and is_retired <> $3;

-- name: list_procedures(agent_id)
select
    p.name, p.version, p.memory_id, p.description, p.domain, p.triggers, p.goals, p.steps, p.details,
    p.front_matter, m.state, m.quarantined and m.state <> 'RETIRED' as is_proposed, m.origin,
    count(a.activation_id)::integer as activations,
    count(*) filter (where a.result = 'success')::integer as successes,
    count(*) filter (where a.result = 'failure')::integer as failures
from heart.procedures as p
join memory.memories as m on m.agent_id = $1 and m.memory_id = p.memory_id
left join heart.activations as a on a.agent_id = $1 and a.memory_id = p.memory_id
where p.agent_id = $1
group by
    p.name, p.version, p.memory_id, p.description, p.domain, p.triggers, p.goals, p.steps, p.details,
    p.front_matter, m.state, m.quarantined, m.origin
order by p.name, p.version;

-- name: list_triggers(agent_id)
-- The triggers of each active procedure, with its statistics.
select
    p.memory_id, p.name, p.domain, p.triggers, p.tools, p.frames,
    count(a.activation_id)::integer as applications,
    count(*) filter (where a.result = 'success')::integer as successes,
    count(*) filter (where a.result = 'failure')::integer as failures
from heart.procedures as p
join memory.memories as m on m.agent_id = $1 and m.memory_id = p.memory_id
left join heart.activations as a on a.agent_id = $1 and a.memory_id = p.memory_id
where p.agent_id = $1 and not p.is_retired and m.state <> 'ARCHIVED' and not m.quarantined
group by p.memory_id, p.name, p.domain, p.triggers, p.tools, p.frames;
