"""`python -m bench lives`: people tell of their life for weeks, and what is known and shown of it at the end."""

import json
import re
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Annotated
from uuid import UUID

from cyclopts import Parameter

from bench.case_report import Case, CaseFinding, judge_cases, report_cases
from bench.environment import AtLeastOne
from bench.sessions import REFRESH_METHODS
from bench.simulated_agent import MESSAGE_GAP, SimulatedAgent, StoredFact, has_words
from newton.cognition.assembly.fact_labels import ALTERNATIVE, EARLIER, MAYBE_OUTDATED, OUTDATED, UNSETTLED, UNTIL
from newton.cognition.bundles.bundle import Bundle
from newton.errors import InputError

CHANGES_FROM = 21  # the day from which messages change what was told
ASKED_ON = 42  # the day of the questions, if the file does not say it
ABOUT_ME, MY_NAME = "What do you know about me?", "What is my name?"
USER = "user"  # whom a fact is about
LABEL = re.compile(
    rf"^\W*(?:{ALTERNATIVE}|{EARLIER})\b|^[^:]*\b(?:{OUTDATED}|{MAYBE_OUTDATED}|{UNSETTLED}|{UNTIL})\b[^:]*:"
)
COUNT = re.compile(r"^- (\d+) facts?, (\d+) shown", re.MULTILINE)  # of a profile
REPLY = re.compile(r"^\[[\d-]{10}\] Assistant: ")  # at the beginning of a memory


async def run_benchmark(
    folder: Path,
    *,
    replies: Annotated[bool, Parameter(negative="--no-replies")] = True,
    jobs: Annotated[int, AtLeastOne] = 2,
    out: Annotated[Path | None, Parameter(name="--json")] = None,
) -> None:
    """Tell lives day by day to agents of their own, with given replies, and count what is known and shown at the end.

    Each day is a session, and the jobs of the night run between days. No language model reads the messages.

    Example: python -m bench lives people --json lives.json

    Parameters
    ----------
    folder:
        Folder with a JSON file for each person: name, told, facts, changed and questions.
    replies:
        Let a model that knows only the given replies answer, or let no model answer, so that turns quote memory.
    jobs:
        Number of lives that are told at a time.
    out:
        File for the figures and what went wrong in each life. They are printed as well.
    """
    report_cases(await judge_cases(load_lives(folder, replies=replies), {"lives": live}, jobs=jobs), out)


def load_lives(folder: Path, *, replies: bool) -> list[tuple[str, str, Case]]:
    """Return the person, the kind and the content of each life. Raises InputError for a folder without lives."""
    paths = sorted(folder.glob("*.json"))
    if not paths:
        raise InputError(f"{folder} has no lives.", hint="A life is a JSON file.")
    lives = [(path.stem, json.loads(path.read_text(encoding="utf-8"))) for path in paths]
    if not replies:
        lives = [(person, {**life, "told": [{**one, "reply": ""} for one in life["told"]]}) for person, life in lives]
    return [(person, "lives", life) for person, life in lives]


async def live(agent: SimulatedAgent, life: Case) -> AsyncGenerator[CaseFinding]:
    """Tell a life, and yield what is found on the way and at the end."""
    start, times = agent.clock.now(), dict[str, datetime]()
    told = sorted(life["told"], key=lambda one: one["day"])
    early = [one for one in told if one["day"] < CHANGES_FROM]
    async for finding in _tell(agent, early, start, times):
        yield finding
    for one in life["questions"]:
        if not one.get("not"):
            for finding in _count_relevant("precision, before", one, await agent.build_context(one["ask"])):
                yield finding
    async for finding in _tell(agent, told[len(early) :], start, times):
        yield finding
    last = max(one.get("day", ASKED_ON) for one in life["questions"])
    await agent.rest(start + timedelta(days=last), nightly=True)
    end = LifeEnd(agent, life, times, await agent.read_facts(), await agent.read_rules())
    for finding in (*end.judge_changes(), *await end.judge_conflicts(), *await end.judge_confirmations()):
        yield finding
    async for finding in end.ask():
        yield finding


async def _tell(
    agent: SimulatedAgent, lines: Iterable[Case], start: datetime, times: dict[str, datetime]
) -> AsyncGenerator[CaseFinding]:
    """Tell lines day by day, keep the time of each in `times`, and yield whether its turn rebuilt the context."""
    for day, group in groupby(lines, key=lambda one: one["day"]):
        await agent.rest(start + timedelta(days=day), nightly=True)
        for number, line in enumerate(group):
            method, reason = await agent.converse(f"day {day}", line["text"], line["reply"])
            times[line["id"]] = agent.clock.now()
            if number:  # a session begins with a context
                yield CaseFinding("turns", "rebuilt" if method in REFRESH_METHODS else "not rebuilt", reason)


