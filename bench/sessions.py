"""`python -m bench sessions`: how often a context of a session is rebuilt, in a topic and when the topic changes."""

import asyncio
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table

from bench.environment import open_environment
from bench.run_metadata import RunStart, collect_run_metadata
from bench.scoring import p50_and_p95
from newton.agent.services.memories import FactDraft, MemoryService
from newton.cognition.bundles.bundle import Bundle
from newton.cognition.request import ContextBuildRequest, SentMessages
from newton.cognition.session_context.service import SessionContext, SessionContextService
from newton.cognition.session_context.staleness import CLOCK_SLACK_MS
from newton.content.yaml_files import parse_trusted
from newton.dialogue import sessions
from newton.dialogue.messages import Message
from newton.heart.identity.wish_models import find_standing_by_vector
from newton.memory.vectors import EmbeddingOutbox
from newton.runtime.cli import formatting
from newton.runtime.cli.options import JsonOption, load_settings
from newton.runtime.wiring import AgentServices

Part = Literal["all", "odd", "even"]

BUDGET = 8_000
PARTS: Mapping[Part, slice] = {"all": slice(None), "odd": slice(0, None, 2), "even": slice(1, None, 2)}
REFRESH_METHODS = ("built", "evicted")
RELEVANT_COSINE = 0.3  # of the best memory to the input; below it most are unrelated
LABELS: Mapping[str, str] = {
    "turns": "turns",
    "refresh_rate": "share of turns with a rebuilt context",
    "refresh_rate_with_first": "share of turns with a rebuilt context, first turns of sessions included",
    "updated": "share of turns with an updated context",
    "changes": "changes of topic",
    "changes_refreshed": "changes of topic with a rebuilt or updated context",
    "frame_flips": "changes of frame within a topic",
    "reasons": "reasons for rebuilding, with the number of each",
    "has_top_memory": "share of contexts with the best fact",
    "has_nearest": "share of contexts with the most similar fact",
    "has_relevant_top_memory": "share of contexts with the best fact, if it is relevant",
    "mean_items": "mean number of items in a context",
    "decision_ms": "milliseconds to decide whether to rebuild",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedSession:
    """A conversation about two topics. The second one begins with the turn number `change_at`, counted from 1."""

    id: str
    turns: Sequence[str]
    change_at: int
    memories: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedTurn:
    """A turn, and how its context came about: the method, its reason, and the frame.

    `top_memory` is the best fact in a context built only for this input, None if it has no fact, and `top_cosine` its
    cosine similarity. `has_top_memory` is whether the context of the session contains this fact.
    """

    session: str
    number: int
    text: str
    is_change: bool
    method: str
    reason: str
    frame: str
    item_count: int
    tokens: int
    decision_ms: float
    top_memory: str | None
    top_cosine: float
    has_top_memory: bool
    has_nearest: bool


def load_scripts(path: Path) -> list[ScriptedSession]:
    """Return the conversations in a YAML file. Other keys of an entry are ignored."""
    names = ("id", "turns", "change_at", "memories")
    return [ScriptedSession(**{name: entry[name] for name in names}) for entry in parse_trusted(path.read_text())]


def _hash_file(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def read_lines(path: Path) -> list[str]:
    """Return the lines of a text file."""
    return path.read_text().splitlines()


async def run_benchmark(
    file: Path,
    *,
    facts: Path | None = None,
    part: Part = "all",
    details: Annotated[bool, Parameter(negative=())] = False,
    json: JsonOption = False,
) -> None:
    """Replay scripted conversations on a temporary server, and count how often their contexts are rebuilt.

    The memories of all conversations are in one store. The first turn of a session is not counted.

    Example: python -m bench sessions conversations.yaml --facts facts.txt

    Parameters
    ----------
    file:
        YAML list of conversations with id, turns, change_at (number of the turn that changes the topic) and memories.
    facts:
        Text file of unrelated facts to store, one per line.
    part:
        Replay only the conversations at odd or even positions. The memories of all conversations are stored.
    details:
        With --json, also print each turn.
    """
    start, scripts, digest = RunStart(), load_scripts(file), _hash_file(file)
    unrelated = read_lines(facts) if facts else []
    async with open_environment(load_settings().model_copy(update={"database_url": None})) as env:
        await store_facts(env.newton, [*(fact for script in scripts for fact in script.memories), *unrelated])
        await asyncio.sleep(CLOCK_SLACK_MS / 1_000)  # memories stored just before a context count as new to it
        turns = [turn for script in scripts[PARTS[part]] for turn in await replay_session(env.newton, script)]
        receipt = await collect_run_metadata(env, start, data_sha256=digest, budgets=[BUDGET])
    figures = summarize(turns)
    if json:
        listed = [asdict(turn) for turn in turns] if details else []
        formatting.print_json({"figures": figures, "turns": listed, "receipt": receipt})
    else:
        _print_table(figures)


async def store_facts(newton: AgentServices, facts: Iterable[str]) -> None:
    """Store the facts, and embed them."""
    for fact in facts:
        await MemoryService(scope=newton.scope.at("bench")).remember(FactDraft(content=fact))
    assert newton.scope.embedder is not None
    await EmbeddingOutbox(
        newton.scope.db, newton.scope.embedder, newton.scope.agent_id, find_standing=find_standing_by_vector
    ).drain()


async def replay_session(newton: AgentServices, script: ScriptedSession) -> list[ReplayedTurn]:
    """Replay a conversation in a session of its own; return what was measured for each turn."""
    contexts, scope, replayed = newton.context_builder, newton.scope.at("bench"), list[ReplayedTurn]()
    async with scope.transaction() as tx:
        session_id = await sessions.ensure_session(tx, agent_id=scope.agent_id, ref=script.id, now=scope.clock.now())
    sent = SentMessages(session_id=session_id, first_position=0)
    for number, text in enumerate(script.turns, 1):
        request = ContextBuildRequest(
            agent_id=scope.agent_id, input=text, tokens=BUDGET, session_id=session_id, sent_messages=sent
        )
        context = await SessionContextService(builder=contexts).get_for_turn(request)
        fresh = await contexts.build(replace(request, session_id=None))
        replayed.append(_describe_turn(script, number, context, fresh))
        line = Message(role="user", content=text, said_at=scope.clock.now())
        async with scope.transaction() as tx:
            await sessions.append(tx, [line], session_id=session_id, ctx=scope.write_context())
    return replayed


def _describe_turn(script: ScriptedSession, number: int, context: SessionContext, fresh: Bundle) -> ReplayedTurn:
    facts = [item for item in fresh.items if item.kind == "fact"]
    top = max(facts, key=lambda item: item.score, default=None)
    nearest = max(facts, key=lambda item: item.features["cosine"], default=None)
    shown = {item.memory_id for item in context.bundle.items}
    return ReplayedTurn(
        session=script.id,
        number=number,
        text=script.turns[number - 1],
        is_change=number == script.change_at,
        method=context.method,
        reason=context.reason,
        frame=context.bundle.frame_choice.frame,
        item_count=len(context.bundle.items),
        tokens=context.bundle.tokens,
        decision_ms=round(context.decision_ms, 1),
        top_memory=top.text if top else None,
        top_cosine=round(top.features["cosine"], 3) if top else 0.0,
        has_top_memory=top is None or top.memory_id in shown,
        has_nearest=nearest is None or nearest.memory_id in shown,
    )


def summarize(turns: Sequence[ReplayedTurn]) -> dict[str, Any]:
    """Return the results of the sessions as JSON. The first turn of a session is not counted."""
    later = [turn for turn in turns if turn.number > 1]
    rebuilt = [turn for turn in later if turn.method in REFRESH_METHODS]
    changes = [turn for turn in later if turn.is_change]
    same_topic = [(before, turn) for before, turn in pairwise(turns) if turn.number > 1 and not turn.is_change]
    relevant = [turn for turn in later if turn.top_cosine >= RELEVANT_COSINE]
    return {
        "turns": len(later),
        "refresh_rate": _share(rebuilt, later),
        "refresh_rate_with_first": _share([t for t in turns if t.method in REFRESH_METHODS], turns),
        "updated": _share([turn for turn in later if turn.method == "updated"], later),
        "changes": len(changes),
        "changes_refreshed": sum(turn.method != "stood" for turn in changes),
        "frame_flips": sum(before.frame != turn.frame for before, turn in same_topic),
        "reasons": dict(Counter(re.sub(r"[\d.,%]+", "#", turn.reason) for turn in rebuilt).most_common()),
        "has_top_memory": _share([turn for turn in later if turn.has_top_memory], later),
        "has_nearest": _share([turn for turn in later if turn.has_nearest], later),
        "has_relevant_top_memory": _share([turn for turn in relevant if turn.has_top_memory], relevant),
        "mean_items": round(sum(turn.item_count for turn in later) / len(later), 1),
        "decision_ms": p50_and_p95([turn.decision_ms for turn in later]),
    }


def _share(part: Sequence[object], whole: Sequence[object]) -> float:
    return round(len(part) / max(len(whole), 1), 3)


def _print_table(figures: Mapping[str, Any]) -> None:
    table = Table("measurement", "value", title="Contexts of sessions about two topics")
    for name, value in figures.items():
        table.add_row(LABELS[name], str(value))
    Console().print(table)
