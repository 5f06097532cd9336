"""Cases that are told to agents of their own: judging them side by side, and the report of what became of each."""

import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from bench.environment import open_environment
from bench.simulated_agent import SimulatedAgent, StoredFact, create_agent
from newton.runtime.cli.options import load_settings
from newton.runtime.cli.printing import say

ALL = "all"  # persons, in the figures
RIGHT = frozenset(
    {
        *("kept", "left out", "right", "right, the older was no fact", "both current", "only the older is a fact"),
        *("the older was no fact", "done", "done, asked first", "nothing", "no conflict"),
        *("not rebuilt", "confirmed", "shown", "counted", "not stale", "relevant", "other tokens", "complete"),
    }
)

Case: TypeAlias = Mapping[str, Any]


class CaseFinding(NamedTuple):
    """The outcome of a case, or of a part of it, in one of the measures, and the part itself; or a number of these."""

    measure: str
    outcome: str
    part: str = ""
    count: int = 1

    @property
    def is_right(self) -> bool:
        return self.outcome in RIGHT


class JudgedCase(NamedTuple):
    """A case of a person with what was found, and what memory held in the end if something is wrong."""

    person: str
    case: Case
    findings: Sequence[CaseFinding]
    held: Sequence[str]


CaseJudge: TypeAlias = Callable[[SimulatedAgent, Case], AsyncGenerator[CaseFinding]]


async def judge_cases(
    cases: Sequence[tuple[str, str, Case]], judges: Mapping[str, CaseJudge], *, jobs: int
) -> list[JudgedCase]:
    """Tell each case (person, kind, content) to an agent of its own, `jobs` at a time, and return what became of it."""
    room = asyncio.Semaphore(jobs)

    async def judge(number: int, person: str, kind: str, case: Case) -> JudgedCase:
        async with room:
            agent = await create_agent(env.newton, f"case-{number}")
            findings = [one async for one in judges[kind](agent, case)]
            is_wrong = any(not one.is_right for one in findings)
            return JudgedCase(person, case, findings, _describe_memory(await agent.read_facts()) if is_wrong else ())

    async with open_environment(load_settings().model_copy(update={"model": None})) as env:
        return await asyncio.gather(*(judge(number, *case) for number, case in enumerate(cases)))


def report_cases(judged: Sequence[JudgedCase], out: Path | None) -> None:
    """Print the figures, and print the cases that went wrong or write both to the file `out`."""
    figures, misses = summarize(judged), [describe_miss(one) for one in judged if one.held]
    if out:
        out.write_text(json.dumps({"figures": figures, "misses": misses}, ensure_ascii=False, indent=1))
    else:
        say(json.dumps(misses, ensure_ascii=False, indent=1))
    say(format_figures(figures))


def _describe_memory(facts: Sequence[StoredFact]) -> list[str]:
    return [one.text if one.is_current else f"(past) {one.text}" for one in facts if not one.is_merged] or ["no fact"]


def summarize(judged: Sequence[JudgedCase]) -> dict[str, Any]:
    """Return the outcomes of each measure with their counts, per person and of all, and the share that is right."""
    counts = defaultdict[str, dict[str, Counter[str]]](lambda: defaultdict(Counter))
    for one in judged:
        for finding in one.findings:
            for person in (ALL, one.person):
                counts[person][finding.measure][finding.outcome] += finding.count
    return {
        person: {
            name: {"of": found.total(), "right": round(_count_right(found) / found.total(), 3), "outcomes": found}
            for name, found in sorted(measures.items())
        }
        for person, measures in counts.items()
    }


def _count_right(found: Counter[str]) -> int:
    return sum(count for outcome, count in found.items() if outcome in RIGHT)


def describe_miss(judged: JudgedCase) -> dict[str, Any]:
    """Return a case that went wrong as JSON, with what was found and what memory held."""
    found = [one for one in judged.findings if not one.is_right and one.count == 1]
    wrong = [f"{one.measure}: {one.outcome} {one.part}".strip() for one in found]
    return {"person": judged.person, "wrong": wrong, "case": judged.case, "held": judged.held}


def format_figures(figures: Mapping[str, Any]) -> str:
    """Return the figures as lines: each measure of all, then the shares that are right by person."""
    lines = list[str]()
    for name, found in figures[ALL].items():
        outcomes = ", ".join(f"{count} {outcome}" for outcome, count in found["outcomes"].items())
        persons = " ".join(
            f"{who} {one[name]['right']:.2f}" for who, one in figures.items() if who != ALL and name in one
        )
        lines.append(f"{name}: {found['right']:.3f} of {found['of']} right ({outcomes}); {persons}")
    return "\n".join(lines)
