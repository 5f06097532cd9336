"""A context for an input, as every door answers it."""

import json
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from fastapi import APIRouter
from fastapi.responses import Response
from pydantic import Field

from newton.cognition.assembly.budget import MAX_CONTEXT_TOKENS
from newton.cognition.request import ContextBuildRequest, ContextFilters
from newton.dialogue import sessions
from newton.errors import InputError
from newton.memory.memory import Kind
from newton.runtime.api.auth import ReadAccess
from newton.runtime.api.routes.memories import ORIGIN
from newton.runtime.api.schemas import RequestModel, ResponseModel
from newton.runtime.transfer.schema import CleanText, Name, Ref, Timestamp
from newton.runtime.wiring import AgentServices

router = APIRouter(prefix="/v1", tags=["context"])


class ContextRequest(RequestModel):
    """An input that wants a context."""

    input: CleanText = Field(examples=["The staging server does not answer, what is wrong?"])
    tokens: int | None = Field(
        None,
        ge=1,
        le=MAX_CONTEXT_TOKENS,
        description="The most; all that fits comes in then. Without it an input is allotted what it needs of the usual"
        " number, and what is far from it stays out.",
    )
    session: Ref | None = Field(None, description="The session that it is asked in.", examples=["planning"])
    frame: Name | None = Field(None, description="The frame to look at it in; without it, it is chosen.")
    profile: Name | None = Field(None, description="The profile to score memories by.")
    as_of: Timestamp | None = Field(None, description="The context as it would have been then, with a zone.")
    since: Timestamp | None = None
    until: Timestamp | None = None
    kinds: list[Kind] = Field([], description="Only these.", examples=[["fact", "decision"]])
    event_types: list[Name] = Field([])
    entity_types: list[Name] = Field([])
    exclude: list[UUID] = Field([])
    additional: CleanText | None = Field(None, description="Words of yours that stand in it too.")


class FrameSelection(ResponseModel):
    """How the input was looked at, how surely, and why."""

    name: str = Field(examples=["debug"])
    confidence: float
    runner_up: str | None
    forced: bool
    unsure: bool
    reason: str
    evidence: dict[str, dict[str, float]]


class LayerTokens(ResponseModel):
    """Tokens that a layer was given, and those that it used."""

    budget: int
    used: int


class DroppedCandidate(ResponseModel):
    """A candidate that was looked at and left out, and why."""

    memory_id: UUID
    refs: list[str]
    score: float
    evidence: float
    reason: str


class ContextItemInfo(DroppedCandidate):
    """A memory that stands in the context."""

    kind: Kind
    layer: str
    detail: Literal["summary", "micro"]
    tokens: int
    text: str
    source: str
    features: dict[str, float]


class ContextResponse(ResponseModel):
    """A context with the reason for each memory that is in it, or is not."""

    bundle_id: UUID
    as_of: datetime | None
    input: str
    text: str
    tokens: int
    truncated: bool
    budget: int
    frame: FrameSelection
    profile: dict[str, Any]
    identity: dict[str, Any]
    layers: dict[str, LayerTokens]
    filters: dict[str, Any] | None = None
    left_nothing: dict[str, Any] | None = None
    times: dict[str, Any]
    missing: dict[str, str]
    update: dict[str, Any] | None
    timings_ms: dict[str, float]
    considered: dict[str, int]
    items: list[ContextItemInfo]
    dropped: list[DroppedCandidate]


@router.post("/context", response_model=ContextResponse)
async def build_context(body: ContextRequest, caller: ReadAccess) -> Response:
    """The context for an input, within its tokens. It is kept as a bundle; the input is not remembered."""
    newton = caller.newton
    bundle = await newton.context_builder.build(await _to_context_query(newton, body))
    if body.as_of is None:  # a look at the past is no use of what it shows
        await newton.memories(ORIGIN).record_access([item.memory_id for item in bundle.items])
    # it is made by us, and to check hundreds of candidates once more takes longer than to choose among them
    return Response(json.dumps(bundle.as_json(), ensure_ascii=False), media_type="application/json")


async def _to_context_query(newton: AgentServices, body: ContextRequest) -> ContextBuildRequest:
    settings = newton.settings
    return ContextBuildRequest(
        agent_id=newton.scope.agent_id,
        input=body.input,
        tokens=settings.context_tokens if body.tokens is None else body.tokens,
        adaptive_budget=body.tokens is None,
        frame=body.frame,
        profile=body.profile or settings.profile,
        session_id=await _find_session(newton, body.session),
        as_of=_require_past(newton, body.as_of),
        filters=_to_filters(body),
        additional=body.additional,
    )


def _to_filters(body: ContextRequest) -> ContextFilters:
    return ContextFilters(
        since=body.since,
        until=body.until,
        kinds=frozenset(body.kinds),
        event_types=frozenset(body.event_types),
        entity_types=frozenset(body.entity_types),
        exclude=frozenset(body.exclude),
    )


def _require_past(newton: AgentServices, moment: datetime | None) -> datetime | None:
    if moment is not None and moment > newton.scope.now():
        raise InputError(f"{moment.isoformat()} has not been yet.", hint="Leave as_of out for the present.")
    return moment


async def _find_session(newton: AgentServices, name: str | None) -> UUID | None:
    if name is None:
        return None
    async with newton.scope.transaction() as tx:
        return await sessions.get_session_id(tx, agent_id=newton.scope.agent_id, ref=name)
