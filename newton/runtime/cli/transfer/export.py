"""Command `newton export`: write an agent with all its data to an NDJSON file, or its memories as Markdown."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from newton.errors import ConflictError, InputError
from newton.file_access import create_private
from newton.operations.text_format import pluralize
from newton.runtime.cli import formatting
from newton.runtime.cli.command_agent import open_own_agent
from newton.runtime.cli.options import AgentOption, JsonOption, load_settings
from newton.runtime.cli.printing import print_notice, say
from newton.runtime.cli.transfer.import_report import progress_bar
from newton.runtime.transfer.export_file import ArchiveHeader

if TYPE_CHECKING:
    from newton.runtime.wiring import AgentServices


async def export_agent(
    file: Annotated[
        Path,
        Parameter(allow_leading_hyphen=True, help="File to write; - is standard output. With --markdown, a folder."),
    ],
    *,
    markdown: Annotated[
        bool, Parameter(negative=(), help="Write a folder of Markdown files to read and edit, instead of a file.")
    ] = False,
    force: Annotated[bool, Parameter(negative=(), help="Overwrite an existing file.")] = False,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Export an agent with all its data, as of one moment, to an NDJSON file.

    `newton import FILE` restores it into a new agent in any database. The file is not encrypted.

    With --markdown, the identity, the current facts by subject, the decisions and the procedures become files that a
    person reads, edits and keeps under version control. `newton import FOLDER` takes over the edits, and the same
    command updates the folder.

    Example: newton export ana.ndjson --agent ana

    Example: newton export notes/ --markdown
    """
    if markdown:
        await _export_markdown(file, agent=agent, json=json)
        return
    if file.exists() and not force and str(file) != "-":
        raise ConflictError(f"{file} exists.", hint="Give another file, or overwrite the existing one with --force.")
    async with open_own_agent(load_settings(agent)) as newton:
        if str(file) == "-":
            await newton.archive().export(sys.stdout.buffer)
            return
        header = await _write_export(newton, file)
    if json:
        formatting.print_json(header.model_dump(mode="json"))
    else:
        say(f"Exported {sum(header.counts.values())} rows of the agent {header.agent} to {file}.")
    if header.projects and not json:
        named = ", ".join(header.projects)
        print_notice(f"Not in the file: the projects {named}. `newton export FILE --project NAME` exports one.")


async def _export_markdown(folder: Path, *, agent: str | None, json: bool) -> None:
    async with open_own_agent(load_settings(agent)) as newton:
        manifest = await newton.mirror("cli").exporter.write(folder, now=newton.scope.now())
    if json:
        formatting.print_json({"agent": manifest.agent, "files": manifest.files, "lines": len(manifest.lines)})
    else:
        many = pluralize(len(manifest.files), "file")
        say(f"Wrote {many} of the agent {manifest.agent} to {folder}. Edit them, then run `newton import {folder}`.")


async def _write_export(newton: "AgentServices", file: Path) -> ArchiveHeader:
    """Write the export file atomically, readable only by its owner, and return its header.

    Raises InputError if the file cannot be written.
    """
    partial = file.with_name(f"{file.name}.part")
    try:
        with create_private(partial) as out, progress_bar() as progress:
            task = progress.add_task("exporting", total=None)
            header = await newton.archive().export(out, progress=lambda rows: progress.advance(task, rows))
        partial.replace(file)
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error.strerror}.", hint="Give another file.") from None
    finally:
        partial.unlink(missing_ok=True)
    return header
