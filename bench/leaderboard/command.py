"""`python -m bench leaderboard`: all systems on all public data sets at hand, as one page with receipts."""

import json as json_format
import platform
import shlex
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from bench.environment import AtLeastOne, BenchEnvironment, open_environment
from bench.leaderboard.collection import CollectedResults, collect_results
from bench.leaderboard.measurement import LeaderboardRun
from bench.leaderboard.page import render_markdown
from bench.leaderboard.public_sets import DatasetSelection, LoadedDataset, Split, describe_missing, load_datasets
from bench.leaderboard.receipts import ReceiptStore
from bench.leaderboard.report import LeaderboardReport, report_to_json
from bench.leaderboard.rival_process import find_interpreter, run_rivals
from bench.leaderboard.systems import (
    RIVAL_TITLES,
    SYSTEM_TITLES,
    MeasuredSystem,
    NewtonSystem,
    list_baselines,
    list_rivals,
)
from bench.recall import DEFAULT_BUDGETS
from bench.run_metadata import describe_machine
from newton import __version__
from newton.errors import InputError
from newton.providers import token_counter
from newton.runtime.cli import formatting
from newton.runtime.cli.options import JsonOption, load_settings

RECEIPTS_FOLDER = "receipts"


async def run_benchmark(
    data: Path,
    output: Path,
    *,
    budget: Annotated[list[int] | None, AtLeastOne, Parameter(negative=())] = None,
    split: Annotated[list[Split] | None, Parameter(negative=())] = None,
    conversations: Annotated[int | None, AtLeastOne] = None,
    limit: Annotated[int | None, AtLeastOne] = None,
    system: Annotated[list[str] | None, Parameter(negative=())] = None,
    rivals: Path | None = None,
    measure: bool = True,
    json: JsonOption = False,
) -> None:
    """Measure Newton, plain baselines and other memory libraries on public data sets, and write one page.

    It writes leaderboard.md, leaderboard.json and a receipt of every context. Results that are
    stored are kept, so an interrupted run continues. It uses a temporary database, not your memories.

    Example: python -m bench leaderboard ./data ./leaderboard --split "held out" --rivals ./.venv-rivals

    Parameters
    ----------
    data:
        A folder with a subfolder for each data set (locomo, beam100k, or your own), in the format of `python -m bench
        recall`.
    output:
        The folder of the page and the receipts.
    budget:
        Maximum tokens of a context; repeatable. Default: 500, 1000, 2000, 4000 and 8000.
    split:
        Use only conversations that are held out from tuning, tuned on, or unknown; repeatable.
    conversations:
        Use only the first CONVERSATIONS conversations of each split.
    limit:
        Use only the first LIMIT questions of each conversation.
    system:
        Measure only these systems: newton, bm25, vectors, fusion, mem0, langgraph; repeatable.
    rivals:
        The Python environment with mem0 and LangGraph. Default: .venv-rivals in the current folder, or that of Newton.
    measure:
        With --no-measure, only write the page again from the stored receipts.
    """
    check_systems(system or ())
    selection = DatasetSelection(frozenset(split or ()), conversations, limit)
    datasets, missing = load_datasets(data, selection)
    if missing:
        formatting.print_notice(describe_missing(missing))
    store, budgets = ReceiptStore(output / RECEIPTS_FOLDER), sorted(set(budget or DEFAULT_BUDGETS))
    not_measured: Mapping[str, str] = {}
    if measure:
        async with open_systems(rivals, system or ()) as opened:
            not_measured = opened.not_installed
            await _measure_all(opened, store, datasets, budgets)
    collected = collect_results(store, datasets, budgets)
    # a library whose stored results are shown is not missing
    absent = {title: command for title, command in not_measured.items() if title not in collected.titles}
    report = LeaderboardReport(
        about=_describe_run(collected, _format_command(budgets, selection)),
        results=collected.results,
        missing=missing,
        not_measured=absent,
    )
    _write_files(output, report)
    if json:
        formatting.print_json(report_to_json(report))


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedSystems:
    """All systems of a run on one environment, and the pip commands of libraries that are not installed."""

    env: BenchEnvironment
    systems: Sequence[MeasuredSystem]
    not_installed: Mapping[str, str]
    machine: Mapping[str, Any]

    def start_run(self, store: ReceiptStore, budgets: Sequence[int]) -> LeaderboardRun:
        """Return a run. Raises InputError without an embedding model."""
        scope = self.env.newton.scope
        if scope.embedder is None:
            raise InputError(
                "The leaderboard needs an embedding model.", hint="Unset NEWTON_EMBEDDING_PROVIDER, or set a model."
            )
        return LeaderboardRun(
            store=store,
            scope=scope,
            embedder=scope.embedder,
            budgets=budgets,
            machine=self.machine,
            report_progress=formatting.print_notice,
        )


