"""Command `newton import`: import memories from NDJSON or another program's export, or restore an exported agent."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from newton.errors import InputError
from newton.file_access import is_passed_pipe, open_regular
from newton.operations.text_format import pluralize
from newton.runtime.cli import formatting
from newton.runtime.cli.command_agent import open_own_agent
from newton.runtime.cli.options import AgentOption, JsonOption, YesOption, load_settings, require_yes
from newton.runtime.cli.printing import say
from newton.runtime.cli.transfer.import_documents import import_documents, preview_documents
from newton.runtime.cli.transfer.import_report import print_report, print_summary, progress_bar, run_import
from newton.runtime.error_status import EXIT_OK, EXIT_REFUSED
from newton.runtime.transfer.export_file import MAX_HEADER_BYTES, is_archive, verify_archive
from newton.runtime.transfer.exports.export_detection import find_source, is_document_path
from newton.runtime.transfer.import_source import read_file, summarize_source
from newton.runtime.transfer.mirror.mirror_text import is_mirror, read_manifest

if TYPE_CHECKING:
    from newton.runtime.transfer.mirror.mirror_import import MirrorEdit, MirrorPlan

MAX_SHOWN_EDITS = 20


async def import_mirror(folder: Path, *, preview: bool, yes: bool, retract: bool, agent: str | None, json: bool) -> int:
    """Store the edits that a person made in a mirror (memories as Markdown files); return the exit status.

    They are shown and, unless `yes`, to be confirmed. With `preview`, nothing is stored. With `retract`, the facts of
    deleted lines are retracted. Without errors, the folder is then written anew.
    """
    manifest = read_manifest(folder)
    settings = load_settings(agent or (manifest.agent if manifest else None))
    async with open_own_agent(settings, skip_procedure_sync=preview) as newton:
        mirror = newton.mirror("cli")
        plan = await mirror.plan(folder)
        if not json:
            _print_plan(plan, retract=retract)
        errors = list[str]()
        if not preview and _has_work(plan, retract=retract):
            require_yes("Take over these edits?", yes=yes)
            errors = [*await mirror.apply(plan, retract=retract)]
            if not errors:
                await mirror.rewrite(folder, now=newton.scope.now())
    if json:
        counts = {name: len(getattr(plan, name)) for name in ("added", "changed", "removed", "conflicting")}
        formatting.print_json({"format": "mirror", **counts, "retracted": retract and not preview, "errors": errors})
    elif not preview and _has_work(plan, retract=retract):
        _print_result(plan, errors, folder, retract=retract)
    return EXIT_REFUSED if errors else EXIT_OK


def _has_work(plan: "MirrorPlan", *, retract: bool) -> bool:
    return bool(plan.added or plan.changed or (retract and plan.removed))


def _print_result(plan: "MirrorPlan", errors: Sequence[str], folder: Path, *, retract: bool) -> None:
    total = len(plan.added) + len(plan.changed) + (len(plan.removed) if retract else 0)
    say(f"{total - len(errors)} of {pluralize(total, 'edit')} taken over.")
    for error in errors:
        formatting.print_notice(error)
    if errors:
        formatting.print_notice(f"{folder} is not written anew. Correct these lines, then import it again.")


def _print_plan(plan: "MirrorPlan", *, retract: bool) -> None:
    if plan.is_empty:
        say("The files have no edits.")
    _print_edits("new", plan.added)
    _print_edits("changed", plan.changed)
    _print_edits("retracted" if retract else "deleted in the files; kept unless you give --retract", plan.removed)
    _print_edits("changed in Newton too since the export; the edit is not taken over", plan.conflicting)


def _print_edits(title: str, edits: "Sequence[MirrorEdit]") -> None:
    if not edits:
        return
    say(f"{len(edits)} {title}:")
    for edit in edits[:MAX_SHOWN_EDITS]:
        text = edit.line.text or edit.line.heading
        say(f"  {text} ({edit.line.ref})" if edit.line.ref else f"  {text}")
    if len(edits) > MAX_SHOWN_EDITS:
        say(f"  … and {len(edits) - MAX_SHOWN_EDITS} more")


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

    The format is recognized by the content: the archives of ChatGPT, Claude and Slack (.zip), the log of `llm`, a
    LangGraph store, memories of mem0, Letta (.af) and Hindsight as JSON, and NDJSON with one object per line. What
    another program exported is counted and shown before it is imported. A folder of notes or a document (Markdown,
    Obsidian, e-mail, ...) is stored as by `newton ingest`; links between notes become relations, and architecture
    decision records become decisions. A folder written by `newton export --markdown` is compared with the memories,
    and its edits are taken over. With --preview, nothing is stored.

    Each line of NDJSON has one of the types below. "ref" is an id of your own, required only for documents. "at" is
    the time of a message, a fact or an event, with a time zone; it is required where the example has it.

      {"type":"message","session":"s1","ref":"m1","role":"user","name":"Ana","content":"…","at":"2026-03-01T09:00:00Z"}

      {"type":"fact","ref":"f1","content":"…","subject":"Ana","attribute":"lives in","confidence":0.9,"at":"…"}
      (also "until":"…", "tags":["…"] and "importance":7, from 0 to 10)

      {"type":"episode","ref":"e1","title":"…","content":"…","participants":["Ana"],"outcome":"success","at":"…"}
      (also "ended_at":"…" and "importance")

      {"type":"decision","ref":"d1","description":"…","confidence":0.8,"reasons":[{"kind":"analysis","text":"…"}],"at":"…"}
      (also "stakes", "category", "alternatives", "tags", "context", "frame", "expected", "look_again_at", and for a
      reviewed decision "outcome":"success", "lesson" and "reviewed_at")

      {"type":"decision_link","source":"d2","link":"supersedes","target":"d1"}
      (link is supersedes, depends_on, relates or contradicts; source and target are refs of decisions)

      {"type":"procedure","name":"deploy-safely","description":"…","triggers":["deploy"],"goals":["…"],"steps":["…"]}
      (also "domain" and "details")

      {"type":"censor","ref":"c1","trigger":"push to main","reason":"…","sense":"phrase","action":"block"}
      (also "domain" and "threshold"; sense is phrase, pattern or meaning, action warn or block)

      {"type":"event","ref":"v1","event_type":"file_read","payload":{"path":"a.py"},"session":"s1","at":"…"}

      {"type":"entity","name":"Ana Berg","entity_type":"person","aliases":["Annie"],"properties":{"role":"nurse"}}

      {"type":"relation","ref":"r1","source":"Ana Berg","relation_type":"works at","target":"Acme"}

      {"type":"document","ref":"handbook","title":"…","format":"markdown","content":"# …"}

    A file written by `newton export` is restored as a whole into a new agent: the one named in the file, or --agent.

    What cannot be read is reported with its place and the reason. The rest is imported, and the exit status is 2.
    """
    lines = _count_lines(path)
    if lines is not None and _is_agent_export(path):
        return await (
            _preview_agent(path, json=json) if preview else _import_agent(path, lines, agent=agent, json=json)
        )
    if is_mirror(path):
        return await import_mirror(path, preview=preview, yes=yes, retract=retract, agent=agent, json=json)
    if is_document_path(path):
        return await (preview_documents(path, json=json) if preview else import_documents(path, agent=agent, json=json))
    source = find_source(path) if lines is not None or path.is_dir() else read_file(path)
    if source.is_counted or preview:
        summary = summarize_source(source)
        print_summary(summary, source, path, preview=preview, json=json)
        if preview:
            return EXIT_REFUSED if summary.rejections else EXIT_OK
        require_yes("Import them?", yes=yes)
        lines = summary.total
    report = await run_import(source, lines, agent=agent)
    print_report(report, source, json=json)
    return EXIT_REFUSED if report.rejections else EXIT_OK


