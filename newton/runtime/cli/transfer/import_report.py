"""The report of `newton import` on a source and on an import, and the run of an import with its progress."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from newton.operations.text_format import format_redactions, pluralize
from newton.runtime.cli import formatting
from newton.runtime.cli.command_agent import open_own_agent
from newton.runtime.cli.command_context import current_terminal
from newton.runtime.cli.options import load_settings
from newton.runtime.cli.printing import say
from newton.runtime.transfer.import_source import ImportReport, ImportSource, RejectedEntry, SourceSummary

MAX_SHOWN_REJECTIONS = 20
SUMMARY_COUNTS = ("sessions", "messages", "facts", "documents", "decisions", "others")


async def run_import(source: ImportSource, total: int | None, *, agent: str | None) -> ImportReport:
    """Import a source with a progress bar, compare the new facts with known ones, and return the counts.

    `total` is the number of its items; None if it is unknown. An interrupted import prints how to complete it.
    """
    async with open_own_agent(
        load_settings(agent), on_new_agent=formatting.print_new_agent, on_notice=formatting.print_notice
    ) as newton:
        with progress_bar() as progress:
            task = progress.add_task("importing", total=total)
            try:
                report = await newton.importer().run(source, progress=lambda count: progress.advance(task, count))
            except asyncio.CancelledError:
                formatting.print_notice("Stopped. What was read so far is stored; the same command continues.")
                raise
            progress.update(task, description="comparing facts")
            await newton.maintenance("import").compare_facts()
    return report


def progress_bar(*, is_silent: bool = False) -> Progress:
    """Return a progress bar on standard error. It is hidden if `is_silent` or if standard error is no terminal."""
    is_hidden = is_silent or not current_terminal().shows_progress()
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True, disable=is_hidden)


def print_summary(summary: SourceSummary, source: ImportSource, path: Path, *, preview: bool, json: bool) -> None:
    """Print the format, the counts and the rejected entries of a source. With `json`, only print those of a preview."""
    if preview and json:
        times = {"first": summary.first, "last": summary.last}
        formatting.print_json(
            {
                "format": source.format,
                **{name: getattr(summary, name) for name in SUMMARY_COUNTS},
                **{name: time and time.isoformat() for name, time in times.items()},
                "passed_over": dict(source.passed_over),
                "rejected": rejections_to_json(summary.rejections),
            }
        )
    elif not json:
        say(f"{path} is {source.format}: {_format_counts(summary)}.")
        print_left_out(source.passed_over, summary.rejections)


def _format_counts(summary: SourceSummary) -> str:
    counts = [
        pluralize(summary.sessions, "conversation"),
        pluralize(summary.messages, "message"),
        pluralize(summary.facts, "fact"),
        pluralize(summary.documents, "document"),
        pluralize(summary.decisions, "decision"),
        pluralize(summary.others, "other item"),
        f"{summary.rejected:,} that cannot be read",
    ]
    period = f", {summary.first:%Y-%m-%d} to {summary.last:%Y-%m-%d}" if summary.first and summary.last else ""
    return (", ".join(one for one in counts if not one.startswith("0 ")) or "nothing to import") + period


def print_report(report: ImportReport, source: ImportSource, *, json: bool) -> None:
    """Print what an import stored, and what it left out, as text or as JSON."""
    if json:
        formatting.print_json(
            {
                "new": report.new,
                "unchanged": report.unchanged,
                "episodes": report.episodes,
                "embedded": report.embedded,
                "redacted": report.redacted,
                "passed_over": dict(source.passed_over),
                "rejected": rejections_to_json(report.rejections),
                "embedder_error": report.embedder_error,
                "undecided": report.undecided,
            }
        )
        return
    episodes = f", {pluralize(report.episodes, 'episode')} created from sessions" if report.episodes else ""
    say(f"{report.new} new, {report.unchanged} unchanged{episodes}.")
    if report.redacted:
        say(format_redactions(report.redacted))
    if report.embedder_error:
        formatting.print_notice(
            f"(The memories are not embedded: {report.embedder_error}. Search finds them by their words only. To embed"
            " them, import the file again.)"
        )
    if report.undecided:
        many = pluralize(len(report.undecided), "conversation")
        formatting.print_notice(
            f"In {many}, somebody asks to forget something, and several statements may be meant; none was forgotten:"
            f" {', '.join(report.undecided[:MAX_SHOWN_REJECTIONS])}. Continue one with newton chat --session, and say"
            " what to forget."
        )
    if report.rejections:
        print_rejections(report.rejections)
        many = pluralize(len(report.rejections), "entry", "entries")
        formatting.print_notice(f"{many} rejected. Correct them and import the file again.")


def rejections_to_json(rejections: Sequence[RejectedEntry]) -> list[dict[str, str]]:
    return [one._asdict() for one in rejections]


def print_left_out(passed_over: Counter[str], rejections: Sequence[RejectedEntry]) -> None:
    """Show what was left out: the counts of what was passed over on purpose, and the rejected entries."""
    if passed_over:
        say(f"Left out: {', '.join(f'{many} {reason}' for reason, many in passed_over.most_common())}.")
    print_rejections(rejections)


def print_rejections(rejections: Sequence[RejectedEntry]) -> None:
    """Print up to `MAX_SHOWN_REJECTIONS` rejected entries, each with its place and the reason."""
    for place, reason in rejections[:MAX_SHOWN_REJECTIONS]:
        formatting.print_notice(f"{place}: {reason}")
    if len(rejections) > MAX_SHOWN_REJECTIONS:
        formatting.print_notice(f"… and {len(rejections) - MAX_SHOWN_REJECTIONS} more; --json lists them all.")
