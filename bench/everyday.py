"""`python -m bench everyday`: tells short lives over HTTP, and counts what contexts show of them in other words."""

import asyncio
import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, NamedTuple, NotRequired

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from bench.daemon_process import run_daemon
from bench.environment import open_environment
from bench.run_metadata import RunStart, collect_run_metadata
from bench.scoring import mean
from newton.client import Client
from newton.client.context import ContextItem
from newton.cognition.assembly.fact_labels import OUTDATED
from newton.content.yaml_files import load_yaml
from newton.errors import ConfigError, InputError
from newton.memory import agents
from newton.runtime.access import tokens
from newton.runtime.access.tokens import TokenDraft
from newton.runtime.cli import formatting
from newton.runtime.cli.options import JsonOption, load_settings
from newton.runtime.cli.printing import say
from newton.runtime.wiring import AgentServices

HOUR = time(9, tzinfo=UTC)  # at which a statement is told
ASKED_AFTER = timedelta(days=1)  # between the last statement and now
MIN_SHARED_WORDS = 0.6  # of a text that belongs to a statement
EXTRACT_POLLS, POLL_SECONDS = 1_200, 0.05  # to wait for the extraction of facts from messages

_WORD = re.compile(r"\w+")


class EverydayQuestion(TypedDict):
    """A question. `want` are the keys of the statements that its context must show, `may` of those that it may show."""

    q: str
    want: list[str]
    may: NotRequired[list[str]]


class EverydayScenario(TypedDict):
    """A short life: statements by key, each with day, text and perhaps `message`, and questions about them.

    `changed` maps the key of a statement to that of the older one that it replaces. The pairs of `compatible` are both
    true.
    """

    id: str
    domain: str
    told: dict[str, tuple[date, str] | tuple[date, str, Literal["message"]]]
    asks: list[EverydayQuestion]
    changed: NotRequired[dict[str, str]]
    compatible: NotRequired[list[tuple[str, str]]]


_SCENARIOS = TypeAdapter(list[EverydayScenario])


class _Telling(NamedTuple):
    """A statement, its key, the day on which it is told, and whether `remember` or a message tells it."""

    key: str
    day: date
    text: str
    way: Literal["remember", "message"] = "remember"


class AskedQuestion(NamedTuple):
    """The contents of the context of a question. `old` are superseded statements without a sign that they are past."""

    text: str
    want: tuple[str, ...]
    missing: tuple[str, ...]
    old: tuple[str, ...]
    unrelated: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioResult:
    """The outcome of a scenario. `replaced` and `paired` are the changes that superseded, or are shown as a pair."""

    id: str
    asked: Sequence[AskedQuestion]
    changes: int
    replaced: Sequence[str] = ()
    paired: Sequence[str] = ()
    unseen: Sequence[str] = ()
    compatible: int = 0
    compatible_superseded: Sequence[str] = ()
    compatible_contested: Sequence[str] = ()
    wrongly_superseded: Sequence[str] = ()
    wrongly_contested: Sequence[str] = ()


@dataclass(slots=True)
class _Statements:
    """The statements of a scenario by key, and the key of each memory that is known to state one."""

    texts: dict[str, str] = field(default_factory=dict[str, str])
    keys: dict[str, str] = field(default_factory=dict[str, str])

    def find_key(self, memory_id: str, text: str) -> str:
        """Return the key of the statement that a memory contains, or its text if it contains none of them."""
        return self.keys.get(memory_id) or max(self.texts, key=lambda key: self._share(key, text), default=text)

    def _share(self, key: str, text: str) -> float:
        words = set(_words(text))
        return len(words & set(_words(self.texts[key]))) / max(1, len(words))


async def run_benchmark(scenarios: Path, *, json: JsonOption = False, details: bool = False) -> None:
    """Tell short lives over HTTP, ask about them in other words, and count what the contexts show.

    Each scenario gets an agent of its own in a temporary database. No language model is used.

    Example: python -m bench everyday tests/data/everyday_scenarios.yaml --details

    Parameters
    ----------
    scenarios:
        A YAML list of scenarios, such as `tests/data/everyday_scenarios.yaml`.
    details:
        Also print what is wrong in each scenario.
    """
    start, loaded = RunStart(), load_scenarios(scenarios)
    settings = load_settings().model_copy(update={"database_url": None, "model": None})
    async with open_environment(settings) as env:
        async with run_daemon(env.newton, env.owner_dsn) as daemon:
            results = [await run_scenario(env.newton, daemon.url, scenario) for scenario in loaded]
        digest = hashlib.sha256(repr(loaded).encode()).hexdigest()
        receipt = await collect_run_metadata(env, start, data_sha256=digest, budgets=[])
    figures = {**summarize(results), "receipt": receipt}
    if json:
        formatting.print_json({**figures, "failures": [line for one in results for line in describe_failures(one)]})
        return
    if details:
        for line in (line for one in results for line in describe_failures(one)):
            say(line)
    say(_format_figures(figures))