class LifeEnd:
    """The knowledge of an agent at the end of a life, compared with what was told."""

    def __init__(
        self,
        agent: SimulatedAgent,
        life: Case,
        times: Mapping[str, datetime],
        facts: Sequence[StoredFact],
        rules: Sequence[str],
    ) -> None:
        self.agent, self.life, self.times, self.facts, self.rules = agent, life, times, facts, rules
        self.gold: Mapping[str, Case] = {one["id"]: one for one in life["facts"]}
        self.changed = {one["old"] for one in life["changed"]}

    def _list_told(self, line: str) -> list[StoredFact]:
        """Return the facts that come from a line."""
        said_at = self.times[line]
        return [one for one in self.facts if said_at - MESSAGE_GAP < one.said_at <= said_at]

    def judge_changes(self) -> Iterator[CaseFinding]:
        """Yield whether of each change the old value is no current fact, and the new one is, or is in force."""
        current = [*(one.text for one in self.facts if one.is_current), *self.rules]
        for change in self.life["changed"]:
            older = self._list_told(self.gold[change["old"]]["from"])
            stale = [one.text for one in older if one.is_current and _has_all(one.text, change["gone"])]
            is_known = any(_has_all(text, change["new"]) for text in current)
            outcome = "the old is current" if stale else "right" if is_known else "the new is not known"
            yield CaseFinding("changes", outcome, f"{change['by']} {stale or change['new']}")
            yield CaseFinding(f"changes, {change['kind']}", outcome)

    async def judge_conflicts(self) -> list[CaseFinding]:
        """Return which statements that nothing changed are replaced or unsettled."""
        pairs, found = await self.agent.list_conflicts(), list[CaseFinding]()
        ids = {line: {one.memory_id for one in self._list_told(line)} for line in self.times}
        known = [(ids[self.gold[one["old"]]["from"]], ids[one["by"]]) for one in self.life["changed"]]
        false = [pair for pair in pairs if not any(pair & older and pair & newer for older, newer in known)]
        unsettled = frozenset[UUID]().union(*false)
        sources = {self.gold[one]["from"] for one in self.changed}
        for line in self.times.keys() - sources:
            for fact in self._list_told(line):
                outcome = "kept" if fact.is_current or fact.is_merged else "replaced"
                outcome = "unsettled" if fact.memory_id in unsettled else outcome
                found.append(CaseFinding("unchanged facts", outcome, fact.text))
        return found

    async def judge_confirmations(self) -> list[CaseFinding]:
        """Return how many facts were confirmed, as the metrics of the agent count them."""
        counts = await self.agent.count_confirmed()
        names = ("told once", "confirmed")
        return [CaseFinding("facts", name, count=count) for name, count in zip(names, counts, strict=True)]

    async def ask(self) -> AsyncGenerator[CaseFinding]:
        """Ask the questions, and yield what their contexts show."""
        for one in self.life["questions"]:
            context = await self.agent.build_context(one["ask"])
            is_answered = all(_has_all(context.text, [word]) for word in one["want"])
            yield CaseFinding("answers", "shown" if is_answered else "not shown", one["ask"])
            if one.get("not"):
                stale = [line for line in context.text.splitlines() if _is_stale(line, one)]
                yield CaseFinding("contexts", "stale" if stale else "not stale", f"{one['ask']} {stale}")
            else:
                for finding in _count_relevant("precision, after", one, context):
                    yield finding
            replies = sum(item.tokens for item in context.items if REPLY.match(item.text))
            yield CaseFinding("tokens", "restated by the assistant", count=replies)
            yield CaseFinding("tokens", "other tokens", count=context.tokens - replies)
        name = (await self.agent.build_context(MY_NAME)).text
        yield CaseFinding("name", "shown" if has_words(name, self.life["name"]) else "not shown")
        for finding in self._judge_profile(await self.agent.build_context(ABOUT_ME)):
            yield finding

    def _judge_profile(self, context: Bundle) -> Iterator[CaseFinding]:
        """Yield whether a profile shows each fact that still holds, or counts it among those that did not fit."""
        count = COUNT.search(context.text)
        left_out = int(count[1]) - int(count[2]) if count else 0
        for fact in self.life["facts"]:
            if fact["id"] not in self.changed:
                is_shown = any(_has_all(line, fact["words"]) for line in context.text.splitlines())
                is_counted, left_out = not is_shown and left_out > 0, left_out - (not is_shown)
                outcome = "shown" if is_shown else "counted" if is_counted else "not shown"
                whose = "about me" if fact["about"] == USER else "about me, other persons and things"
                yield CaseFinding(whose, outcome, str(fact["words"]))


def _count_relevant(measure: str, question: Case, context: Bundle) -> Iterator[CaseFinding]:
    """Yield how many items of a context have words of the answer, and how many have none."""
    relevant = sum(any(_has_all(item.text, [word]) for word in question["want"]) for item in context.items)
    yield CaseFinding(measure, "relevant", count=relevant)
    yield CaseFinding(measure, "other items", count=len(context.items) - relevant)


def _is_stale(line: str, question: Case) -> bool:
    is_new = all(_has_all(line, [word]) for word in question["want"])
    return _has_all(line, question["not"]) and not is_new and not LABEL.match(line)


def _has_all(text: str, words: Iterable[str]) -> bool:
    """Return whether a text has each of these; one may have alternatives, between which `|` stands."""
    return all(any(has_words(text, one) for one in group.split("|")) for group in words)
