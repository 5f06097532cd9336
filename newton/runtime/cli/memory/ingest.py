"""`newton ingest`: documents become passages."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from rich.console import Console
from rich.progress import Progress

from newton.errors import InputError
from newton.runtime.bootstrap import open_newton
from newton.runtime.cli import formatting
from newton.runtime.cli.formatting import pluralize
from newton.runtime.cli.options import AgentOption, JsonOption, load_settings
from newton.runtime.cli.printing import say

MOST_NAMED = 5  # links in a remark


async def ingest_documents(
    path: str,
    *,
    trust: Annotated[
        Literal["user", "web"], Parameter(help="Whose words they are; those of the web are found only on request.")
    ] = "user",
    follow_links: Annotated[
        bool, Parameter(negative=(), help="Also take in what links in the folder lead to outside of it.")
    ] = False,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> int:
    """Take in a document, or all of a folder: Markdown, text, HTML and PDF. Again, only what changed is replaced.

    Example: newton ingest docs/

    Parameters
    ----------
    path:
        A file or a folder.
    """
    if not str(path):
        raise InputError("The path is empty.", hint="Name a document or a folder; '.' is the current one.")
    async with open_newton(load_settings(agent)) as newton:
        reader = newton.ingest("ingest")
        found = await reader.find_documents(Path(path), follow=follow_links)
        with Progress(console=Console(stderr=True), transient=True, disable=json) as bar:
            task = bar.add_task("Reading", total=len(found.documents))
            report = await reader.ingest(found.documents, trust=trust, progress=lambda _: bar.advance(task))
            gone = await reader.mark_missing(Path(path))
            bar.update(task, description="Embedding", total=None)
            settled = await newton.maintenance("ingest").process_pending(limit=None)
    for missed in gone:
        formatting.print_notice(f"{missed} is gone; what it said is not held to be so any more.")
    if found.outside:
        formatting.print_notice(_unfollowed(found.outside, path))
    for error in report.refused:
        formatting.print_notice(f"newton: {error.what}\n  {error.hint}")
    if json:
        formatting.print_json(
            {
                "documents": report.documents,
                "new": report.new,
                "kept": report.kept,
                "replaced": report.replaced,
                "gone": gone,
                "refused": [error.what for error in report.refused],
                "links_skipped": [str(link) for link in found.outside],
                "embedder_down": settled.stopped_by,
            }
        )
    else:
        refused = f" Refused: {pluralize(len(report.refused), 'file')}." if report.refused else ""
        taken = f"{pluralize(report.new, 'new passage')}, {report.kept} kept, {report.replaced} replaced."
        say(f"{pluralize(report.documents, 'document')}: {taken}{refused}")
    return 2 if report.refused else 0


def _unfollowed(links: Sequence[Path], path: str) -> str:
    named = ", ".join(map(str, links[:MOST_NAMED])) + (" …" if len(links) > MOST_NAMED else "")
    why = "was not followed: it leads" if len(links) == 1 else "were not followed: they lead"
    return (
        f"{pluralize(len(links), 'link')} {why} out of {path} ({named}).\n  Give --follow-links to take that in, too."
    )
