"""`newton import`."""

import stat
import sys
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from newton.errors import InputError
from newton.memory.outbox import EmbeddingOutbox
from newton.runtime.bootstrap import open_newton
from newton.runtime.cli import formatting
from newton.runtime.cli.options import AgentOption, JsonOption, load_settings
from newton.runtime.cli.printing import say
from newton.runtime.transfer.agent_archive import MAX_HEADER_BYTES, is_archive, verify_archive
from newton.runtime.transfer.importer import ImportReport

MAX_SHOWN_REFUSALS = 20
CHUNK_BYTES = 1024 * 1024


async def import_file(file: Path, *, agent: AgentOption = None, json: JsonOption = False) -> int:
    """Import a file of NDJSON, one object a line. Importing it again changes nothing.

    Each line is of one of these types. "ref" is your own id of it, and only a document needs one. "at" is when it was
    said, became so or happened, with a zone; only where it is shown here it is needed.

      {"type":"message","session":"s1","ref":"m1","role":"user","name":"Ana","content":"…","at":"2026-03-01T09:00:00Z"}

      {"type":"fact","ref":"f1","content":"…","subject":"Ana","attribute":"lives in","confidence":0.9,"at":"…"}
      (also "until":"…" and "importance":7, from 0 to 10)

      {"type":"episode","ref":"e1","title":"…","content":"…","participants":["Ana"],"outcome":"success","at":"…"}
      (also "ended_at":"…" and "importance")

      {"type":"decision","ref":"d1","description":"…","confidence":0.8,"reasons":[{"kind":"analysis","text":"…"}],"at":"…"}
      (also "stakes", "category", "alternatives", "tags", "context", "frame", "expected", "look_again_at", and once it
      is known "outcome":"success", "lesson" and "reviewed_at")

      {"type":"procedure","name":"deploy-safely","description":"…","triggers":["deploy"],"goals":["…"],"steps":["…"]}
      (also "domain" and "details")

      {"type":"censor","ref":"c1","trigger":"push to main","reason":"…","sense":"phrase","action":"block"}
      (also "domain" and "threshold"; sense is phrase, pattern or meaning, action warn or block)

      {"type":"event","ref":"v1","event_type":"file_read","payload":{"path":"a.py"},"session":"s1","at":"…"}

      {"type":"entity","name":"Ana Berg","entity_type":"person","aliases":["Annie"],"properties":{"role":"nurse"}}

      {"type":"relation","ref":"r1","source":"Ana Berg","relation_type":"works at","target":"Acme"}

      {"type":"document","ref":"handbook","title":"…","format":"markdown","content":"# …"}

    What `newton export` wrote is taken in as a whole, into an agent that has not begun yet: the one that it names, or
    --agent.

    A line that cannot be taken is reported with its number, the others go in, and the exit status is 2.

    Parameters
    ----------
    file:
        The file to import.
    """
    lines = _count_lines(file)
    if lines is not None and _is_agent_export(file):
        return await _import_agent(file, lines, agent=agent, json=json)
    async with open_newton(load_settings(agent)) as newton:
        with progress_bar() as progress:
            task = progress.add_task("importing", total=lines)
            report = await newton.importer().run(file, progress=lambda done: progress.advance(task, done))
    if json:
        formatting.print_json(
            {
                "new": report.new,
                "known": report.unchanged,
                "episodes": report.episodes,
                "embedded": report.embedded,
                "refused": [{"line": r.line, "reason": r.reason} for r in report.rejections],
                "embedder_down": report.embedder_error,
            }
        )
    else:
        _print_report(report)
    return 2 if report.rejections else 0


def _count_lines(file: Path) -> int | None:
    """How many lines are to come; None when only reading tells, for what comes through a pipe comes once."""
    try:
        if not stat.S_ISREG(file.stat().st_mode):
            return None
        with file.open("rb") as opened_file:
            return sum(chunk.count(b"\n") for chunk in iter(lambda: opened_file.read(CHUNK_BYTES), b""))
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}.", hint="Give the path of an NDJSON file.") from None


def _is_agent_export(file: Path) -> bool:
    with file.open("rb") as opened_file:
        return is_archive(opened_file.readline(MAX_HEADER_BYTES))


async def _import_agent(file: Path, lines: int, *, agent: str | None, json: bool) -> int:
    """An agent as it was exported."""
    with file.open("rb") as whole:
        named = agent or verify_archive(whole).agent
        async with open_newton(load_settings(named), skip_procedure_sync=True) as newton:
            with progress_bar() as progress:
                task = progress.add_task("importing", total=lines)
                header = await newton.archive().restore(whole, progress=lambda done: progress.advance(task, done))
            drained = (
                await EmbeddingOutbox(newton.scope.db, newton.scope.embedder, newton.scope.agent_id).drain()
                if newton.scope.embedder
                else None
            )
    memories = header.counts.get("memory.memories", 0)
    if json:
        formatting.print_json({"agent": named, "memories": memories, "embedded": drained.embedded if drained else 0})
    else:
        say(f"The agent {named} has {memories} memories, as on {header.at:%Y-%m-%d %H:%M}.")
    return 0


def progress_bar() -> Progress:
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty())


def _print_report(report: ImportReport) -> None:
    made = f", {report.episodes} episodes made from sessions" if report.episodes else ""
    say(f"{report.new} new, {report.unchanged} known already{made}.")
    if report.embedder_error:
        formatting.print_notice(
            f"(No vectors yet, {report.embedder_error}; all is found by its words. Import again to make them.)"
        )
    for refusal in report.rejections[:MAX_SHOWN_REFUSALS]:
        formatting.print_notice(f"line {refusal.line}: {refusal.reason}")
    if len(report.rejections) > MAX_SHOWN_REFUSALS:
        formatting.print_notice(f"… and {len(report.rejections) - MAX_SHOWN_REFUSALS} more; --json lists them all.")
    if report.rejections:
        many = f"{len(report.rejections)} lines were" if len(report.rejections) > 1 else "1 line was"
        formatting.print_notice(f"{many} refused; mend that and import the file again.")
