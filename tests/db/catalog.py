"""The rules that every table keeps, as a check over the catalog that names each fault."""

from newton.db.pool import Tx
from newton.db.roles import read_roles
from tests.cluster import with_roles

SCHEMAS = ["memory", "heart", "brain", "dialogue", "cognition", "runtime"]
AGENTLESS = {"runtime.schema_migrations", "memory.models"}

APPEND_ONLY = {
    "dialogue.artifacts",
    "dialogue.artifact_versions",
    "dialogue.artifact_chunks",
    "dialogue.artifact_vectors",
    "dialogue.sessions",
    "dialogue.messages",
    "dialogue.compaction_entries",
    "dialogue.entry_restorations",
    "dialogue.lineage",
    "dialogue.injections",
    "dialogue.injection_removals",
    "dialogue.compaction_runs",
    "dialogue.brief_items",
    "dialogue.entry_rereads",
    "dialogue.brief_closings",
    "dialogue.task_transitions",
    "heart.events",
    "heart.identity_versions",
    "heart.mentions",
    "heart.tenets",
    "memory.sources",
    "memory.mentioned_times",
    "memory.standing_statements",
    "memory.confirmations",
    "memory.links",
    "memory.transitions",
    "memory.edits",
    "memory.archived_texts",
    "memory.line_summaries",
    "memory.embeddings",
    "memory.windows",
    "memory.window_embeddings",
    "cognition.bundles",
    "cognition.turns",
    "brain.guardrails",
    "runtime.usage",
    "runtime.tool_actions",
    "runtime.tool_contracts",
    "brain.decision_records",
    "brain.calibration_snapshots",
    "brain.decision_texts",
}
VECTORS = {
    ("memory.embeddings", "embedding"),
    ("memory.window_embeddings", "embedding"),
    ("dialogue.artifact_vectors", "embedding"),
}
FIXED = {
    "dialogue.leases": {"session_id", "purpose"},
    "dialogue.fact_watermarks": {"session_id"},
    "dialogue.episode_watermarks": {"session_id"},
    "memory.memories": {
        "origin", "trust", "kind", "content_hash", "thread_id", "position", "ref", "created_at", "occurred_at",
        "word_count", "prefix_length", "full_tokens",
    },
    "cognition.working_set": {"session_id", "memory_id", "added_at"},
    "cognition.profile_stats": {"profile"},
    "dialogue.tasks": {
        "task_id", "number", "parent_id", "replaces_task_id", "depth", "goal", "first_position", "pushed_at",
    },
    "heart.facts": {"memory_id", "attribute", "single_valued", "valid_from"},
    "heart.proposed_items": {"proposal_id", "model", "operation", "proposed_at"},
    "heart.line_changes": {"change_id", "line_id", "effect", "target_id", "changed_at"},
    "heart.episodes": {"memory_id", "session_id", "first_position", "last_position", "started_at", "ended_at"},
    "heart.censors": {"memory_id", "match_mode", "trigger", "action", "reason", "domain", "threshold"},
    "heart.procedures": {"memory_id", "name", "version", "description", "steps", "triggers"},
    "heart.items": {"item_id", "namespace", "key", "created_at"},
    "heart.proposals": {"tenet_id"},
    "runtime.jobs": {"job_id", "name", "slot", "epoch", "holder", "started_at"},
    "runtime.events": {"number", "type", "occurred_at", "payload"},
    "runtime.idempotency_keys": {"key", "request_hash", "status_code", "response_body", "created_at"},
    "runtime.tokens": {"token_id", "name", "scope", "hash", "created_at", "expires_at"},
    "runtime.failing_models": {"purpose", "failing_since"},
    "memory.proposed_moves": {"move_id", "memory_id", "target", "trust"},
    "memory.foreign_readings": {"reader", "trust"},
    "runtime.tool_permissions": {"permission_id", "server", "tool", "session_id"},
    "heart.activations": {"memory_id", "activation_id", "activated_at", "stage"},
}  # fmt: skip

TABLES = """
select c.oid::regclass::text as name, c.relrowsecurity and c.relforcerowsecurity as forced,
    a.attnum as agent, a.atttypid = 'uuid'::regtype and a.attnotnull as required,
    pg_get_userbyid(c.relowner) as owner,
    exists (select from pg_constraint where conrelid = c.oid and contype = 'p') as keyed
from pg_class as c
left join pg_attribute as a on a.attrelid = c.oid and a.attname = 'agent_id' and not a.attisdropped
where c.relkind in ('r', 'p') and c.relname !~ '_[0-9]{6,}$' and c.relnamespace::regnamespace::text = any($1)
order by 1
"""

INDEXES = """
select i.indrelid::regclass::text as name, x.relname as index, a.attname as first
from pg_index as i
join pg_class as x on x.oid = i.indexrelid
left join pg_attribute as a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
where i.indrelid::regclass::text = any($1)
"""

FOREIGN_KEYS = """
select k.conrelid::regclass::text as name, k.conname as key, k.confrelid::regclass::text as target,
    here.attname as here, there.attname as there
from pg_constraint as k
join pg_attribute as here on here.attrelid = k.conrelid and here.attnum = k.conkey[1]
join pg_attribute as there on there.attrelid = k.confrelid and there.attnum = k.confkey[1]
where k.contype = 'f' and k.conrelid::regclass::text = any($1)
"""

# The worker sees the queue and the names of the agents, and nothing else.
ACROSS = {"runtime.jobs", "runtime.agents"}

