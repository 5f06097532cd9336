"""Command `newton ingest`: store documents as passages, the parts of a document that search finds."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from rich.console import Console
from rich.progress import Progress

from newton.errors import InputError
from newton.runtime.bootstrap import open_newton
from newton.runtime.cli.formatting import pluralize, print_json, print_new_agent, print_notice
from newton.runtime.cli.options import AgentOption, JsonOption, load_settings
from newton.runtime.cli.printing import say

MAX_SHOWN_LINKS = 5


async def ingest_documents(
    path: Annotated[str, Parameter(help="Document, or folder of documents.")],
    *,
    trust: Annotated[
        Literal["user", "web"],
        Parameter(
            help="Who wrote the documents: the user, or an unknown author on the web, whose text stays quarantined."
        ),
    ] = "user",
    follow_links: Annotated[
        bool, Parameter(negative=(), help="Follow symbolic links that lead out of the folder.")
    ] = False,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> int:
    """Ingest a document or a folder: Markdown, text, HTML and PDF. Repeat the command when a document has changed.

    Example: newton ingest docs/
    """
    if not str(path):
        raise InputError("The path is an empty text.", hint="Give a document or a folder; '.' is the current folder.")
    async with open_newton(load_settings(agent), on_new_agent=print_new_agent, on_notice=print_notice) as newton:
        service = newton.ingest("ingest")
        found = await service.find_documents(Path(path), follow=follow_links)
        with Progress(console=Console(stderr=True), transient=True, disable=json) as bar:
            task = bar.add_task("Reading", total=len(found.documents))
            report = await service.ingest(found.documents, trust=trust, progress=lambda _: bar.advance(task))
            missing = await service.mark_missing(Path(path))
            bar.update(task, description="Embedding", total=None)
            processed = await newton.maintenance("ingest").process_pending(limit=None)
    for ref in missing:
        print_notice(f"{ref} no longer exists; its passages are retracted.")
    if found.outside:
        print_notice(_format_skipped_links(found.outside, path))
    for error in report.refused:
        print_notice(f"newton: {error.what}\n  {error.hint}")
    if json:
        print_json(
            {
                "documents": report.documents,
                "new": report.new,
                "unchanged": report.kept,
                "replaced": report.replaced,
                "redacted": report.redacted,
                "missing": missing,
                "rejected": [error.what for error in report.refused],
                "links_skipped": [str(link) for link in found.outside],
                "embedder_error": processed.stopped_by,
            }
        )
    else:
        rejected = f" Rejected: {pluralize(len(report.refused), 'file')}." if report.refused else ""
        passages = f"{pluralize(report.new, 'new passage')}, {report.kept} unchanged, {report.replaced} replaced."
        say(f"{pluralize(report.documents, 'document')}: {passages}{rejected}")
        if report.redacted:
            say(f"Secrets, such as passwords or keys, were removed from {pluralize(report.redacted, 'passage')}.")
    return 2 if report.refused else 0


def _format_skipped_links(links: Sequence[Path], path: str) -> str:
    names = ", ".join(map(str, links[:MAX_SHOWN_LINKS])) + (" …" if len(links) > MAX_SHOWN_LINKS else "")
    return f"{pluralize(len(links), 'link')} out of {path} skipped ({names}).\n  Give --follow-links to follow them."
