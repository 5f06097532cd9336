"""A context for an input, as every door answers it."""

import json
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from fastapi import APIRouter
from fastapi.responses import Response
from pydantic import Field

from newton.cognition.budget import MOST_TOKENS
from newton.cognition.filters import Filters
from newton.cognition.request import Request
from newton.dialogue import sessions
from newton.errors import InputError
from newton.memory.memory import Kind
from newton.runtime.api.caller import Reader
from newton.runtime.api.memories import DOOR
from newton.runtime.api.shapes import Answer, Given
from newton.runtime.transfer.given import Name, Ref, Time, Words
from newton.runtime.wiring import Newton

router = APIRouter(prefix="/v1", tags=["context"])


class ToKnow(Given):
    """An input that wants a context."""

    input: Words = Field(examples=["The staging server does not answer, what is wrong?"])
    tokens: int | None = Field(
        None,
        ge=1,
        le=MOST_TOKENS,
        description="The most; all that fits comes in then. Without it an input is allotted what it needs of the usual"
        " number, and what is far from it stays out.",
    )
    session: Ref | None = Field(None, description="The session that it is asked in.", examples=["planning"])
    frame: Name | None = Field(None, description="The frame to look at it in; without it, it is chosen.")
    profile: Name | None = Field(None, description="The profile to score memories by.")
    as_of: Time | None = Field(None, description="The context as it would have been then, with a zone.")
    since: Time | None = None
    until: Time | None = None
    kinds: list[Kind] = Field([], description="Only these.", examples=[["fact", "decision"]])
    event_types: list[Name] = Field([])
    entity_types: list[Name] = Field([])
    exclude: list[UUID] = Field([])
    additional: Words | None = Field(None, description="Words of yours that stand in it too.")


class FrameChosen(Answer):
    """How the input was looked at, how surely, and why."""

    name: str = Field(examples=["debug"])
    confidence: float
    runner_up: str | None
    forced: bool
    unsure: bool
    reason: str
    evidence: dict[str, dict[str, float]]


class Layer(Answer):
    """Tokens that a layer was given, and those that it used."""

    budget: int
    used: int


class Dropped(Answer):
    """A candidate that was looked at and left out, and why."""

    memory_id: UUID
    refs: list[str]
    score: float
    evidence: float
    reason: str


class Item(Dropped):
    """A memory that stands in the context."""

    kind: Kind
    layer: str
    detail: Literal["summary", "micro"]
    tokens: int
    text: str
    source: str
    features: dict[str, float]


class Context(Answer):
    """A context with the reason for each memory that is in it, or is not."""

    bundle_id: UUID
    as_of: datetime | None
    input: str
    text: str
    tokens: int
    truncated: bool
    budget: int
    frame: FrameChosen
    profile: dict[str, Any]
    identity: dict[str, Any]
    layers: dict[str, Layer]
    filters: dict[str, Any] | None = None
    left_nothing: dict[str, Any] | None = None
    times: dict[str, Any]
    missing: dict[str, str]
    update: dict[str, Any] | None
    timings_ms: dict[str, float]
    considered: dict[str, int]
    items: list[Item]
    dropped: list[Dropped]


@router.post("/context", response_model=Context)
async def context(asked: ToKnow, caller: Reader) -> Response:
    """The context for an input, within its tokens. It is kept as a bundle; the input is not remembered."""
    newton = caller.newton
    bundle = await newton.contexts.build(await _request(newton, asked))
    if asked.as_of is None:  # a look at the past is no use of what it shows
        await newton.verbs(DOOR).read([item.memory_id for item in bundle.items])
    # it is made by us, and to check hundreds of candidates once more takes longer than to choose among them
    return Response(json.dumps(bundle.as_json(), ensure_ascii=False), media_type="application/json")


async def _request(newton: Newton, asked: ToKnow) -> Request:
    settings = newton.settings
    return Request(
        agent_id=newton.scope.agent_id,
        input=asked.input,
        tokens=settings.context_tokens if asked.tokens is None else asked.tokens,
        adapt=asked.tokens is None,
        frame=asked.frame,
        profile=asked.profile or settings.profile,
        session_id=await _session(newton, asked.session),
        as_of=_past(newton, asked.as_of),
        filters=_filters(asked),
        additional=asked.additional,
    )


def _filters(asked: ToKnow) -> Filters:
    return Filters(
        since=asked.since,
        until=asked.until,
        kinds=frozenset(asked.kinds),
        event_types=frozenset(asked.event_types),
        entity_types=frozenset(asked.entity_types),
        exclude=frozenset(asked.exclude),
    )


def _past(newton: Newton, at: datetime | None) -> datetime | None:
    if at is not None and at > newton.scope.now():
        raise InputError(f"{at.isoformat()} has not been yet.", hint="Leave as_of out for the present.")
    return at


async def _session(newton: Newton, name: str | None) -> UUID | None:
    if name is None:
        return None
    async with newton.scope.transaction() as tx:
        return await sessions.known(tx, agent_id=newton.scope.agent_id, ref=name)
