"""Operations on artifacts: long tool outputs, pasted texts, files and uploads of a session."""

import base64
import binascii
import hashlib
import mimetypes
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from newton.agent.field_types import CleanText, Name, Ref
from newton.agent.inventory.artifacts import AddedArtifact, ArtifactPage, ArtifactReadQuery, ArtifactService
from newton.dialogue.artifact_store import ArtifactVersion
from newton.errors import ForbiddenError, InputError, NotFoundError
from newton.memory.memory import PERSON_TIERS, lowest_trust
from newton.operations.declaration import operation
from newton.operations.fields import ArtifactSession, SessionName
from newton.operations.results import ItemList
from newton.operations.text_format import pluralize

if TYPE_CHECKING:
    from newton.operations.caller import OperationCaller

MAX_SOURCE_CHARS = 60
ArtifactName = Annotated[Name, Field(description="The name of the artifact.", examples=["build.log"])]
VersionNumber = Annotated[int | None, Field(ge=1, description="The number of the version. Default: the latest.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactDiff:
    """The differences between two versions of an artifact, as a unified diff; empty if they are equal."""

    name: str
    diff: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactText:
    """The whole text of a version of an artifact."""

    name: str
    version: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedArtifact:
    """The number of versions that were deleted."""

    deleted: int


def describe_size(artifact: ArtifactVersion | AddedArtifact) -> str:
    """Return the size of an artifact as text for people, such as "12 lines, 340 bytes"."""
    size = f"{artifact.byte_count:,} bytes"
    if not artifact.line_count:
        return f"{artifact.media_type}, {size}, not stored"
    return f"{artifact.line_count:,} lines, {size}"


def _format_version(one: ArtifactVersion) -> str:
    source = one.source or ""
    source = source if len(source) <= MAX_SOURCE_CHARS else f"{source[: MAX_SOURCE_CHARS - 2].rstrip()} …"
    text = f"{one.created_at:%Y-%m-%d %H:%M}  {one.name}  version {one.version}  {one.kind}  {describe_size(one)}"
    return f"{text}  {source}".rstrip()


def _format_page(page: ArtifactPage) -> str:
    lines = [page.render() or "Nothing found."]
    if page.missing:
        lines.append(f"Searched by words only: {page.missing}.")
    if page.next_lines:
        lines.append(f"More: --lines {page.next_lines}")
    if page.next_offset:
        lines.append(f"More: --offset {page.next_offset}")
    return "\n".join(lines)


@operation(
    "GET /v1/artifacts",
    "reads",
    name="artifacts",
    command="artifacts list",
    text=_format_version,
    empty="The session has no artifacts.",
)
async def list_artifacts(
    caller: "OperationCaller",
    name: Annotated[Name | None, Field(description="Only the versions of this artifact.")] = None,
    *,
    session: ArtifactSession = None,
    all_versions: Annotated[bool, Field(description="Whether to list earlier versions too.")] = False,
) -> ItemList[ArtifactVersion]:
    """List the artifacts of a session (long outputs, pasted texts, files and uploads), the one stored last first.

    Example: newton artifacts list --session s
    """
    service = caller.artifacts
    session_id = await service.find_session(session)
    if name is not None:
        await service.get(session_id, name)
    versions = await service.list_versions(session_id, name=name)
    return ItemList(items=versions if all_versions or name else await service.list_latest(session_id))


@operation("GET /v1/artifacts/lines", "reads", command="artifacts show", text=_format_page)
async def read_artifact(
    caller: "OperationCaller",
    name: Annotated[
        Name | None, Field(description="The name of the artifact. Default: `search` covers all of the session.")
    ] = None,
    *,
    lines: Annotated[
        str | None, Field(max_length=50, description="Lines to read, such as 120-180, 120- or =-50 (the last 50).")
    ] = None,
    search: Annotated[
        CleanText | None,
        Field(
            max_length=1_000,
            description="Two or three content words of what you look for. Other forms are found too.",
        ),
    ] = None,
    version: VersionNumber = None,
    offset: Annotated[
        int,
        Field(ge=0, le=1_000, description="Number of found passages to skip: `next_offset` of the previous page."),
    ] = 0,
    session: ArtifactSession = None,
) -> ArtifactPage:
    """Read lines of an artifact of a session: a range, those that a search finds, or the first ones.

    A model gets each line after its number, with `>` before a found one.

    Example: newton artifacts show build.log --search "sluice closed" --session s
    """
    service = caller.artifacts
    query = ArtifactReadQuery(name=name, lines=lines, search=search, version=version, offset=offset)
    page = await service.read(await service.find_session(session), query)
    if caller.trust in PERSON_TIERS:
        return page
    return replace(page, passages=[replace(one, lines=list(one.number_lines())) for one in page.passages])


@operation(
    "GET /v1/artifacts/text",
    "reads",
    absent={
        "cli": "`newton artifacts save NAME FILE` writes it to a file.",
        "mcp": "`read_artifact` reads it by lines.",
        "chat": "`/read-artifact` reads it by lines.",
    },
)
async def artifact_text(
    caller: "OperationCaller", name: ArtifactName, *, version: VersionNumber = None, session: ArtifactSession = None
) -> ArtifactText:
    """Return the whole text of an artifact.

    Example: {"name": "build.log", "session": "s"}
    """
    service = caller.artifacts
    artifact, text = await service.read_text(await service.find_session(session), name, version)
    return ArtifactText(name=name, version=artifact.version, text=text)


@operation(
    "GET /v1/artifacts/diff",
    "reads",
    command="artifacts diff",
    text=lambda compared: compared.diff or "The versions are equal.",
)
async def diff_artifact(
    caller: "OperationCaller",
    name: ArtifactName,
    *,
    old: Annotated[
        int | None, Field(ge=1, description="The number of the old version. Default: the one before the new.")
    ] = None,
    new: Annotated[int | None, Field(ge=1, description="The number of the new version. Default: the latest.")] = None,
    session: ArtifactSession = None,
) -> ArtifactDiff:
    """Show the differences between two versions of an artifact, as a unified diff.

    Example: newton artifacts diff build.log --old 1 --new 2 --session s
    """
    service = caller.artifacts
    diff = await service.diff(await service.find_session(session), name, old=old, new=new)
    return ArtifactDiff(name=name, diff=diff)


async def _ensure_not_of_person(service: ArtifactService, session: str, name: str) -> None:
    """Raise ForbiddenError if the current version of an artifact is a person's, which no model replaces."""
    with suppress(NotFoundError):
        if (await service.get(await service.find_session(session), name)).trust in PERSON_TIERS:
            raise ForbiddenError(f"The artifact {name!r} is a person's.", hint="Give it another name.")


@operation(
    "POST /v1/artifacts",
    "adds",
    act="state",
    is_idempotent=True,
    absent={
        "cli": "`newton artifacts add FILE` stores a file.",
        "chat": "A long text that is pasted into the chat becomes an artifact.",
    },
)
async def add_artifact(
    caller: "OperationCaller",
    session: SessionName,
    name: Annotated[Ref, Field(description="The name. A text under a known name becomes its next version.")],
    content: Annotated[str | None, Field(description="The text.")] = None,
    *,
    data: Annotated[str | None, Field(description="A binary in base64. Its bytes are not stored.")] = None,
    sha256: Annotated[
        str | None,
        Field(pattern="^[0-9a-f]{64}$", description="The SHA-256 hash of a binary, instead of its bytes."),
    ] = None,
    byte_count: Annotated[int | None, Field(ge=0, description="The size in bytes, with `sha256`.")] = None,
    media_type: Annotated[Name | None, Field(description="The media type. Default: that of the name or text.")] = None,
    source: Annotated[
        Literal["own", "tool", "web"],
        Field(description="Where the text is from; it sets the trust, at most `tool` for text from a model."),
    ] = "own",
) -> AddedArtifact:
    """Store a text, or the size and hash of a binary, as an artifact of a session, which is created if needed.

    Its lines can be read and searched later. A model replaces no artifact of a person.

    Example: {"session": "s", "name": "plan.md", "content": "Close the sluice."}
    """
    given = [content is not None, data is not None, sha256 is not None]
    if sum(given) != 1 or (sha256 is not None) != (byte_count is not None):
        raise InputError(
            "Nothing or too much to store is given.",
            hint="Give one of `content`, `data`, or `sha256` with `byte_count`.",
        )
    service = caller.artifacts
    if not caller.is_person:
        await _ensure_not_of_person(service, session, name)
    if caller.trust not in PERSON_TIERS or source != "own":  # what a model passes on may be from a tool or a page
        service = service.with_trust(lowest_trust([caller.trust, "tool" if source == "own" else source]))
    if content is not None:
        return await service.add(session, name, content, media_type=media_type)
    digest = bytes.fromhex(sha256 or "")
    if data is not None:
        binary = _decode(data)
        byte_count, digest = len(binary), hashlib.sha256(binary).digest()
    media_type = media_type or mimetypes.guess_type(name)[0] or "application/octet-stream"
    return await service.add_reference(session, name, media_type=media_type, byte_count=byte_count or 0, sha256=digest)


@operation(
    "DELETE /v1/artifacts",
    "destroys",
    act="delete",
    command="artifacts delete",
    question="Permanently delete the artifact?",
    text=lambda result: f"Deleted {pluralize(result.deleted, 'version')}.",
    absent={
        "mcp": "Only a person may do this; a model may confirm, supersede or retract facts.",
        "chat": "Run the command in a terminal beside the chat.",
    },
)
async def delete_artifact(
    caller: "OperationCaller",
    name: ArtifactName,
    *,
    version: Annotated[int | None, Field(ge=1, description="Only this version. Default: all versions.")] = None,
    reason: Annotated[
        CleanText, Field(max_length=1_000, description="The reason of the deletion, which is recorded.")
    ] = "requested",
    session: ArtifactSession = None,
) -> DeletedArtifact:
    """Permanently delete an artifact. The message that contains its text stays; `forget` deletes both.

    Example: newton artifacts delete build.log --session s
    """
    service = caller.artifacts
    session_id = await service.find_session(session)
    return DeletedArtifact(deleted=await service.delete(session_id, name, version=version, reason=reason))


def _decode(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise InputError(
            "`data` is not base64.", hint="Encode the bytes in base64, or send `content` for text."
        ) from None