POLICIES = """
select polrelid::regclass::text as name, polname as policy, polpermissive as permissive,
    polroles = array['newton_worker'::regrole::oid] as across,
    pg_get_expr(polqual, polrelid) as using, pg_get_expr(polwithcheck, polrelid) as checked
from pg_policy
where polrelid::regclass::text !~ '_[0-9]{6,}$'
"""

COLUMNS = """
select c.relname, n.nspname || '.' || c.relname as name, a.attname as column,
    a.atttypid = 'timestamp'::regtype as zoneless, a.attstorage::text as storage,
    has_column_privilege('newton_app', c.oid, a.attnum, 'UPDATE') as updated
from pg_attribute as a
join pg_class as c on c.oid = a.attrelid
join pg_namespace as n on n.oid = c.relnamespace
where n.nspname = any($1) and c.relkind in ('r', 'p') and a.attnum > 0 and not a.attisdropped
"""

REACHED = """
select has_any_column_privilege('newton_worker', $1, 'SELECT, INSERT, UPDATE')
    or has_table_privilege('newton_worker', $1, 'DELETE, TRUNCATE, TRIGGER, REFERENCES')
"""

EXPECTED_POLICY = "(agent_id = (NULLIF(current_setting('newton.agent_id'::text, true), ''::text))::uuid)"


async def tables(conn: Tx) -> set[str]:
    return {row["name"] for row in await conn.fetch(TABLES, SCHEMAS)}


async def faults(conn: Tx) -> list[str]:
    """Every breach of the rules, each beginning with the table's name."""
    found: list[str] = []
    for check in (_tables, _indexes, _foreign_keys, _policies, _columns, _rights, _sequences):
        found += await check(conn)
    return found


async def _agent_tables(conn: Tx) -> list[str]:
    return [row["name"] for row in await conn.fetch(TABLES, SCHEMAS) if row["agent"]]


async def _tables(conn: Tx) -> list[str]:
    found: list[str] = []
    app = (await read_roles(conn)).app
    for row in await conn.fetch(TABLES, SCHEMAS):
        name = row["name"]
        if row["owner"] == app:
            found.append(f"{name}: owned by newton_app")
        if row["agent"] is None:
            found += [] if name in AGENTLESS else [f"{name}: has no agent_id"]
            continue
        found += [] if row["required"] else [f"{name}: agent_id is not a required uuid"]
        found += [] if row["forced"] else [f"{name}: row level security is not forced"]
        found += [] if row["keyed"] else [f"{name}: no primary key"]
    return found


async def _indexes(conn: Tx) -> list[str]:
    rows = await conn.fetch(INDEXES, await _agent_tables(conn))
    return [f"{r['name']}: {r['index']} does not begin with agent_id" for r in rows if r["first"] != "agent_id"]


async def _foreign_keys(conn: Tx) -> list[str]:
    found: list[str] = []
    ours = await _agent_tables(conn)
    for row in await conn.fetch(FOREIGN_KEYS, [*ours, *AGENTLESS]):
        if row["name"] in AGENTLESS and row["target"] in ours:
            found.append(f"{row['name']}: {row['key']} refers to an agent's table")
        elif row["target"] in ours and (row["here"], row["there"]) != ("agent_id", "agent_id"):
            found.append(f"{row['name']}: {row['key']} does not pair agent_id with agent_id")
    return found


async def _policies(conn: Tx) -> list[str]:
    found: list[str] = []
    closed: set[str] = set()
    for row in await conn.fetch(await with_roles(conn, POLICIES)):
        exact = row["using"] == EXPECTED_POLICY and row["checked"] in (None, EXPECTED_POLICY)
        if exact:
            closed.add(row["name"])
        elif row["permissive"] and not (row["across"] and row["name"] in ACROSS) and row["name"] not in AGENTLESS:
            found.append(f"{row['name']}: policy {row['policy']} lets others in")
    agents = await _agent_tables(conn)
    return found + [f"{name}: no policy reads newton.agent_id" for name in agents if name not in closed]


async def _columns(conn: Tx) -> list[str]:
    found: list[str] = []
    for row in await conn.fetch(await with_roles(conn, COLUMNS), SCHEMAS):
        name, column = row["name"], row["column"]
        if row["zoneless"]:
            found.append(f"{name}.{column}: a timestamp without a zone")
        if (name, column) in VECTORS and row["storage"] != "p":
            found.append(f"{name}.{column}: storage is not plain")
        fixed = name in APPEND_ONLY or column in FIXED.get(name, ())
        if fixed and row["updated"]:
            found.append(f"{name}: newton_app may UPDATE {column}")
    return found


async def _rights(conn: Tx) -> list[str]:
    found: list[str] = []
    for name in sorted(await tables(conn)):
        forbidden = ["TRUNCATE", "TRIGGER", "REFERENCES"] + (["DELETE"] if name in APPEND_ONLY else [])
        held = await conn.fetch(
            "select r from unnest($2::text[]) as r where has_table_privilege(runtime.app_role(), $1, r)",
            name,
            forbidden,
        )
        found += [f"{name}: newton_app may {row['r']}" for row in held]
        if name not in ACROSS and await conn.fetchval(await with_roles(conn, REACHED), name):
            found.append(f"{name}: newton_worker has a right to it")
    return found


async def _sequences(conn: Tx) -> list[str]:
    rows = await conn.fetch(
        "select oid::regclass::text as name from pg_class where relkind = 'S'"
        " and relnamespace::regnamespace::text = any($1)",
        SCHEMAS,
    )
    return [f"{row['name']}: a sequence" for row in rows]
