"""Command `newton ingest`: store documents as passages, the parts of a document that search finds."""

import asyncio
import signal
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from cyclopts import Parameter
from rich.progress import Progress

from newton.agent.services.ingest import IngestReport
from newton.content.document_folders import OUTSIDE_LINK, SkippedFiles
from newton.content.documents import DocumentError
from newton.content.file_formats import check_encoding
from newton.errors import InputError
from newton.memory.memory import Trust
from newton.memory.vectors import DrainControl, DrainResult, read_backlog
from newton.operations.text_format import format_redactions, pluralize
from newton.runtime.cli.command_agent import open_own_agent
from newton.runtime.cli.formatting import print_json, print_new_agent, print_notice
from newton.runtime.cli.options import AgentOption, JsonOption, load_settings
from newton.runtime.cli.printing import say
from newton.runtime.cli.transfer.import_report import progress_bar, rejections_to_json
from newton.runtime.error_status import EXIT_INTERRUPTED, EXIT_OK, EXIT_REFUSED
from newton.runtime.transfer.import_source import RejectedEntry

if TYPE_CHECKING:
    from newton.runtime.wiring import AgentServices

LINES_PER_STAGE = 10  # of progress that is not on a terminal
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass(slots=True)
class StageProgress:
    """Progress of the stages of a command: a bar or, with `has_lines`, about `LINES_PER_STAGE` lines for each stage."""

    bar: Progress
    has_lines: bool

    def begin(self, stage: str, total: int) -> None:
        """Begin the stage `stage`, in which `total` items are processed."""
        for task in self.bar.task_ids:
            self.bar.remove_task(task)
        self.bar.add_task(stage, total=total)

    def advance(self, count: int = 1, *, name: Path | None = None) -> None:
        """Report that `count` further items of the stage are processed; `name` is the file of the last one."""
        (task,) = self.bar.tasks
        before, total = task.completed, int(task.total or 0)
        self.bar.advance(task.id, count)
        items_per_line = max(total / LINES_PER_STAGE, 1)
        if self.has_lines and total > 1 and int(before / items_per_line) < int(task.completed / items_per_line):
            suffix = f" ({name})" if name else ""
            print_notice(f"{task.description}: {int(task.completed):,} of {total:,}{suffix}")


@contextmanager
def stop_on_signals() -> Generator[asyncio.Event]:
    """Yield an event that the first SIGINT or SIGTERM within the block sets, instead of ending the process."""
    loop, requested = asyncio.get_running_loop(), asyncio.Event()
    previous = {one: signal.getsignal(one) for one in _SIGNALS}

    def restore() -> None:
        for one, handler in previous.items():
            loop.remove_signal_handler(one)
            signal.signal(one, handler)

    def stop() -> None:
        requested.set()
        restore()

    for one in _SIGNALS:
        loop.add_signal_handler(one, stop)
    try:
        yield requested
    finally:
        restore()


MAX_EXAMPLES = 3  # of the rejected files of one reason
WATCH_PAUSE_MS = 1_600  # a burst of changes is ingested once
EMBEDDED_AT_ONCE = 32  # passages; an interrupt waits for them
WAITING_HINT = "The daemon embeds them, or the next run of `newton ingest` or `newton jobs run embed`."