def load_scenarios(path: Path) -> list[EverydayScenario]:
    """Load scenarios. Raises InputError for another format, and ConfigError for invalid YAML."""
    try:
        return _SCENARIOS.validate_python(load_yaml(path).value, strict=False)
    except ValidationError as error:
        raise InputError(
            f"{path} has no scenarios: {error.errors()[0]['loc']}.", hint="See EverydayScenario."
        ) from None


async def run_scenario(newton: AgentServices, url: str, scenario: EverydayScenario) -> ScenarioResult:
    """Tell and ask one scenario as an agent of its own, over the HTTP API at `url`."""
    scope = newton.scope
    agent_id = await agents.get_or_create_agent(scope.db, f"everyday-{scenario['id']}", now=scope.now())
    async with scope.db.transaction(agent_id) as tx:
        token = await tokens.create_token(tx, TokenDraft("bench", "admin"), agent_id=agent_id, now=scope.now())
    async with Client(url, token=token) as client:
        statements = await _tell(client, scenario, today=newton.scope.now().date())
        asked = [await _ask(client, question, scenario, statements) for question in scenario["asks"]]
        return await _judge_changes(client, scenario, statements, asked)


async def _tell(client: Client, scenario: EverydayScenario, *, today: date) -> _Statements:
    """Tell all statements in order, shifted so that the last one was told a day ago."""
    statements = _Statements()
    entries = [
        _Telling(key, entry[0], entry[1], entry[2] if len(entry) > 2 else "remember")
        for key, entry in scenario["told"].items()
    ]
    shift = today - ASKED_AFTER - max(entry.day for entry in entries)
    for (day, way), group in groupby(entries, key=lambda entry: (entry.day, entry.way)):
        at = datetime.combine(day + shift, HOUR).isoformat()
        texts = {entry.key: entry.text for entry in group}
        statements.texts |= texts
        if way == "message":
            await _tell_messages(client, f"talk {day}", list(texts.values()), at)
            continue
        for key, text in texts.items():
            statements.keys[(await client.remember(text, at=datetime.fromisoformat(at)))["memory_id"]] = key
    return statements


async def _tell_messages(client: Client, session: str, texts: Sequence[str], at: str) -> None:
    await client.append_messages(session, [{"role": "user", "content": text, "at": at} for text in texts])
    await client.close_session(session)
    before = await _last_extraction(client)
    await client.post("/v1/jobs/extract/run", {})
    for _ in range(EXTRACT_POLLS):
        now = await _last_extraction(client)
        if now != before and now[1] == "done":
            return
        await asyncio.sleep(POLL_SECONDS)
    raise ConfigError(f"The job extract has not ended for {session!r}.", hint="Run the benchmark on an idle machine.")


async def _last_extraction(client: Client) -> tuple[str | None, str | None]:
    jobs = (await client.get("/v1/jobs"))["items"]
    return next((job["last_started_at"], job["state"]) for job in jobs if job["name"] == "extract")


async def _ask(
    client: Client, question: EverydayQuestion, scenario: EverydayScenario, statements: _Statements
) -> AskedQuestion:
    items = (await client.context(question["q"]))["items"]
    shown = {item["memory_id"]: statements.find_key(item["memory_id"], item["text"]) for item in items}
    past = set(scenario.get("changed", {}).values())
    allowed = {*question["want"], *question.get("may", [])}
    old = {shown[item["memory_id"]] for item in items if not _is_marked(item, items)} & past - allowed
    return AskedQuestion(
        question["q"],
        tuple(question["want"]),
        missing=tuple(key for key in question["want"] if key not in shown.values()),
        old=tuple(sorted(old)),
        unrelated=tuple(sorted(set(shown.values()) - allowed - past)),
    )


def _is_marked(item: ContextItem, items: Sequence[ContextItem]) -> bool:
    """Return whether an item shows that it may be past: as the older one of a pair, or by its label."""
    others = [one for one in items if one["memory_id"] in item["contradicts"]]
    return OUTDATED in item["text"] or any(one["told_at"] > item["told_at"] for one in others)


