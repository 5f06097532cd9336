"""Commands `newton artifacts`: long tool outputs, pasted texts, files and uploads of a session."""

import hashlib
import mimetypes
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from newton.agent.artifact_inputs import MAX_UPLOAD_CHARS
from newton.agent.artifact_views import render_page
from newton.agent.inventory.artifacts import ArtifactReadQuery
from newton.dialogue.artifact_storage.artifact_store import ArtifactVersion
from newton.dialogue.artifact_storage.artifact_text import is_binary
from newton.errors import ConflictError, InputError
from newton.runtime.cli import formatting
from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.command_context import require_own_process
from newton.runtime.cli.options import (
    AgentOption,
    JsonOption,
    ReasonOption,
    YesOption,
    check_session_name,
    load_settings,
    require_yes,
)
from newton.runtime.cli.printing import say
from newton.runtime.cli.private_files import write_private_text
from newton.runtime.tools.artifact_tools import to_artifact_info, to_page_response

SessionOption = Annotated[
    str | None,
    Parameter("--session", help="Name of the session (default: the one in which an artifact was stored last)."),
]
NameArgument = Annotated[str, Parameter(help="Name of the artifact.")]
VersionOption = Annotated[int | None, Parameter("--version", help="Number of the version (default: the latest).")]
MAX_UPLOAD_BYTES = 4 * MAX_UPLOAD_CHARS  # a character has at most four bytes


async def list_artifacts(
    name: Annotated[str | None, Parameter(help="Only the versions of this artifact.")] = None,
    /,
    *,
    session: SessionOption = None,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """List the artifacts of a session, the one stored last first: long outputs, pasted texts, files and uploads.

    Example: newton artifacts list --session planning
    """
    async with open_agent(load_settings(agent)) as newton:
        service = newton.artifacts("cli")
        session_id = await service.find_session(check_session_name(session))
        if name is None:
            found = await service.list_latest(session_id)
        else:
            await service.get(session_id, name)
            found = await service.list_versions(session_id, name=name)
    if json:
        formatting.print_json([to_artifact_info(one).model_dump(mode="json") for one in found])
    else:
        say("\n".join(map(_format_artifact, found)) or "The session has no artifacts.")


async def show_artifact(
    name: Annotated[str | None, Parameter(help="Name of the artifact (default: search in all of the session).")] = None,
    /,
    *,
    lines: Annotated[str | None, Parameter(help="Lines to show, such as 120-180, 120- or =-50 (the last 50).")] = None,
    search: Annotated[str | None, Parameter(help="Words to search for; shows the lines that are found.")] = None,
    version: VersionOption = None,
    offset: Annotated[int, Parameter(help="Number of found passages to skip.")] = 0,
    session: SessionOption = None,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Show lines of an artifact with their numbers: a range, those that a search finds, or the first ones.

    Example: newton artifacts show pytest.out --search "rounding VAT" --session planning
    """
    query = ArtifactReadQuery(name=name, lines=lines, search=search, version=version, offset=offset)
    async with open_agent(load_settings(agent)) as newton:
        service = newton.artifacts("cli")
        page = await service.read(await service.find_session(check_session_name(session)), query)
    if json:
        formatting.print_json(to_page_response(page).model_dump(mode="json"))
        return
    say(render_page(page) or "Nothing found.")
    if page.missing:
        say(f"Searched by words only: {page.missing}.")
    if page.next_lines:
        say(f"More: --lines {page.next_lines}")
    if page.next_offset:
        say(f"More: --offset {page.next_offset}")


async def diff_artifact(
    name: NameArgument,
    /,
    *,
    old: Annotated[int | None, Parameter(help="Number of the old version (default: the one before the new).")] = None,
    new: Annotated[int | None, Parameter(help="Number of the new version (default: the latest).")] = None,
    session: SessionOption = None,
    agent: AgentOption = None,
) -> None:
    """Show the differences between two versions of an artifact, as a unified diff.

    Example: newton artifacts diff src/app.py --old 1 --new 3
    """
    async with open_agent(load_settings(agent)) as newton:
        service = newton.artifacts("cli")
        session_id = await service.find_session(check_session_name(session))
        say(await service.diff(session_id, name, old=old, new=new) or "The versions are equal.")


async def save_artifact(
    name: NameArgument,
    file: Annotated[Path, Parameter(help="File to write.")],
    /,
    *,
    version: VersionOption = None,
    force: Annotated[bool, Parameter(negative=(), help="Overwrite an existing file.")] = False,
    session: SessionOption = None,
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
    say(f"Wrote {formatting.pluralize(artifact.line_count, 'line')} of {name}, version {artifact.version}, to {file}.")


async def add_artifact(
    file: Annotated[Path, Parameter(help="File to store.")],
    /,
    *,
    session: Annotated[str, Parameter("--session", help="Name of the session; it is created if it does not exist.")],
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
    artifact = added.artifact
    say(f"Stored {artifact.name}, version {artifact.version}, in the session {session}: {_describe_size(artifact)}.")
    if added.redacted:
        say(formatting.format_redactions(added.redacted))


async def delete_artifact(
    name: NameArgument,
    /,
    *,
    version: Annotated[int | None, Parameter("--version", help="Only this version (default: all versions).")] = None,
    reason: ReasonOption = "requested",
    yes: YesOption = False,
    session: SessionOption = None,
    agent: AgentOption = None,
) -> None:
    """Permanently delete an artifact. The message that contains its text stays; `newton forget` deletes both.

    Example: newton artifacts delete build.log --session planning
    """
    async with open_agent(load_settings(agent)) as newton:
        service = newton.artifacts("cli")
        session_id = await service.find_session(check_session_name(session))
        await service.get(session_id, name, version)
        which = "all versions" if version is None else f"version {version}"
        require_yes(f"Permanently delete {which} of the artifact {name}?", yes=yes)
        deleted = await service.delete(session_id, name, version=version, reason=reason)
    say(f"Deleted {formatting.pluralize(deleted, 'version')} of {name}.")


def _read_file(file: Path) -> bytes:
    try:
        size = file.stat().st_size
        if size > MAX_UPLOAD_BYTES:
            what = f"{file} has {size:,} bytes; the maximum is {MAX_UPLOAD_BYTES:,}."
            raise InputError(what, hint=f"Split it, for example with `split -C 9m {file}`, and add the parts.")
        return file.read_bytes()
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}.", hint="Give another file.") from None


def _format_artifact(artifact: ArtifactVersion) -> str:
    source = f"  {formatting.truncate(artifact.source, 60)}" if artifact.source else ""
    return (
        f"{artifact.created_at:%Y-%m-%d %H:%M}  {artifact.name}  version {artifact.version}  {artifact.kind}"
        f"  {_describe_size(artifact)}{source}"
    )


def _describe_size(artifact: ArtifactVersion) -> str:
    size = f"{artifact.byte_count:,} bytes"
    return (
        f"{artifact.line_count:,} lines, {size}" if artifact.is_text else f"{artifact.media_type}, {size}, not stored"
    )
