"""Command `newton import`: import memories, or restore an exported agent, from an NDJSON file."""

import stat
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from newton.errors import InputError
from newton.memory.outbox import EmbeddingOutbox
from newton.runtime.bootstrap import open_newton
from newton.runtime.cli import formatting
from newton.runtime.cli.options import AgentOption, JsonOption, load_settings
from newton.runtime.cli.printing import say
from newton.runtime.transfer.export_file import MAX_HEADER_BYTES, is_archive, verify_archive
from newton.runtime.transfer.importer import ImportReport

MAX_SHOWN_REJECTIONS = 20
CHUNK_BYTES = 1024 * 1024


async def import_file(
    file: Annotated[Path, Parameter(help="NDJSON file to import.")],
    *,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> int:
    """Import an NDJSON file with one object per line. Importing the same file again changes nothing.

    Each line has one of the types below. "ref" is an id of your own, required only for documents. "at" is the time of a
    message, a fact or an event, with a time zone; it is required where the example has it.

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
    lines = _count_lines(file)
    if lines is not None and _is_agent_export(file):
        return await _import_agent(file, lines, agent=agent, json=json)
    async with open_newton(
        load_settings(agent), on_new_agent=formatting.print_new_agent, on_notice=formatting.print_notice
    ) as newton:
        with progress_bar() as progress:
            task = progress.add_task("importing", total=lines)
            report = await newton.importer().run(file, progress=lambda count: progress.advance(task, count))
            progress.update(task, description="comparing facts")
            await newton.maintenance("import").compare_facts()
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
        _print_report(report)
    return 2 if report.rejections else 0


def _count_lines(file: Path) -> int | None:
    """Return the number of lines of a file, or None for a pipe, which can be read only once.

    Raises InputError if the file cannot be read.
    """
    try:
        if not stat.S_ISREG(file.stat().st_mode):
            return None
        with file.open("rb") as stream:
            return sum(chunk.count(b"\n") for chunk in iter(lambda: stream.read(CHUNK_BYTES), b""))
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}.", hint="Give the path of an NDJSON file.") from None


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
                embedded = (await EmbeddingOutbox(scope.db, scope.embedder, scope.agent_id).drain()).embedded
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


def _print_report(report: ImportReport) -> None:
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
        formatting.print_notice(f"line {rejection.line}: {rejection.reason}")
    if len(report.rejections) > MAX_SHOWN_REJECTIONS:
        formatting.print_notice(f"… and {len(report.rejections) - MAX_SHOWN_REJECTIONS} more; --json lists them all.")
    if report.rejections:
        many = formatting.pluralize(len(report.rejections), "line")
        formatting.print_notice(f"{many} rejected. Correct the lines and import the file again.")
