"""A turn of a conversation as Newton itself holds it, and what a person answers in one."""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response, StreamingResponse
from pydantic import Field

from newton.content.frames import frame_named
from newton.dialogue import sessions
from newton.dialogue.compaction.events import Event, payload
from newton.errors import NewtonError
from newton.memory.hygiene import clean, ref
from newton.runtime.access.tokens import Scope
from newton.runtime.api import problems
from newton.runtime.api.acting import Ruling, Writing
from newton.runtime.api.caller import Reader, Writer
from newton.runtime.api.memories import DOOR
from newton.runtime.api.shapes import Answer, Given
from newton.runtime.api.taking import Taking
from newton.runtime.talk.here import Here, waiting
from newton.runtime.talk.told import Explained, Turned, Wish, explained
from newton.runtime.transfer.given import Name, Time
from newton.runtime.wiring import Newton

router = APIRouter(prefix="/v1", tags=["talk"])

PERSON = "chat"  # who is trusted to forget and erase is a person, or speaks for one

STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Server-sent events: `piece` with the `text` of each piece of the reply as it comes,"
        " `compaction` while the conversation is made shorter, and at the end `answer` or `problem`. An answer has"
        " `text`, `degraded` (why no model answered to the end), `quoted`, `failed`, `caveat`, `proposed` (what waits"
        " for a yes), `how` and `because` (whether the context was made for this) and `contents` (what is in it).",
        "content": {
            "text/event-stream": {
                "schema": {
                    "type": "object",
                    "description": "One event of the stream.",
                    "properties": {"id": {"type": "string"}, "event": {"type": "string"}, "data": {"type": "string"}},
                    "required": ["data"],
                },
                "example": 'event: piece\ndata: {"text": "It is "}\n\nevent: piece\ndata: {"text": "Artemis."}\n\n',
            }
        },
    }
}


class Agent(Answer):
    """For whom the token speaks and how far it reaches, and the model that answers; null when none is set."""

    agent: str
    scope: Scope
    model: str | None


class ToTake(Given):
    """What a person says."""

    text: str = Field(examples=["What is the ferry called?"])
    frame: Name | None = Field(None, description="The frame to look at it in; without it, it is chosen.")
    whole: bool = Field(default=False, description="Answer with the whole context, too.")


class Closed(Answer):
    session_id: UUID


class Accepted(Answer):
    """The line that stands, and those whose place it took."""

    tenet_id: UUID
    instead_of: list[UUID]


class Rejected(Answer):
    tenet_id: UUID


class ToSettle(Given):
    since: Time = Field(description="The time of what was written, as it was answered.")


class Changed(Answer):
    """A step of a memory's life that was taken, and its words in short."""

    memory_id: UUID
    event: str
    before: str
    after: str
    because: str
    micro: str


@router.get("/agent")
async def agent(request: Request, caller: Reader) -> Agent:
    """For whom the token speaks."""
    settings = caller.newton.settings
    model = settings.openai_model if request.app.state.minds.model else None
    return Agent(agent=settings.agent, scope=caller.scope, model=model)


@router.post("/sessions/{session:path}/turns", response_class=StreamingResponse, responses=STREAM, tags=["sessions"])
async def turn(session: str, asked: ToTake, request: Request, caller: Writer) -> StreamingResponse:
    """Say something in a session, and be answered as it comes. Who leaves before the end stops the answer; what was
    said until then is kept."""
    name, text = ref(session, what="session"), clean(asked.text, what="message")
    if asked.frame:
        frame_named(caller.newton.frames, asked.frame)
    model, taking = request.app.state.minds.model, Taking[str | Turned | Event]()
    partner = Here(newton=caller.newton, turns=caller.newton.turns(model, origin=DOOR, tell=taking.put), origin=DOOR)
    pieces = partner.take(name, text, frame=asked.frame, whole=asked.whole)
    return StreamingResponse(_stream(taking.told(pieces, caller, request)), media_type="text/event-stream")


@router.post("/sessions/{session:path}/close", response_model=Closed, tags=["sessions"])
async def close(session: str, act: Writing) -> Response:
    """Say that the conversation is over: what was said in it becomes an episode. It may go on all the same."""

    async def work(newton: Newton) -> Closed:
        async with newton.scope.transaction() as tx:
            session_id = await sessions.known(tx, agent_id=newton.scope.agent_id, ref=session)
        await newton.conversations(DOOR).close(session_id)
        return Closed(session_id=session_id)

    return await act.once(work)


@router.post("/memories/settle", tags=["memories"])
async def settle(asked: ToSettle, caller: Writer) -> list[Changed]:
    """See to what was written at once: names, vectors, and what facts are to each other; it is done soon anyway.
    Answers what changed in memories since then."""
    await caller.newton.upkeep(DOOR).settle()
    changed = await caller.newton.curation(DOOR).changed(asked.since)
    steps = ("memory_id", "event", "before", "after", "because")
    return [Changed(**{name: getattr(step, name) for name in steps}, micro=micro) for step, micro in changed]


@router.get("/bundles/{bundle_id}/why", tags=["context"])
async def why(
    bundle_id: UUID,
    caller: Reader,
    item: Annotated[
        str, Query(max_length=1_000, description="Its number in the context, its id, its ref, or words of its text.")
    ],
) -> Explained:
    """Why a memory is in a context, or is not."""
    account = await caller.newton.hindsight().why(bundle_id.hex)
    return explained(account, account.picked(item))


@router.get("/identity/proposals", tags=["identity"])
async def proposals(caller: Reader) -> list[Wish]:
    """What people seem to want always; it waits for a person's yes."""
    return list(await waiting(caller.newton.bearing(DOOR)))


@router.post("/identity/proposals/{tenet_id}/accept", response_model=Accepted, tags=["identity"])
async def accept(tenet_id: UUID, act: Ruling) -> Response:
    """Say yes to it, as a person: it holds from now on, in the place of what goes against it."""

    async def work(newton: Newton) -> Accepted:
        tenet, standing = await newton.bearing(PERSON).accept(tenet_id.hex)
        return Accepted(tenet_id=tenet.tenet_id, instead_of=[one.tenet_id for one in standing])

    return await act.once(work)


@router.post("/identity/proposals/{tenet_id}/reject", response_model=Rejected, tags=["identity"])
async def reject(tenet_id: UUID, act: Ruling) -> Response:
    """Say no to it."""

    async def work(newton: Newton) -> Rejected:
        tenet = await newton.bearing(PERSON).reject(tenet_id.hex)
        return Rejected(tenet_id=tenet.tenet_id)

    return await act.once(work)


async def _stream(told: AsyncGenerator[str | Turned | Event | None]) -> AsyncGenerator[str]:
    yield ": newton\n\n"
    async with aclosing(told):
        try:
            async for said in told:
                yield ": beat\n\n" if said is None else _written(said)
        except NewtonError as error:
            yield _event("problem", problems.problem(error).model_dump())


def _written(said: str | Turned | Event) -> str:
    match said:
        case str():
            return _event("piece", {"text": said})
        case Turned():
            return _event("answer", said.model_dump(mode="json"))
        case _:
            return _event("compaction", payload(said))


def _event(type_: str, about: Mapping[str, object]) -> str:
    return f"event: {type_}\ndata: {json.dumps(about)}\n\n"  # ASCII: some readers end a line where Unicode does
