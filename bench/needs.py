"""`python -m bench needs`: whether contexts have what a careful colleague would bring, and how much besides."""

import json
import re
from collections.abc import AsyncGenerator, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

from cyclopts import Parameter

from bench.case_report import Case, CaseFinding, judge_cases, report_cases
from bench.environment import AtLeastOne
from bench.simulated_agent import SimulatedAgent
from newton.errors import InputError
from newton.runtime.transfer.import_source import read_file

OUTCOME = re.compile(r"^\s*(success|failure)\s*[:,.-]?\s*(.*)$", re.IGNORECASE | re.DOTALL)
_STEP = re.compile(r"\s*(?:\n+|(?<=[.;])\s+|\s(?=\(?\d[.)]\s))")
TITLE_CHARS = 80
KEYS = "select memory_id, ref, micro from memory.memories where agent_id = $1 and ref is not null"


async def run_benchmark(
    folder: Path,
    *,
    jobs: Annotated[int, AtLeastOne] = 2,
    out: Annotated[Path | None, Parameter(name="--json")] = None,
) -> None:
    """Import stores, build a context for each of their inputs, and compare it with what its author wanted in it.

    Each store is an agent of its own. No language model is used.

    Example: python -m bench needs stores --json needs.json

    Parameters
    ----------
    folder:
        Folder with a JSON file for each store: memories (key, date, kind, text) and inputs (text, need, must, may).
    jobs:
        Number of stores that are measured at a time.
    out:
        File for the figures and what went wrong in each store. They are printed as well.
    """
    stores = _list_stores(folder)
    report_cases(await judge_cases(stores, {"needs": ask_store}, jobs=jobs), out)


def _list_stores(folder: Path) -> list[tuple[str, str, Case]]:
    paths = sorted(folder.glob("*.json"))
    if not paths:
        raise InputError(f"{folder} has no stores.", hint="A store is a JSON file with memories and inputs.")
    return [(path.stem, "needs", json.loads(path.read_text(encoding="utf-8"))) for path in paths]


async def ask_store(agent: SimulatedAgent, store: Case) -> AsyncGenerator[CaseFinding]:
    """Import a store, and yield what the contexts of its inputs have, lack, and have besides."""
    keys = await _load(agent, store["memories"])
    for one in store["inputs"]:
        context = await agent.build_context(one["text"])
        shown = {keys[item.memory_id] for item in context.items if item.memory_id in keys}
        for finding in _compare(one, shown):
            if finding.count:
                yield finding


def _compare(asked: Mapping[str, Any], shown: set[str]) -> Iterator[CaseFinding]:
    need, must, may = asked["need"], set(asked["must"]), set(asked["may"])
    text = f"{asked['text']} {sorted(must - shown)}"
    if must:
        yield CaseFinding(f"{need}, recall", "shown", count=len(must & shown))
        yield CaseFinding(f"{need}, recall", "not shown", count=len(must - shown))
        yield CaseFinding(f"{need}, whole", "complete" if must <= shown else "incomplete", text)
    yield CaseFinding(f"{need}, precision", "relevant", count=len(shown & must))
    yield CaseFinding(f"{need}, precision", "of some help", count=len(shown & may))
    yield CaseFinding(f"{need}, precision", "other items", count=len(shown - must - may))


async def _load(agent: SimulatedAgent, memories: list[dict[str, Any]]) -> dict[UUID, str]:
    """Import memories, let the jobs of the night run, and return the key of each memory."""
    path = Path(agent.services.settings.data_dir) / f"{agent.services.scope.agent_id}.jsonl"
    path.write_text("\n".join(json.dumps(_to_line(one), ensure_ascii=False) for one in memories), encoding="utf-8")
    report = await agent.services.importer().run(read_file(path))
    if report.rejections:
        refused = f"The store has entries that cannot be imported: {report.rejections[:3]}."
        raise InputError(refused, hint="See docs/importing.md.")
    await agent.rest(nightly=True)
    async with agent.services.scope.transaction() as tx:
        rows = await tx.fetch(KEYS, agent.services.scope.agent_id)
    own = {one["key"] for one in memories}
    found = {row["memory_id"]: row["ref"] for row in rows if row["ref"] in own}
    names = {_name(one): one["key"] for one in memories if one["kind"] == "procedure"}
    return found | {row["memory_id"]: names[row["ref"]] for row in rows if row["ref"] in names}


def _name(memory: Mapping[str, Any]) -> str:
    return re.sub(r"[^a-z0-9]+", "-", f"{memory['key']} {memory['text'].split(':')[0]}".lower())[:60].strip("-")


def _to_line(memory: Mapping[str, Any]) -> dict[str, Any]:
    """Return a memory of a store as a line of an import file."""
    text, line = memory["text"], {"ref": memory["key"], "at": f"{memory['date']}T09:00:00Z"}
    match memory["kind"]:
        case "decision":
            found = OUTCOME.match(memory.get("outcome") or "")
            verdict = {"outcome": found[1].lower(), "lesson": found[2] or None} if found else {}
            return line | {"type": "decision", "description": text, "confidence": memory["confidence"], **verdict}
        case "procedure":
            steps = memory.get("steps") or [one for one in _STEP.split(text) if one]
            return {"type": "procedure", "name": _name(memory), "description": text.split(":")[0], "steps": steps}
        case "episode":
            return line | {"type": "episode", "title": text[:TITLE_CHARS], "content": text}
        case _:
            return line | {"type": "fact", "content": text}