def _count_lines(file: Path) -> int | None:
    """Return the number of lines of a file; None for a folder, or for the pipe of a caller, which is read only once.

    Raises InputError if the file cannot be read.
    """
    try:
        if file.is_dir() or is_passed_pipe(file):
            return None
        with open_regular(file) as stream:
            return sum(chunk.count(b"\n") for chunk in iter(lambda: stream.read(CHUNK_BYTES), b""))
    except OSError as error:
        raise InputError(
            f"{file} cannot be read: {error.strerror}.", hint="Give the path of a file to import."
        ) from None


def _is_agent_export(file: Path) -> bool:
    with open_regular(file) as stream:
        return is_archive(stream.readline(MAX_HEADER_BYTES))


async def _preview_agent(file: Path, *, json: bool) -> int:
    """Check an export file and show what it holds. Return the exit status."""
    with open_regular(file) as archive:
        header = verify_archive(archive)
    memories = header.counts.get("memory.memories", 0)
    if json:
        formatting.print_json({"format": "agent", "agent": header.agent, "memories": memories})
    else:
        say(f"{file} is the agent {header.agent} with {memories} memories, exported {header.at:%Y-%m-%d %H:%M}.")
    return EXIT_OK


async def _import_agent(file: Path, lines: int, *, agent: str | None, json: bool) -> int:
    """Restore the agent in an export file of `lines` lines, as `agent` if it is given, and return the exit status."""
    with open_regular(file) as archive:
        name = agent or verify_archive(archive).agent
        async with open_own_agent(
            load_settings(name),
            skip_procedure_sync=True,
            on_new_agent=formatting.print_new_agent,
            on_notice=formatting.print_notice,
        ) as newton:
            with progress_bar() as progress:
                task = progress.add_task("importing", total=lines)
                header = await newton.archive().restore(archive, progress=lambda count: progress.advance(task, count))
            outbox = newton.outbox()
            embedded = (await outbox.drain()).embedded if outbox else 0
    memories = header.counts.get("memory.memories", 0)
    if json:
        formatting.print_json({"agent": name, "memories": memories, "embedded": embedded})
    else:
        say(f"Restored the agent {name} with {memories} memories, exported {header.at:%Y-%m-%d %H:%M}.")
    return 0
