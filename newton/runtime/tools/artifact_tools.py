"""Tools on the artifacts of sessions, and the formats in which interfaces return artifacts."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from newton.agent import artifact_inputs
from newton.agent.artifact_views import describe_page, describe_version, find_lowest_trust
from newton.agent.inventory.artifacts import ArtifactLines, ArtifactPage, ArtifactReadQuery
from newton.agent.loop.tools import ToolResult
from newton.dialogue.artifact_storage.artifact_store import ArtifactKind, ArtifactVersion
from newton.memory.memory import PERSON_TIERS, Trust, lowest_trust
from newton.operations.caller import OperationCaller
from newton.runtime.tools.views import ViewModel


class ArtifactInfo(ViewModel):
    """One version of an artifact. `lines` is 0 for a binary, of which only size and hash are stored."""

    name: Annotated[str, Field(examples=["pytest.out"])]
    version: int
    kind: ArtifactKind
    media_type: Annotated[str, Field(examples=["text/plain"])]
    lines: int
    bytes: int
    sha256: str
    source: str | None = Field(description="The tool call that returned or wrote the text.")
    position: int | None = Field(description="The message that contains the text.")
    origin: str
    trust: Trust
    created_at: datetime


class ArtifactPassageInfo(ViewModel):
    """Consecutive lines of an artifact from `first_line` on. `found_lines` are the numbers of the found ones."""

    name: str
    version: int
    first_line: int
    last_line: int
    found_lines: list[int]
    lines: list[str]


class ArtifactPageResponse(ViewModel):
    """A page of an artifact's lines, or of passages of artifacts.

    The next page is read with `lines` set to `next_lines`, or after a search with `offset` set to `next_offset`; both
    are null on the last page.
    """

    passages: list[ArtifactPassageInfo]
    next_lines: str | None
    next_offset: int | None
    missing: str | None = Field(description="Why the search was by words only.")


class ArtifactDiffResponse(ViewModel):
    """The differences between two versions, as a unified diff; empty if they are equal."""

    name: str
    diff: str


def to_artifact_info(artifact: ArtifactVersion) -> ArtifactInfo:
    return ArtifactInfo.from_source(
        artifact, lines=artifact.line_count, bytes=artifact.byte_count, sha256=artifact.sha256.hex()
    )


def to_page_response(page: ArtifactPage) -> ArtifactPageResponse:
    return ArtifactPageResponse.from_source(page, passages=list(map(_to_passage, page.passages)))


def _to_passage(lines: ArtifactLines) -> ArtifactPassageInfo:
    return ArtifactPassageInfo(
        name=lines.artifact.name,
        version=lines.artifact.version,
        first_line=lines.first_line,
        last_line=lines.last_line,
        found_lines=list(lines.found_lines),
        lines=list(lines.lines),
    )


async def list_artifacts(caller: OperationCaller, args: artifact_inputs.SessionArtifactsInput) -> ToolResult:
    service = caller.newton.artifacts(caller.origin)
    found = await service.list_latest(await service.find_session(args.session))
    return ToolResult({"items": list(map(describe_version, found))}, find_lowest_trust(found))


async def read_artifact(caller: OperationCaller, args: artifact_inputs.ReadSessionArtifactInput) -> ToolResult:
    session_id = await caller.newton.artifacts(caller.origin).find_session(args.session)
    service = caller.newton.artifacts(caller.origin)
    if args.name is None and args.search is None:
        listed = await service.list_latest(session_id)
        return ToolResult({"items": list(map(describe_version, listed))}, find_lowest_trust(listed))
    page = await service.read(session_id, ArtifactReadQuery(**args.model_dump(exclude={"session"})))
    return ToolResult(describe_page(page), find_lowest_trust([one.artifact for one in page.passages]))


async def diff_artifact(caller: OperationCaller, args: artifact_inputs.DiffArtifactInput) -> ToolResult:
    service = caller.newton.artifacts(caller.origin)
    session_id = await service.find_session(args.session)
    diff = await service.diff(session_id, args.name, old=args.old, new=args.new)
    versions = await service.list_versions(session_id, name=args.name)
    return ToolResult({"name": args.name, "diff": diff}, find_lowest_trust(versions))


async def save_artifact(caller: OperationCaller, args: artifact_inputs.SaveArtifactInput) -> ToolResult:
    """Store a text. What a model passes on may come from a tool or a page, so it gets at most the trust of a tool."""
    trust = caller.trust if caller.trust in PERSON_TIERS else lowest_trust([caller.trust, "tool"])
    added = await caller.newton.artifacts(caller.origin).with_trust(trust).add(args.session, args.name, args.content)
    return ToolResult(describe_version(added.artifact))
