"""Sessions: what was said in them, what a model is shown of it, and where they branch."""

from datetime import datetime
from typing import Annotated, Any, Self
from uuid import UUID

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from newton.agent.conversations import Conversations
from newton.agent.sending import messages as sent
from newton.cognition.budget import MOST_TOKENS
from newton.dialogue.branches import Branch
from newton.dialogue.entries import Listed
from newton.dialogue.lines import Line, Placed, Role
from newton.memory import hygiene
from newton.providers.chat import wire
from newton.runtime.api import pages
from newton.runtime.api.acting import Writing
from newton.runtime.api.caller import Reader, Writer
from newton.runtime.api.memories import DOOR
from newton.runtime.api.shapes import Answer, Cursor, Given, Limit, Page
from newton.runtime.transfer.given import GivenCall, Name, Ref, Time, Utterance, misspoken
from newton.runtime.wiring import Newton

router = APIRouter(prefix="/v1/sessions", tags=["sessions"])


class ToBegin(Given):
    """A session by the name that you give it."""

    session: Ref = Field(examples=["planning"])


class Begun(Answer):
    session_id: UUID


class Session(Answer):
    """A session, and where it leaves its parent when it has one."""

    session_id: UUID
    session: str
    created_at: datetime
    parent: str | None
    parent_position: int | None


class ToSay(Given):
    """A line of dialogue. `ref` is your own id of it: a line that the session has is left out."""

    role: Role
    content: Utterance = Field("", examples=["The staging server is restarted every Monday."])
    name: Name | None = Field(None, examples=["Ana"])
    ref: Ref | None = Field(None, examples=["m1"])
    at: Time | None = Field(None, description="When it was said, with a zone; without it, now.")
    calls: list[GivenCall] = Field([], description="What an assistant has tools do.")
    answers: Ref | None = Field(None, description="The id of the call that a tool's words answer.")

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if fault := misspoken(self):
            raise PydanticCustomError("refused", "{fault}", {"fault": fault})
        return self

    def line(self, *, now: datetime) -> Line:
        own = {name: getattr(self, name) for name in ("role", "content", "name", "ref", "answers")}
        return Line(**own, said_at=self.at or now, calls=tuple(call.call for call in self.calls))


class ToAppend(Given):
    messages: list[ToSay] = Field(min_length=1, max_length=1_000)


class Appended(Answer):
    """The places of the lines that are new."""

    positions: list[int]


class Message(Answer):
    """A line at its place."""

    position: int
    role: Role
    name: str | None
    content: str
    ref: str | None
    at: datetime
    tokens: int
    calls: list[dict[str, str]]
    answers: str | None


class View(Answer):
    """What a model is shown: messages of the chat protocol, what they cost, and what all lines behind them cost."""

    tokens: int
    logged: int
    messages: list[dict[str, Any]]


class ToCompact(Given):
    most: int | None = Field(None, ge=1, le=MOST_TOKENS, description="Without it, the room there is.", examples=[8000])


class Compacted(Answer):
    """What it cost to be shown, and what it costs now, in tokens; what all its lines cost."""

    before: int
    after: int
    logged: int


class Entry(Answer):
    """Words that stand in the place of older lines."""

    entry_id: UUID
    kind: str
    first: int
    last: int
    text: str
    tokens: int
    before: int
    strategy: str
    model: str | None
    made_at: datetime
    restored_at: datetime | None


class ToRestore(Given):
    entry_id: UUID


class Restored(Answer):
    """How many entries were dropped."""

    dropped: int


class ToName(Given):
    name: Ref = Field(examples=["before-redis"])


class Checkpoint(Answer):
    """A place with a name: behind that line."""

    name: str
    position: int
    at: datetime


class Marked(Answer):
    position: int


class ToBranch(Given):
    session: Ref = Field(description="What the new one is called.", examples=["planning-with-redis"])
    at: str | None = Field(None, description="A checkpoint or the number of a line; without it, the end.")


@router.get("")
async def listed(caller: Reader, limit: Limit = 50, cursor: Cursor = None) -> Page[Session]:
    """The sessions, the latest last."""
    after = pages.read_id(cursor)
    known = await _doors(caller.newton).list()
    ids = [one.session_id for one in known]
    start = ids.index(after) + 1 if after and after in ids else 0
    return pages.page(known[start : start + limit + 1], limit, _session, lambda one: one.session_id)


