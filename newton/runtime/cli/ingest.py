"""`newton ingest`: documents become passages."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from rich.console import Console
from rich.progress import Progress

from newton.errors import InputError
from newton.runtime.cli import show
from newton.runtime.cli.options import Agent, AsJson, settings
from newton.runtime.cli.show import counted
from newton.runtime.opening import opened


async def ingest(
    path: str,
    *,
    trust: Annotated[
        Literal["user", "web"], Parameter(help="Whose words they are; those of the web are found only on request.")
    ] = "user",
    agent: Agent = None,
    json: AsJson = False,
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
    async with opened(settings(agent)) as newton:
        reader = newton.ingest("ingest")
        paths = await reader.found(Path(path))
        with Progress(console=Console(stderr=True), transient=True, disable=json) as bar:
            task = bar.add_task("Reading", total=len(paths))
            report = await reader.take(paths, trust=trust, progress=lambda _: bar.advance(task))
            gone = await reader.miss(Path(path))
            bar.update(task, description="Embedding", total=None)
            settled = await newton.upkeep("ingest").settle(most=None)
    for missed in gone:
        show.notice(f"{missed} is gone; what it said is not held to be so any more.")
    for error in report.refused:
        show.notice(f"newton: {error.what}\n  {error.hint}")
    if json:
        show.as_json(
            {
                "documents": report.documents,
                "new": report.new,
                "kept": report.kept,
                "replaced": report.replaced,
                "gone": gone,
                "refused": [error.what for error in report.refused],
                "embedder_down": settled.down,
            }
        )
    else:
        refused = f" Refused: {counted(len(report.refused), 'file')}." if report.refused else ""
        taken = f"{counted(report.new, 'new passage')}, {report.kept} kept, {report.replaced} replaced."
        print(f"{counted(report.documents, 'document')}: {taken}{refused}")
    return 2 if report.refused else 0
