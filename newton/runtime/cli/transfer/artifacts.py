"""Commands `newton artifacts add` and `save`, which read and write a file of the caller."""

import hashlib
import mimetypes
import os
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from newton.dialogue.artifact_store import MAX_UPLOAD_CHARS
from newton.dialogue.artifact_text import is_binary
from newton.errors import ConflictError, InputError
from newton.operations.conversations.artifacts import describe_size
from newton.operations.text_format import format_redactions, pluralize
from newton.runtime.cli import formatting
from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.command_context import require_own_process
from newton.runtime.cli.options import AgentOption, check_session_name, load_settings
from newton.runtime.cli.printing import say


def write_private_text(path: Path, text: str) -> None:
    """Write a text to a file and let only its owner read it, also if it exists. Raises OSError if that fails."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
        if path.is_file():  # not a device or a pipe
            os.fchmod(descriptor, 0o600)
        file.write(text)


MAX_UPLOAD_BYTES = 4 * MAX_UPLOAD_CHARS  # a character has at most four bytes


async def save_artifact(
    name: Annotated[str, Parameter(help="Name of the artifact.")],
    file: Annotated[Path, Parameter(help="File to write.")],
    /,
    *,
    version: Annotated[int | None, Parameter(help="Number of the version (default: the latest).")] = None,
    force: Annotated[bool, Parameter(negative=(), help="Overwrite an existing file.")] = False,
    session: Annotated[
        str | None, Parameter(help="Name of the session (default: the one in which an artifact was stored last).")
    ] = None,
    agent: AgentOption = None,
) -> None:
    """Write the whole text of an artifact to a file.

    Example: newton artifacts save pytest.out pytest.txt --session planning
    """
    require_own_process()
    if file.exists() and not force:
        raise ConflictError(f"{file} exists.", hint="Give another file, or overwrite the existing one with --force.")
    async with open_agent(load_settings(agent)) as newton:
        service = newton.artifacts("cli")
        session_id = await service.find_session(check_session_name(session))
        artifact, text = await service.read_text(session_id, name, version)
    try:
        write_private_text(file, text)
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error.strerror}.", hint="Give another file.") from None
    say(f"Wrote {pluralize(artifact.line_count, 'line')} of {name}, version {artifact.version}, to {file}.")


async def add_artifact(
    file: Annotated[Path, Parameter(help="File to store.")],
    /,
    *,
    session: Annotated[str, Parameter(help="Name of the session; it is created if it does not exist.")],
    name: Annotated[str | None, Parameter(help="Name of the artifact (default: the name of the file).")] = None,
    agent: AgentOption = None,
) -> None:
    """Store a text file as an artifact of a session; of an image or another binary, only its size and hash.

    Example: newton artifacts add build.log --session planning
    """
    require_own_process()
    data = _read_file(file)
    name, session = name or file.name, check_session_name(session) or session
    async with open_agent(load_settings(agent), on_new_agent=formatting.print_new_agent) as newton:
        service = newton.artifacts("cli")
        if is_binary(data):
            media_type = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
            digest = hashlib.sha256(data).digest()
            added = await service.add_reference(
                session, name, media_type=media_type, byte_count=len(data), sha256=digest
            )
        else:
            added = await service.add(session, name, data.decode(errors="replace"))
    say(f"Stored {name}, version {added.version}, in the session {session}: {describe_size(added)}.")
    if added.redacted:
        say(format_redactions(added.redacted))


def _read_file(file: Path) -> bytes:
    try:
        size = file.stat().st_size
        if size > MAX_UPLOAD_BYTES:
            what = f"{file} has {size:,} bytes; the maximum is {MAX_UPLOAD_BYTES:,}."
            raise InputError(what, hint=f"Split it, for example with `split -C 9m {file}`, and add the parts.")
        return file.read_bytes()
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}.", hint="Give another file.") from None
