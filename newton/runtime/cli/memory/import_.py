"""Command `newton import`: import memories from NDJSON or another program's export, or restore an exported agent."""

import asyncio
import stat
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from newton.content.document_folders import find_documents
from newton.errors import InputError
from newton.heart.statements.standing_model import find_standing_by_vector
from newton.memory.outbox import EmbeddingOutbox
from newton.runtime.bootstrap import open_newton
from newton.runtime.cli import formatting
from newton.runtime.cli.memory.import_mirror import import_mirror
from newton.runtime.cli.memory.ingest import ingest_documents
from newton.runtime.cli.options import AgentOption, JsonOption, YesOption, load_settings, require_yes
from newton.runtime.cli.printing import say
from newton.runtime.transfer.export_file import MAX_HEADER_BYTES, is_archive, verify_archive
from newton.runtime.transfer.exports.export_detection import find_source, is_document_path
from newton.runtime.transfer.exports.export_lines import JsonObject, number_lines
from newton.runtime.transfer.exports.note_links import read_links
from newton.runtime.transfer.import_source import ImportSource, SourceSummary, summarize_source
from newton.runtime.transfer.importer import ImportReport
from newton.runtime.transfer.mirror.mirror_export import is_mirror
from newton.runtime.transfer.ndjson import read_file

MAX_SHOWN_REJECTIONS = 20
SUMMARY_COUNTS = ("sessions", "messages", "facts", "documents", "others", "rejected")
CHUNK_BYTES = 1024 * 1024