@asynccontextmanager
async def open_systems(rivals: Path | None, wanted: Collection[str]) -> AsyncGenerator[OpenedSystems]:
    """Open a temporary database and the process of the other libraries; yield the wanted systems, or all."""
    async with AsyncExitStack() as stack:
        settings = load_settings()
        env = await stack.enter_async_context(open_environment(settings))
        version = f"{__version__}, profile {settings.profile or 'of the frame'}"
        systems: list[MeasuredSystem] = [NewtonSystem(env.newton, version=version), *list_baselines()]
        not_installed: Mapping[str, str] = {}
        if not wanted or RIVAL_TITLES.keys() & set(wanted):
            process = await stack.enter_async_context(run_rivals(find_interpreter(rivals)))
            installed, not_installed = await list_rivals(process)
            systems += installed
        yield OpenedSystems(
            env=env,
            systems=[one for one in systems if not wanted or one.key in wanted],
            not_installed=not_installed,
            machine=await describe_machine(env.newton),
        )


async def _measure_all(
    opened: OpenedSystems, store: ReceiptStore, datasets: Sequence[LoadedDataset], budgets: Sequence[int]
) -> None:
    run = opened.start_run(store, budgets)
    for dataset, conversations in datasets:
        for conversation in conversations:
            texts = run.read_texts(conversation)
            for system in opened.systems:
                await run.measure(dataset.folder, system, texts)


def check_systems(wanted: Sequence[str]) -> None:
    """Raise InputError for a name that is no system."""
    unknown = sorted(set(wanted) - SYSTEM_TITLES.keys())
    if unknown:
        raise InputError(f"Unknown system: {', '.join(unknown)}.", hint=f"Use {', '.join(SYSTEM_TITLES)}.")


def _format_command(budgets: Sequence[int], selection: DatasetSelection) -> str:
    """Return the command that measures the same anew, with DATA and OUTPUT for the folders."""
    words = ["newton", "bench", "leaderboard", "DATA", "OUTPUT"]
    words += [word for split in sorted(selection.splits) for word in ("--split", split)]
    if budgets != list(DEFAULT_BUDGETS):
        words += [word for budget in budgets for word in ("--budget", str(budget))]
    limits = {"--conversations": selection.conversations, "--limit": selection.questions}
    words += [word for name, limit in limits.items() if limit for word in (name, str(limit))]
    return shlex.join(words)


def _describe_run(collected: CollectedResults, command: str) -> dict[str, str]:
    """Return what is needed to repeat the run, as text by name."""
    tokens = f"{token_counter.ENCODING} (tiktoken)"
    libraries = f"Python {platform.python_version()}"
    return {"command": command, "tokens counted with": tokens, "page written with": libraries, **collected.about}


def _write_files(output: Path, report: LeaderboardReport) -> None:
    files = {
        "leaderboard.md": render_markdown(report),
        "leaderboard.json": json_format.dumps(report_to_json(report), ensure_ascii=False, indent=1) + "\n",
    }
    for name, text in files.items():
        path = output / name
        try:
            output.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            hint = "Give a folder that you may write."
            raise InputError(f"{path} cannot be written: {error.strerror}.", hint=hint) from None
    formatting.print_notice(f"Written to {output / 'leaderboard.md'}, with leaderboard.json.")