async def ingest_documents(
    path: Annotated[str, Parameter(help="Document, or folder of documents.")],
    *,
    trust: Annotated[
        Literal["user", "web"],
        Parameter(
            help="Who wrote the documents: the user, or an unknown author on the web, whose text stays quarantined."
        ),
    ] = "user",
    encoding: Annotated[
        str | None, Parameter(help="Encoding of the texts, such as cp1252; if omitted, it is detected.")
    ] = None,
    follow_links: Annotated[
        bool, Parameter(negative=(), help="Follow symbolic links that lead out of the folder.")
    ] = False,
    watch: Annotated[
        bool, Parameter(negative=(), help="Then wait, and ingest what changes, until the command is interrupted.")
    ] = False,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> int:
    """Ingest a document or all documents of a folder. Repeat the command when a document has changed, or use --watch.

    Any text is a document: Markdown, source code, CSV, logs, JSON, e-mail, and DOCX, PPTX, XLSX, HTML and PDF. Files
    that are passed over are named with the reason, such as those that a .gitignore file of the folder names. After an
    interrupt, the next run continues.

    Example: newton ingest docs/
    """
    if not str(path):
        raise InputError("The path is an empty text.", hint="Give a document or a folder; '.' is the current folder.")
    encoding = None if encoding is None else check_encoding(encoding)
    options = IngestOptions(path=path, trust=trust, encoding=encoding, follow_links=follow_links, json=json)
    return await run_ingest(options, agent=agent, watch=watch)


async def run_ingest(options: "IngestOptions", *, agent: str | None, watch: bool = False) -> int:
    """Store the documents as passages for the search; with `watch`, again after each change. Return the exit status."""
    async with open_own_agent(load_settings(agent), on_new_agent=print_new_agent, on_notice=print_notice) as newton:
        with stop_on_signals() as stop, progress_bar(is_silent=options.json) as bar:
            progress = StageProgress(bar, has_lines=bar.disable and not options.json)
            if watch:
                return await _watch(newton, options, progress, stop)
            return await _run_once(newton, options, progress, stop)


async def _watch(
    newton: "AgentServices", options: "IngestOptions", progress: StageProgress, stop: asyncio.Event
) -> int:
    """Store the documents, and store them again after each change, until `stop` is set. Return the exit status."""
    import watchfiles  # noqa: PLC0415 (its import takes a tenth of a second)

    changes = cast("Any", watchfiles).awatch(options.path, stop_event=stop, debounce=WATCH_PAUSE_MS)
    change = asyncio.ensure_future(anext(changes, None))
    await asyncio.sleep(0)  # the watch begins here, so that no change during the first ingestion is missed
    await _run_once(newton, options, progress, stop)
    print_notice(f"Watching {options.path}; Ctrl-C ends it.")
    while await change is not None:
        await _run_once(newton, options, progress, stop)
        change = asyncio.ensure_future(anext(changes, None))
    return EXIT_OK


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestOptions:
    """The documents to ingest, and how. `path` is as the user wrote it, and `trust` says who wrote them.

    The documents of `without` are left out. `report_fields` and the entries that are already `rejected` are added to
    the JSON of the report.
    """

    path: str
    trust: Trust = "user"
    encoding: str | None = None
    follow_links: bool = False
    json: bool = False
    without: frozenset[Path] = frozenset()
    report_fields: Mapping[str, object] = field(default_factory=dict[str, object])
    rejected: Sequence[RejectedEntry] = ()


async def _run_once(
    newton: "AgentServices", options: IngestOptions, progress: StageProgress, stop: asyncio.Event
) -> int:
    """Store the documents that are new or changed, embed them, print the report, and return the exit status."""
    service, path = newton.ingest("ingest"), Path(options.path)
    found = await service.find_documents(path, follow=options.follow_links)
    documents = [one for one in found.documents if one not in options.without]
    report = await _ingest(newton, documents, options.trust, options.encoding, progress, stop)
    missing = [] if report.stopped_at else await service.mark_missing(path)
    processed = await _embed(newton, progress, stop)
    async with newton.scope.transaction() as tx:
        waiting = (await read_backlog(tx, agent_id=newton.scope.agent_id)).waiting
    notices = [
        *(f"{ref} no longer exists; its passages are retracted." for ref in missing),
        *describe_skipped(found.skipped, options.path),
        *describe_rejected(report.refused),
        *_describe_encodings(report),
    ]
    for notice in notices:
        print_notice(notice)
    is_stopped = report.stopped_at is not None or stop.is_set()
    if options.json:
        rejected = rejections_to_json([*list_rejected(report.refused), *options.rejected])
        fields = _to_json(report, found.skipped, missing, processed, waiting)
        print_json({**fields, "rejected": rejected, **options.report_fields})
    else:
        _print_report(report)
        if is_stopped:
            print_notice(_describe_stop(report, len(documents), waiting))
    return EXIT_INTERRUPTED if is_stopped else EXIT_REFUSED if report.refused else EXIT_OK


async def _ingest(
    newton: "AgentServices",
    paths: Sequence[Path],
    trust: Trust,
    encoding: str | None,
    progress: StageProgress,
    stop: asyncio.Event,
) -> IngestReport:
    progress.begin("Reading", len(paths))
    return await newton.ingest("ingest").ingest(
        paths, trust=trust, encoding=encoding, progress=lambda path: progress.advance(name=path), stop=stop
    )


async def _embed(newton: "AgentServices", progress: StageProgress, stop: asyncio.Event) -> DrainResult | None:
    """Embed the stored passages; None if the command is stopped, because a job does it."""
    if stop.is_set():
        return None
    async with newton.scope.transaction() as tx:
        backlog = await read_backlog(tx, agent_id=newton.scope.agent_id)
    progress.begin("Embedding", backlog.waiting)
    control = DrainControl(batch=EMBEDDED_AT_ONCE, on_progress=progress.advance, is_stopped=stop.is_set)
    return await newton.maintenance("ingest").process_pending(limit=None, passages=True, control=control)


def describe_skipped(skipped: SkippedFiles, path: str) -> Iterator[str]:
    """Yield a notice for each reason for which files were passed over, with their number and examples."""
    for reason, count in skipped.counts.items():
        names = ", ".join(skipped.examples[reason]) + (", …" if count > len(skipped.examples[reason]) else "")
        if reason == OUTSIDE_LINK:
            yield f"{pluralize(count, 'link')} out of {path} skipped ({names}).\n  Give --follow-links to follow them."
        else:
            yield f"{pluralize(count, 'file or folder', 'files or folders')} skipped, {reason}: {names}"


def describe_rejected(errors: Sequence[DocumentError]) -> Iterator[str]:
    """Yield a notice for each reason for which files could not be read, with the remedy and examples."""
    by_reason = sorted(errors, key=lambda error: (error.reason, error.hint))
    for (reason, hint), group in groupby(by_reason, key=lambda error: (error.reason, error.hint)):
        paths = [error.path for error in group]
        if len(paths) == 1:
            yield f"newton: {paths[0]}: {reason}\n  {hint}"
        else:
            names = ", ".join(paths[:MAX_EXAMPLES]) + (", …" if len(paths) > MAX_EXAMPLES else "")
            yield f"newton: {len(paths)} files rejected, {reason} {names}\n  {hint}"


def list_rejected(errors: Sequence[DocumentError]) -> list[RejectedEntry]:
    return [RejectedEntry(error.path, f"{error.reason} {error.hint}") for error in errors]


def _describe_encodings(report: IngestReport) -> Iterator[str]:
    for encoding, count in report.encodings.items():
        yield f"{pluralize(count, 'document')} read as {encoding}; --encoding sets another encoding."


def _describe_stop(report: IngestReport, total: int, waiting: int) -> str:
    read = report.documents + len(report.refused)
    at = f" at {report.stopped_at}, after {read:,} of {total:,} documents" if report.stopped_at else " while embedding"
    text = f"Stopped{at}. What is stored is kept; run the command again to continue."
    passages = pluralize(waiting, "passage is", "passages are")
    return f"{text}\n  {passages} not embedded yet. {WAITING_HINT}" if waiting else text


def _print_report(report: IngestReport) -> None:
    rejected = f" Rejected: {pluralize(len(report.refused), 'file')}." if report.refused else ""
    passages = f"{pluralize(report.new, 'new passage')}, {report.kept} unchanged, {report.replaced} replaced."
    if report.redacted:
        say(format_redactions(report.redacted))
    say(f"{pluralize(report.documents, 'document')}: {passages}{rejected}", flush=True)


def _to_json(
    report: IngestReport, skipped: SkippedFiles, missing: Sequence[str], processed: DrainResult | None, waiting: int
) -> dict[str, object]:
    return {
        "documents": report.documents,
        "new": report.new,
        "unchanged": report.kept,
        "replaced": report.replaced,
        "redacted": report.redacted,
        "missing": missing,
        "skipped": skipped_to_json(skipped),
        "encodings": dict(report.encodings),
        "stopped_at": str(report.stopped_at) if report.stopped_at else None,
        "waiting_for_embedding": waiting,
        "embedder_error": processed.stopped_by if processed else None,
    }


def skipped_to_json(skipped: SkippedFiles) -> list[dict[str, object]]:
    return [
        {"reason": reason, "count": count, "examples": skipped.examples[reason]}
        for reason, count in skipped.counts.items()
    ]
