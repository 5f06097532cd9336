"""`newton export`."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from newton.errors import ConflictError, InputError
from newton.runtime.bootstrap import open_newton
from newton.runtime.cli import formatting
from newton.runtime.cli.memory.import_ import progress_bar
from newton.runtime.cli.options import AgentOption, JsonOption, load_settings
from newton.runtime.cli.printing import say
from newton.runtime.transfer.agent_archive import ArchiveHeader
from newton.runtime.wiring import AgentServices

FileArgument = Annotated[Path, Parameter(allow_leading_hyphen=True, help="Where to; - is standard output.")]

ForceOption = Annotated[bool, Parameter(negative=(), help="Write over a file that is there.")]


async def export_agent(
    file: FileArgument, *, force: ForceOption = False, agent: AgentOption = None, json: JsonOption = False
) -> None:
    """Write everything that one agent is to a file of NDJSON, as it stands at this moment.

    `newton import FILE` brings it into an agent that has not begun yet, here or elsewhere. The file is not encrypted.

    Example: newton export ana.ndjson --agent ana
    """
    if file.exists() and not force and str(file) != "-":
        raise ConflictError(f"{file} is there already.", hint="Name another file, or give --force to write over it.")
    async with open_newton(load_settings(agent), create_agent=False) as newton:
        if str(file) == "-":
            await newton.archive().export(sys.stdout.buffer)
            return
        header = await _write_export(newton, file)
    if json:
        formatting.print_json(header.model_dump(mode="json"))
    else:
        say(f"{sum(header.counts.values())} rows of the agent {header.agent} are in {file}.")


async def _write_export(newton: AgentServices, file: Path) -> ArchiveHeader:
    """The file is there as a whole, or not at all; others of this machine cannot read it."""
    partial = file.with_name(f"{file.name}.part")
    try:
        partial.touch(mode=0o600)
        with partial.open("wb") as out, progress_bar() as progress:
            task = progress.add_task("exporting", total=None)
            header = await newton.archive().export(out, progress=lambda done: progress.advance(task, done))
        partial.replace(file)
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error.strerror}.", hint="Name another file.") from None
    finally:
        partial.unlink(missing_ok=True)
    return header