@router.post("", status_code=201, response_model=Begun)
async def begin(asked: ToBegin, act: Writing) -> Response:
    """Begin a session; one that there is goes on."""

    async def work(newton: Newton) -> Begun:
        session_id = await newton.conversations(DOOR).begin(asked.session)
        return Begun(session_id=session_id)

    return await act.once(work)


@router.post("/{session:path}/messages", status_code=201, response_model=Appended)
async def append(session: str, asked: ToAppend, act: Writing) -> Response:
    """Add lines; a session that is new begins with them."""

    async def work(newton: Newton) -> Appended:
        lines = [one.line(now=newton.scope.now()) for one in asked.messages]
        placed = await _doors(newton).append(hygiene.ref(session, what="session"), lines)
        return Appended(positions=[one.position for one in placed])

    return await act.once(work)


@router.get("/{session:path}/messages")
async def log(session: str, caller: Reader, limit: Limit = 100, cursor: Cursor = None) -> Page[Message]:
    """Every line, whole and as it was said."""
    first = pages.read_number(cursor)
    placed = await _doors(caller.newton).log(session, first=first, last=first + limit)
    return pages.page(placed, limit, _message, lambda one: one.position + 1)


@router.get("/{session:path}/view")
async def view(
    session: str,
    caller: Reader,
    most: Annotated[
        int | None, Query(ge=1, le=MOST_TOKENS, description="In so many tokens; without it, in the room there is.")
    ] = None,
) -> View:
    """What a model would be sent of it now: lines, and accounts in the place of older ones. Nothing is changed."""
    seen = await _doors(caller.newton).preview(session, most=most)
    return View(tokens=seen.tokens, logged=seen.logged, messages=[wire(one) for one in sent(seen.view)])


@router.post("/{session:path}/compact")
async def compact(session: str, asked: ToCompact, caller: Writer) -> Compacted:
    """Make it shorter where that is due. What is due once is not due again."""
    before, after = await _doors(caller.newton).compact(session, most=asked.most)
    return Compacted(before=before.tokens, after=after.tokens, logged=after.logged)


@router.get("/{session:path}/entries")
async def entries(session: str, caller: Reader) -> list[Entry]:
    """What stands, or stood, in the place of older lines."""
    return [_entry(one) for one in await _doors(caller.newton).entries(session)]


@router.post("/{session:path}/restore", response_model=Restored)
async def restore(session: str, asked: ToRestore, act: Writing) -> Response:
    """Bring back what an entry stands for."""

    async def work(newton: Newton) -> Restored:
        dropped = await _doors(newton).restore(session, asked.entry_id.hex)
        return Restored(dropped=dropped)

    return await act.once(work)


@router.get("/{session:path}/checkpoints")
async def checkpoints(session: str, caller: Reader) -> list[Checkpoint]:
    """The places that have names."""
    known = await _doors(caller.newton).checkpoints(session)
    return [Checkpoint(**one._asdict()) for one in known]


@router.post("/{session:path}/checkpoint", status_code=201, response_model=Marked)
async def checkpoint(session: str, asked: ToName, act: Writing) -> Response:
    """Name the place behind the last line."""

    async def work(newton: Newton) -> Marked:
        made = await _doors(newton).checkpoint(session, asked.name)
        return Marked(position=made.position)

    return await act.once(work)


@router.post("/{session:path}/branch", status_code=201, response_model=Begun)
async def branch(session: str, asked: ToBranch, act: Writing) -> Response:
    """Begin a session that goes on from this one, which stays as it is."""

    async def work(newton: Newton) -> Begun:
        session_id = await _doors(newton).branch(session, asked.session, at=asked.at)
        return Begun(session_id=session_id)

    return await act.once(work)


def _doors(newton: Newton) -> Conversations:
    return newton.conversations(DOOR)


def _session(one: Branch) -> Session:
    return Session(**{name: value for name, value in one._asdict().items() if name != "ref"}, session=one.ref)


def _message(placed: Placed) -> Message:
    line = placed.line
    return Message(
        position=placed.position,
        role=line.role,
        name=line.name,
        content=line.content,
        ref=line.ref,
        at=line.said_at,
        tokens=placed.tokens,
        calls=[call._asdict() for call in line.calls],
        answers=line.answers,
    )


def _entry(one: Listed) -> Entry:
    own = {name: getattr(one.entry, name) for name in Entry.model_fields if name != "restored_at"}
    return Entry(**own, restored_at=one.restored_at)
