"""`python -m bench told`: whether what people type is understood as they mean it, case by case, without a model."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from bench.case_report import Case, judge_cases, report_cases
from bench.environment import AtLeastOne
from bench.told_cases import JUDGES
from newton.errors import InputError


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
    report_cases(await judge_cases(cases, JUDGES, jobs=jobs), out)


def load_cases(folder: Path, kinds: Sequence[str]) -> list[tuple[str, str, Case]]:
    """Return person, kind and case of each line. Raises InputError for a folder without such files."""
    paths = [path for kind in kinds for path in sorted(folder.rglob(f"{kind}.jsonl"))]
    if not paths:
        raise InputError(f"{folder} has no cases of {', '.join(kinds)}.", hint=f"Files: {', '.join(JUDGES)} (.jsonl).")
    rows = [(path.parent.name, path.stem, line) for path in paths for line in path.read_text().splitlines()]
    return [(person, kind, json.loads(line)) for person, kind, line in rows if line.strip()]
