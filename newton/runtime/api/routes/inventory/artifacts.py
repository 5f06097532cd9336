"""Endpoints of artifacts: long tool outputs, pasted texts, files and uploads of a session."""

import base64
import binascii
import hashlib
import mimetypes
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import Field, model_validator

from newton.agent.artifact_inputs import ReadSessionArtifactInput
from newton.agent.field_types import CleanText, Name, Ref
from newton.agent.inventory.artifacts import AddedArtifact, ArtifactReadQuery, ArtifactService
from newton.errors import InputError
from newton.operations.results import ItemList
from newton.runtime.api.auth import ReadAccess
from newton.runtime.api.base_models import ORIGIN, RequestModel, ResponseModel, with_example
from newton.runtime.api.idempotency import AdminAction, WriteAction
from newton.runtime.tools.artifact_tools import (
    ArtifactDiffResponse,
    ArtifactInfo,
    ArtifactPageResponse,
    to_artifact_info,
    to_page_response,
)
from newton.runtime.wiring import AgentServices

router = APIRouter(prefix="/v1/artifacts", tags=["artifacts"])

SessionParameter = Annotated[
    Ref | None, Query(description="The name of the session. Default: the one in which an artifact was stored last.")
]
NameParameter = Annotated[Name, Query(description="The name of the artifact.")]


class ReadArtifactQuery(ReadSessionArtifactInput):
    """A request to read the artifacts of a session."""


class AddArtifactRequest(RequestModel):
    """A text to store as an artifact of a session, or the reference of a binary: its size, hash and media type.

    Of a binary in base64 (`data`), only the reference is stored.
    """

    model_config = with_example(session="planning", name="build.log", content="step 1 ok\\nstep 2 failed")

    session: Ref
    name: Ref = Field(description="The name. A text under a known name becomes its next version.")
    content: str | None = None
    data: str | None = Field(None, description="A binary in base64. Its bytes are not stored.")
    byte_count: int | None = Field(
        None, ge=0, description="The size in bytes of a binary of which only the hash is sent."
    )
    sha256: str | None = Field(
        None, pattern="^[0-9a-f]{64}$", description="The SHA-256 hash of a binary, instead of its bytes."
    )
    media_type: Name | None = None
    source: Literal["own", "tool", "web"] = Field("own", description="Where the text is from; it sets the trust.")

    @model_validator(mode="after")
    def _has_one_content(self) -> "AddArtifactRequest":
        given = [self.content is not None, self.data is not None, self.sha256 is not None]
        if sum(given) != 1 or (self.sha256 is not None) != (self.byte_count is not None):
            raise ValueError("give one of `content`, `data`, or `sha256` with `byte_count`")
        return self


class AddArtifactResponse(ArtifactInfo):
    """The stored version. `redacted` counts the secrets that were removed from it by kind."""

    redacted: dict[str, int]


class DeleteArtifactResponse(ResponseModel):
    """The number of versions that were deleted."""

    deleted: int


@router.get("")
async def list_artifacts(
    caller: ReadAccess,
    session: SessionParameter = None,
    name: Annotated[Name | None, Query(description="Only the versions of this artifact.")] = None,
    *,
    all_versions: Annotated[bool, Query(description="Whether to list earlier versions too.")] = False,
) -> ItemList[ArtifactInfo]:
    """List the artifacts of a session, the one stored last first."""
    service = caller.newton.artifacts(ORIGIN)
    session_id = await service.find_session(session)
    if name is not None:
        await service.get(session_id, name)
    listed = service.list_versions(session_id, name=name) if all_versions or name else service.list_latest(session_id)
    return ItemList(items=list(map(to_artifact_info, await listed)))


@router.get("/lines")
async def read_artifact(caller: ReadAccess, query: Annotated[ReadArtifactQuery, Query()]) -> ArtifactPageResponse:
    """Read lines of an artifact, or the lines that a search finds in one artifact or in all of the session."""
    service = caller.newton.artifacts(ORIGIN)
    session_id = await service.find_session(query.session)
    return to_page_response(await service.read(session_id, ArtifactReadQuery(**query.model_dump(exclude={"session"}))))


@router.get("/text")
async def get_artifact_text(
    caller: ReadAccess,
    name: NameParameter,
    session: SessionParameter = None,
    version: Annotated[int | None, Query(ge=1, description="The version. Default: the latest.")] = None,
) -> Response:
    """Return the whole text of an artifact."""
    service = caller.newton.artifacts(ORIGIN)
    artifact, text = await service.read_text(await service.find_session(session), name, version)
    # whatever its media type: a browser must not run a page that a tool returned
    headers = {"X-Content-Type-Options": "nosniff", "X-Newton-Artifact-Version": str(artifact.version)}
    return Response(text, media_type="text/plain; charset=utf-8", headers=headers)


@router.get("/diff")
async def diff_artifact(
    caller: ReadAccess,
    name: NameParameter,
    session: SessionParameter = None,
    old: Annotated[int | None, Query(ge=1, description="The old version. Default: the one before `new`.")] = None,
    new: Annotated[int | None, Query(ge=1, description="The new version. Default: the latest.")] = None,
) -> ArtifactDiffResponse:
    """Compare two versions of an artifact."""
    service = caller.newton.artifacts(ORIGIN)
    diff = await service.diff(await service.find_session(session), name, old=old, new=new)
    return ArtifactDiffResponse(name=name, diff=diff)


@router.post("", status_code=201, response_model=AddArtifactResponse)
async def add_artifact(body: AddArtifactRequest, act: WriteAction) -> Response:
    """Store a text, or the reference of a binary, as an artifact of a session, which is created if needed."""

    async def work(newton: AgentServices) -> AddArtifactResponse:
        service = newton.artifacts(ORIGIN)
        added = await _add(service if body.source == "own" else service.with_trust(body.source), body)
        return AddArtifactResponse.from_source(to_artifact_info(added.artifact), redacted=added.redacted)

    return await act.run_once(work)


@router.delete("", response_model=DeleteArtifactResponse)
async def delete_artifact(
    act: AdminAction,
    name: NameParameter,
    session: SessionParameter = None,
    version: Annotated[int | None, Query(ge=1, description="Only this version. Default: all versions.")] = None,
    reason: Annotated[CleanText, Query(max_length=1_000, description="The reason, which is recorded.")] = "requested",
) -> Response:
    """Permanently delete an artifact. The message that contains its text stays; forget that message to delete both."""

    async def work(newton: AgentServices) -> DeleteArtifactResponse:
        service = newton.artifacts(ORIGIN)
        session_id = await service.find_session(session)
        return DeleteArtifactResponse(deleted=await service.delete(session_id, name, version=version, reason=reason))

    return await act.run_once(work)


async def _add(service: ArtifactService, body: AddArtifactRequest) -> AddedArtifact:
    if body.content is not None:
        return await service.add(body.session, body.name, body.content, media_type=body.media_type)
    byte_count, sha256 = body.byte_count or 0, bytes.fromhex(body.sha256 or "")
    if body.data is not None:
        data = _decode(body.data)
        byte_count, sha256 = len(data), hashlib.sha256(data).digest()
    media_type = body.media_type or mimetypes.guess_type(body.name)[0] or "application/octet-stream"
    return await service.add_reference(
        body.session, body.name, media_type=media_type, byte_count=byte_count, sha256=sha256
    )


def _decode(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise InputError(
            "`data` is not base64.", hint="Encode the bytes in base64, or send `content` for text."
        ) from None
