"""`python -m bench told`: whether what people type is understood as they mean it, case by case, without a model."""

import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from cyclopts import Parameter

from bench.environment import AtLeastOne, open_environment
from bench.simulated_agent import StoredFact, create_agent
from bench.told_cases import JUDGES, RIGHT, Case, Finding
from newton.errors import InputError
from newton.runtime.cli.options import load_settings
from newton.runtime.cli.printing import say
from newton.runtime.wiring import AgentServices

ALL = "all"


class JudgedCase(NamedTuple):
    """A case of a person with what was found, and what memory held in the end if something is wrong."""

    person: str
    case: Case
    findings: Sequence[Finding]
    held: Sequence[str]


async def run_benchmark(
    folder: Path,
    *,
    kinds: Annotated[Sequence[str], Parameter(consume_multiple=True)] = (),
    jobs: Annotated[int, AtLeastOne] = 2,
    out: Annotated[Path | None, Parameter(name="--json")] = None,
) -> None:
    """Tell the messages of each case to an agent of its own, and compare what it knows with what was meant.

    No language model is used. Older statements are told three weeks before newer ones.

    Example: python -m bench told people --kinds corrections wills --json told.json

    Parameters
    ----------
    folder:
        Folder with a folder for each person, or of one person: `commitment.jsonl` and others, one case a line.
    kinds:
        The names of the files without ending. Default: all.
    jobs:
        Number of cases that are told at a time.
    out:
        File for the figures and each miss with what memory held. They are printed as well.
    """
    cases = load_cases(folder, kinds or tuple(JUDGES))
    async with open_environment(load_settings().model_copy(update={"model": None})) as env:
        room = asyncio.Semaphore(jobs)
        numbered = enumerate(cases)
        judged = await asyncio.gather(*(_judge(env.newton, f"told-{n}", *case, room) for n, case in numbered))
    figures, misses = summarize(judged), [describe_miss(one) for one in judged if one.held]
    if out:
        out.write_text(json.dumps({"figures": figures, "misses": misses}, ensure_ascii=False, indent=1))
    else:
        say(json.dumps(misses, ensure_ascii=False, indent=1))
    say(format_figures(figures))


def load_cases(folder: Path, kinds: Sequence[str]) -> list[tuple[str, str, Case]]:
    """Return person, kind and case of each line. Raises InputError for a folder without such files."""
    paths = [path for kind in kinds for path in sorted(folder.rglob(f"{kind}.jsonl"))]
    if not paths:
        raise InputError(f"{folder} has no cases of {', '.join(kinds)}.", hint=f"Files: {', '.join(JUDGES)} (.jsonl).")
    rows = [(path.parent.name, path.stem, line) for path in paths for line in path.read_text().splitlines()]
    return [(person, kind, json.loads(line)) for person, kind, line in rows if line.strip()]


async def _judge(newton: AgentServices, name: str, person: str, kind: str, case: Case, room: asyncio.Semaphore) -> Any:
    async with room:
        agent = await create_agent(newton, name)
        findings = [one async for one in JUDGES[kind](agent, case)]
        facts = await agent.read_facts()
        is_wrong = any(not one.is_right for one in findings)
        return JudgedCase(person, case, findings, _describe_memory(facts) if is_wrong else ())


def _describe_memory(facts: Sequence[StoredFact]) -> list[str]:
    return [one.text if one.is_current else f"(past) {one.text}" for one in facts if not one.is_merged] or ["no fact"]


def summarize(judged: Sequence[JudgedCase]) -> dict[str, Any]:
    """Return the outcomes of each measure with their counts, per person and of all, and the share that is right."""
    counts = defaultdict[str, dict[str, Counter[str]]](lambda: defaultdict(Counter))
    for one in judged:
        for finding in one.findings:
            for person in (ALL, one.person):
                counts[person][finding.measure][finding.outcome] += 1
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
    wrong = [f"{one.measure}: {one.outcome} {one.part}".strip() for one in judged.findings if not one.is_right]
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