async def import_file(
    path: Annotated[Path, Parameter(help="File, archive or folder to import.")],
    *,
    preview: Annotated[bool, Parameter(negative=(), help="Only recognize the format and count.")] = False,
    yes: YesOption = False,
    retract: Annotated[
        bool, Parameter(negative=(), help="Retract the facts whose lines were deleted in a folder of `newton export`.")
    ] = False,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> int:
    """Import memories, conversations of other programs, or an exported agent. A repeated import changes nothing.

    The format is recognized by the content: the archives of ChatGPT and Claude (.zip), the log of `llm`, a LangGraph
    store, memories of mem0, Letta (.af) and Hindsight as JSON, and NDJSON with one object per line. What another
    program exported is counted and shown before it is imported. A folder of notes or a document (Markdown, Obsidian,
    e-mail, ...) is stored as by `newton ingest`, and links between notes become relations. A folder written by
    `newton export --markdown` is compared with the memories, and its edits are taken over.

    Each line of NDJSON has one of the types below. "ref" is an id of your own, required only for documents. "at" is
    the time of a message, a fact or an event, with a time zone; it is required where the example has it.

      {"type":"message","session":"s1","ref":"m1","role":"user","name":"Ana","content":"…","at":"2026-03-01T09:00:00Z"}

      {"type":"fact","ref":"f1","content":"…","subject":"Ana","attribute":"lives in","confidence":0.9,"at":"…"}
      (also "until":"…" and "importance":7, from 0 to 10)

      {"type":"episode","ref":"e1","title":"…","content":"…","participants":["Ana"],"outcome":"success","at":"…"}
      (also "ended_at":"…" and "importance")

      {"type":"decision","ref":"d1","description":"…","confidence":0.8,"reasons":[{"kind":"analysis","text":"…"}],"at":"…"}
      (also "stakes", "category", "alternatives", "tags", "context", "frame", "expected", "look_again_at", and for a
      reviewed decision "outcome":"success", "lesson" and "reviewed_at")

      {"type":"procedure","name":"deploy-safely","description":"…","triggers":["deploy"],"goals":["…"],"steps":["…"]}
      (also "domain" and "details")

      {"type":"censor","ref":"c1","trigger":"push to main","reason":"…","sense":"phrase","action":"block"}
      (also "domain" and "threshold"; sense is phrase, pattern or meaning, action warn or block)

      {"type":"event","ref":"v1","event_type":"file_read","payload":{"path":"a.py"},"session":"s1","at":"…"}

      {"type":"entity","name":"Ana Berg","entity_type":"person","aliases":["Annie"],"properties":{"role":"nurse"}}

      {"type":"relation","ref":"r1","source":"Ana Berg","relation_type":"works at","target":"Acme"}

      {"type":"document","ref":"handbook","title":"…","format":"markdown","content":"# …"}

    A file written by `newton export` is restored as a whole into a new agent: the one named in the file, or --agent.

    An invalid line is reported with its number. The other lines are imported, and the exit status is 2.
    """
    lines = _count_lines(path)
    if lines is not None and _is_agent_export(path):
        return await _import_agent(path, lines, agent=agent, json=json)
    if is_mirror(path):
        return await import_mirror(path, preview=preview, yes=yes, retract=retract, agent=agent, json=json)
    if is_document_path(path):
        return await _import_documents(path, agent=agent, json=json)
    source = find_source(path) if lines is not None or path.is_dir() else read_file(path)
    if source.unit != "line" or preview:
        lines = preview_source(source, path, preview=preview, yes=yes, json=json)
    if preview:
        return 0
    report = await _run_import(source, lines, agent=agent)
    if json:
        formatting.print_json(
            {
                "new": report.new,
                "unchanged": report.unchanged,
                "episodes": report.episodes,
                "embedded": report.embedded,
                "redacted": report.redacted,
                "rejected": [{"line": r.line, "reason": r.reason} for r in report.rejections],
                "embedder_error": report.embedder_error,
            }
        )
    else:
        _print_report(report, source.unit)
    return 2 if report.rejections else 0


async def _import_documents(path: Path, *, agent: str | None, json: bool) -> int:
    """Ingest a document or a folder, store the links between its notes, and return the exit status."""
    status = await ingest_documents(str(path), agent=agent, json=json)
    links = _find_links(path)
    if links:
        source = ImportSource(format="links between notes", read=lambda: number_lines(links))
        report = await _run_import(source, len(links), agent=agent)
        if not json:
            relations = sum(line["type"] == "relation" for line in links)
            known = "" if report.new else ", all of them known"
            say(f"{formatting.pluralize(relations, 'link')} between notes stored as relations{known}.")
    return status


def _find_links(path: Path) -> list[JsonObject]:
    """Return the import lines of the links between the notes of a folder; nothing for a file."""
    return list(read_links(find_documents(path).documents)) if path.is_dir() else []


async def _run_import(source: ImportSource, total: int | None, *, agent: str | None) -> ImportReport:
    """Import a source of `total` items. An interrupted import says how to complete it."""
    async with open_newton(
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


def preview_source(source: ImportSource, path: Path, *, preview: bool, yes: bool, json: bool) -> int:
    """Show what a source holds, ask whether to import it unless it is only a preview, and return its number of items.

    Raises InputError for a source without items, or if the user declines.
    """
    summary = summarize_source(source)
    if preview and json:
        times = {"first": summary.first, "last": summary.last}
        formatting.print_json(
            {
                "format": source.format,
                **{name: getattr(summary, name) for name in SUMMARY_COUNTS},
                **{name: time and time.isoformat() for name, time in times.items()},
                "passed_over": dict(source.passed_over),
            }
        )
    elif not json:
        _print_summary(summary, source, path)
    if not preview:
        require_yes("Import them?", yes=yes)
    return summary.total


def _print_summary(summary: SourceSummary, source: ImportSource, path: Path) -> None:
    counts = [
        formatting.pluralize(summary.sessions, "conversation"),
        formatting.pluralize(summary.messages, "message"),
        formatting.pluralize(summary.facts, "fact"),
        formatting.pluralize(summary.documents, "document"),
        formatting.pluralize(summary.others, "other item"),
        f"{summary.rejected} invalid",
    ]
    period = f", {summary.first:%Y-%m-%d} to {summary.last:%Y-%m-%d}" if summary.first and summary.last else ""
    say(f"{path} is {source.format}: {', '.join(one for one in counts if not one.startswith('0 '))}{period}.")
    if source.passed_over:
        left_out = ", ".join(f"{many} {reason}" for reason, many in source.passed_over.most_common())
        say(f"Left out: {left_out}.")


def _count_lines(file: Path) -> int | None:
    """Return the number of lines of a file, or None for a folder, or for a pipe, which can be read only once.

    Raises InputError if the file cannot be read.
    """
    try:
        if not stat.S_ISREG(file.stat().st_mode):
            return None
        with file.open("rb") as stream:
            return sum(chunk.count(b"\n") for chunk in iter(lambda: stream.read(CHUNK_BYTES), b""))
    except OSError as error:
        raise InputError(
            f"{file} cannot be read: {error.strerror}.", hint="Give the path of a file to import."
        ) from None


def _is_agent_export(file: Path) -> bool:
    with file.open("rb") as stream:
        return is_archive(stream.readline(MAX_HEADER_BYTES))


async def _import_agent(file: Path, lines: int, *, agent: str | None, json: bool) -> int:
    """Restore the agent in an export file of `lines` lines, as `agent` if it is given, and return the exit status."""
    with file.open("rb") as archive:
        name = agent or verify_archive(archive).agent
        async with open_newton(
            load_settings(name),
            skip_procedure_sync=True,
            on_new_agent=formatting.print_new_agent,
            on_notice=formatting.print_notice,
        ) as newton:
            with progress_bar() as progress:
                task = progress.add_task("importing", total=lines)
                header = await newton.archive().restore(archive, progress=lambda count: progress.advance(task, count))
            embedded, scope = 0, newton.scope
            if scope.embedder:
                embedded = (
                    await EmbeddingOutbox(
                        scope.db, scope.embedder, scope.agent_id, find_standing=find_standing_by_vector
                    ).drain()
                ).embedded
    memories = header.counts.get("memory.memories", 0)
    if json:
        formatting.print_json({"agent": name, "memories": memories, "embedded": embedded})
    else:
        say(f"Restored the agent {name} with {memories} memories, exported {header.at:%Y-%m-%d %H:%M}.")
    return 0


def progress_bar() -> Progress:
    """Return a progress bar on standard error, hidden unless it is a terminal."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty())


def _print_report(report: ImportReport, unit: str) -> None:
    episodes = f", {formatting.pluralize(report.episodes, 'episode')} created from sessions" if report.episodes else ""
    say(f"{report.new} new, {report.unchanged} unchanged{episodes}.")
    if report.redacted:
        say(formatting.format_redactions(report.redacted))
    if report.embedder_error:
        formatting.print_notice(
            f"(The memories are not embedded: {report.embedder_error}. Search finds them by their words only. To embed"
            " them, import the file again.)"
        )
    for rejection in report.rejections[:MAX_SHOWN_REJECTIONS]:
        formatting.print_notice(f"{unit} {rejection.line}: {rejection.reason}")
    if len(report.rejections) > MAX_SHOWN_REJECTIONS:
        formatting.print_notice(f"… and {len(report.rejections) - MAX_SHOWN_REJECTIONS} more; --json lists them all.")
    if report.rejections:
        many = formatting.pluralize(len(report.rejections), unit)
        formatting.print_notice(f"{many} rejected. Correct them and import the file again.")