async def _judge_changes(
    client: Client, scenario: EverydayScenario, statements: _Statements, asked: Sequence[AskedQuestion]
) -> ScenarioResult:
    facts = [page async for page in client.iter_pages("/v1/memories", kinds="fact", states="all")]
    past = Counter(statements.find_key(f["memory_id"], f["text"]) for f in facts if f["state"] == "SUPERSEDED")
    contested = {
        frozenset(statements.find_key(pair[side]["memory_id"], pair[side]["text"]) for side in ("newer", "older"))
        for pair in (await client.conflicts())["items"]
    }
    changed = scenario.get("changed", {})
    pairs = {f"{newer} > {older}": (newer, older) for newer, older in changed.items()}
    replaced = [name for name, (_, older) in pairs.items() if older in past]
    paired = [name for name, pair in pairs.items() if frozenset(pair) in contested and name not in replaced]
    alike = [frozenset(pair) for pair in scenario.get("compatible", [])]
    wrong = set(past) - set(changed.values())
    known = [frozenset(pair) for pair in pairs.values()]
    return ScenarioResult(
        id=scenario["id"],
        asked=asked,
        changes=len(pairs),
        replaced=replaced,
        paired=paired,
        unseen=[name for name in pairs if name not in (*replaced, *paired)],
        compatible=len(alike),
        compatible_superseded=[_join(pair) for pair in alike if pair & wrong],
        compatible_contested=[_join(pair) for pair in alike if pair in contested],
        wrongly_superseded=sorted(wrong),
        wrongly_contested=[_join(pair) for pair in contested if pair not in known],
    )


def _join(pair: frozenset[str]) -> str:
    return " / ".join(sorted(pair))


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


def summarize(results: Sequence[ScenarioResult]) -> dict[str, Any]:
    """Return the figures of all scenarios as JSON. Shares are in [0, 1]."""
    asked = [one for result in results for one in result.asked]
    wanted, missing = sum(len(one.want) for one in asked), sum(len(one.missing) for one in asked)
    return {
        "scenarios": len(results),
        "questions": len(asked),
        "wanted": wanted,
        "wanted_shown": wanted - missing,
        "wanted_share": round(1 - missing / max(1, wanted), 3),
        "superseded_shown": sum(bool(one.old) for one in asked),
        "unrelated_per_question": round(mean([float(len(one.unrelated)) for one in asked]), 3),
        "changes": sum(result.changes for result in results),
        "changes_superseded": sum(len(result.replaced) for result in results),
        "changes_paired": sum(len(result.paired) for result in results),
        "compatible": sum(result.compatible for result in results),
        "compatible_superseded": sum(len(result.compatible_superseded) for result in results),
        "compatible_contested": sum(len(result.compatible_contested) for result in results),
        "wrongly_superseded": sum(len(result.wrongly_superseded) for result in results),
        "wrongly_contested": sum(len(result.wrongly_contested) for result in results),
    }


def describe_failures(result: ScenarioResult) -> list[str]:
    """Return a line for each failure of a scenario."""
    lines: list[str] = []
    for one in result.asked:
        parts = {"missing": one.missing, "superseded": one.old, "unrelated": one.unrelated}
        if failed := [f"{name} {', '.join(keys)}" for name, keys in parts.items() if keys]:
            lines.append(f"{result.id}: {one.text}: {'; '.join(failed)}")
    states = {
        "paired": result.paired,
        "not seen": result.unseen,
        "wrongly superseded": result.wrongly_superseded,
        "wrongly contested": result.wrongly_contested,
    }
    return [*lines, *(f"{result.id}: {name}: {', '.join(keys)}" for name, keys in states.items() if keys)]


def _format_figures(figures: Mapping[str, Any]) -> str:
    return (
        f"{figures['scenarios']} scenarios, {figures['questions']} questions:"
        f" {figures['wanted_shown']} of {figures['wanted']} wanted statements shown ({figures['wanted_share']:.1%}),"
        f" a superseded one shown as current in {figures['superseded_shown']} contexts,"
        f" {figures['unrelated_per_question']:.2f} unrelated ones in a context.\n"
        f"{figures['changes']} changes: {figures['changes_superseded']} superseded, {figures['changes_paired']} shown"
        f" as a dated pair. {figures['compatible']} compatible pairs: {figures['compatible_superseded']} superseded,"
        f" {figures['compatible_contested']} contested. Of all statements {figures['wrongly_superseded']} wrongly"
        f" superseded, {figures['wrongly_contested']} pairs wrongly contested."
    )
