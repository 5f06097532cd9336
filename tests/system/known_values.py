"""Values for the inputs of operations, in a database in which the agent `ana` has a row in every table."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any
from uuid import UUID

from newton.db.pool import Database, Tx
from newton.environment import read_sources
from newton.ids import derive_agent_id
from newton.memory import agents
from tests.operations import Operation, Parameter, Schema
from tests.support import NOON

LINES = '{"type": "fact", "content": "Cups are white.", "at": "2026-01-01T00:00:00Z"}\n'  # of an import file
CHAT: list[dict[str, Any]] = [{"title": "Tea", "create_time": 1.7e9, "mapping": {"a": {"id": "a", "parent": None,
    "children": [], "message": {"id": "a", "author": {"role": "user"}, "create_time": 1.7e9,
    "content": {"content_type": "text", "parts": ["Tea?"]}
}}}, "current_node": "a"}]  # fmt: skip
IMPORTED: Mapping[str, str] = {
    "lines.ndjson": LINES,
    "notes.csv": "content,at\nCups are white.,2026-01-01\nPots are green.,2026-01-02\n",
    "notes.md": "# Notes\n\n- Cups are white.\n- Pots are green.\n",
    "notes/tea.md": "# Tea\n\nWarm the pot first.\n",
    "conversations.json": json.dumps(CHAT),
}
AGENT, SESSION = "ana", "kitchen"
SAMPLES: Mapping[str, Any] = {"boolean": True, "integer": 2, "number": 0.5, "object": {}}
PROJECT = "harbour"
ROWS = {
    "memory_id": "select memory_id from memory.memories where kind = 'fact' and state <> 'RETRACTED' limit 1",
    "document_id": "select document_id from heart.documents limit 1",
    "decision_id": "select decision_id from brain.decisions order by decision_id limit 1",
    "bundle_id": "select bundle_id from cognition.bundles order by created_at desc limit 1",
    "other_id": "select bundle_id from cognition.bundles order by created_at limit 1",
    "response_id": "select response_id from dialogue.responses limit 1",
    "censor_id": "select memory_id from heart.censors limit 1",
    "entity": "select spelling from heart.entity_names order by spelling limit 1",
    "into": "select spelling from heart.entity_names order by spelling desc limit 1",
    "line_id": "select tenet_id from heart.tenets limit 1",
    "token_id": "select token_id from runtime.tokens limit 1",
    "permission_id": "select permission_id from runtime.tool_permissions limit 1",
}


async def read_values(db: Database, home: Path) -> dict[str, Any]:
    """The values by the name of the input, or by verb and name where the name alone says too little."""
    async with db.transaction(derive_agent_id(AGENT)) as tx:
        ids = {name: str(await _read_id(tx, query)) for name, query in ROWS.items()}
        await agents.create_project(tx, PROJECT, parent_id=derive_agent_id(AGENT), parent=AGENT, now=NOON)
    for name, text in IMPORTED.items():
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_text(text, encoding="utf-8")
    file = home / "lines.ndjson"
    aliases = {
        "memory": ids["memory_id"],
        "memory_ids": [ids["memory_id"]],
        "memories": [ids["memory_id"]],
        "document": ids["document_id"],
        "decision": ids["decision_id"],
        "bundle": ids["bundle_id"],
        "move.id": ids["memory_id"],
        "item": "1",
        "line": ids["line_id"],
        "one": ids["bundle_id"],
        "other": ids["other_id"],
        "response_id": f"resp_{UUID(ids['response_id']).hex}",
        "entity.name": ids["entity"],
        "entities.name": ids["entity"],
        "relations.name": ids["entity"],
        "merge_entity.name": ids["entity"],
        "health.sources": asdict(read_sources()),
    }
    imported = [str(home / name.partition("/")[0]) for name in IMPORTED]
    return {
        **ids,
        **TEXTS,
        "imported": imported,
        **aliases,
        "path": str(file),
        "file": str(home / "out"),
        "folder": str(home / "backup"),
    }


async def _read_id(tx: Tx, query: str) -> object:
    found = await tx.fetchval(query)
    assert found is not None, query
    return found


# Texts and names in the life of `ana`, see tests/db/world.py.
TEXTS: Mapping[str, Any] = {
    "agent": AGENT,
    "session": SESSION,
    "name": AGENT,
    "projects.name": PROJECT,
    "delete_project.name": PROJECT,
    "target": PROJECT,
    "procedure.name": "tea",
    "procedures.name": "tea",
    "profile.name": "coding",
    "frame.name": "debug",
    "jobs.name": "embed",
    "jobs.job": "embed",
    "rules.name": "tea",
    "verbs.name": "recall",
    "artifact_files.name": "stove.log",
    "artifact_text.name": "stove.log",
    "read_artifact.name": "stove.log",
    "diff_artifact.name": "stove.log",
    "artifacts.name": "stove.log",
    "delete_artifact.name": "stove.log",
    "item.namespace": ["kitchen"],
    "item.key": "tea",
    "search_items.namespace": ["kitchen"],
    "search_items.filter": {"leaf": "green"},
    "models.model": "newton",
    "prompt.turn": "0",
    "erase.subject": "Mira",
    "input": "where is the kettle?",
    "query": "kettle",
    "search": "kettle",
    "lines": "1-2",
    "text": "boil the kettle dry",
    "description": "Boil the kettle",
    "confidence": 0.8,
    "category": "architecture",
    "limit": 2,
    "max_tokens": 500,
    "strategy": "threshold",
    "profile": "coding",
    "change_memories.filter": {"kinds": ["fact"]},
    "change_memories.action": "forget",
    "tag": "cache",
    "reason": "a test",
    "content": "Cups are white.",
    "program": "claude-code",
    "mcp_servers.name": "files",
    "messages": [{"role": "user", "content": "where is the kettle?"}],
    "expression": "confidence < 0.1",
    "message": "Have tea.",
}

# What a preview is made of, where the schema requires nothing.
PREVIEWED: Mapping[str, Mapping[str, Any]] = {
    "bulk": {"action": "forget", "kind": ["fact"]},
    "ask": {"input": "where is the kettle?"},
    "decide": {"description": "Boil the kettle", "confidence": 0.8, "reason": ["analysis:tea needs it"]},
    "erase": {"subject": "Mira"},
    "jobs run": {"job": "lifecycle"},
}


def choose_value(operation: Operation, parameter: Parameter, values: Mapping[str, Any]) -> Any:
    """A value for an input. Raises LookupError for one that is required and of which nothing is known."""
    for name in (f"{operation.verb}.{parameter.name}", parameter.name):
        if name in values:
            return values[name]
    return _make_sample(operation, parameter, parameter.schema)


def _make_sample(operation: Operation, parameter: Parameter, schema: Schema) -> Any:
    kind = schema.get("type", "")
    if "const" in schema or "enum" in schema:
        return schema.get("const") or schema["enum"][0]
    if kind == "array":
        return [_make_sample(operation, parameter, schema.get("items", {}))]
    if kind in SAMPLES:
        return SAMPLES[kind]
    if schema.get("format") == "date-time":
        return "2026-01-01T00:00:00Z"
    if parameter.is_required:
        raise LookupError(f"{operation.interface} {operation.name}: give a value for {parameter.name!r} in TEXTS")
    return "kettle"
