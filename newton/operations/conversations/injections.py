"""Operations on what is put into a session: memories and texts of every context, and messages of another session."""

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from newton.agent.field_types import CleanText, Ref
from newton.agent.inputs import ToolInput
from newton.agent.session_data.injections import SessionInjection, ShownInjection
from newton.errors import InputError
from newton.heart.speakers import TargetStatement
from newton.memory.lookup import short_id
from newton.memory.representations import one_line
from newton.operations.declaration import operation
from newton.operations.fields import CommandOption, MemoryRef, SessionName, describe_id
from newton.operations.results import ItemList

if TYPE_CHECKING:
    from newton.operations.caller import OperationCaller

MAX_POSITION = 1_000_000_000
MAX_TEXT_CHARS = 100  # of a text as part of a line


class SessionRangeInput(ToolInput):
    """Messages of another session."""

    session: Annotated[Ref, CommandOption("from_")] = Field(description="The session that has the messages.")
    first: int = Field(ge=0, le=MAX_POSITION, description="The position of the first message, from 0.")
    last: int = Field(ge=0, le=MAX_POSITION, description="The position of the last message.")


def _describe(injection: SessionInjection) -> str:
    text = one_line(injection.text)
    cut = text if len(text) <= MAX_TEXT_CHARS else f"{text[: MAX_TEXT_CHARS - 1]}…"
    return cut if injection.type == "messages" else f'the {injection.type} "{cut}"' if cut else f"the {injection.type}"


def _format_injected(injection: SessionInjection) -> str:
    found = short_id(injection.injection_id)
    return f"Injected {_describe(injection)}.\nIts id is {found}; `newton sessions eject` takes it out again."


def _format_listed(injection: SessionInjection) -> str:
    tokens, time = f"{injection.tokens:,} tokens", f"{injection.created_at:%Y-%m-%d %H:%M}"
    return f"{short_id(injection.injection_id)}  {_describe(injection)}  {tokens}  {time}"


@operation(
    "POST /v1/sessions/{session:path}/injections",
    "adds",
    act="state",
    command="sessions inject",
    text=_format_injected,
    is_idempotent=True,
)
async def inject(
    caller: "OperationCaller",
    session: SessionName,
    text: Annotated[
        CleanText | None,
        Field(
            max_length=8_000,
            description="A text that every context of the session shows.",
            examples=["Answer in French"],
        ),
    ] = None,
    *,
    memory_id: Annotated[
        MemoryRef | None,
        CommandOption("memory"),
        Field(description="A memory that every context shows."),
    ] = None,
    messages: Annotated[
        SessionRangeInput | None,
        Field(description="Messages of another session, to show after the last message of this one."),
    ] = None,
) -> SessionInjection:
    """Put a memory or a text into every context of a session, or messages of another session into its conversation.

    It stays until `eject` takes it out. Use it for what must not be lost from view in a long conversation. A session
    that does not exist is created for a memory or a text.

    Example: newton sessions inject s "Answer in French, please."
    """
    if sum(one is not None for one in (text, memory_id, messages)) != 1:
        hint = "Give one of a text, a memory, and messages of another session."
        raise InputError("Nothing or too much to inject is given.", hint=hint)
    service = caller.injections
    if text is not None:
        return await service.inject_text(session, text)
    if messages is not None:
        return await service.inject_messages(session, messages.session, first=messages.first, last=messages.last)
    return await service.inject_memory(session, memory_id or "")


@operation(
    "GET /v1/sessions/{session:path}/injections",
    "reads",
    name="injections",
    command="sessions injections",
    text=_format_listed,
    empty="Nothing was put into this session.",
)
async def list_injections(caller: "OperationCaller", session: SessionName) -> ItemList[ShownInjection]:
    """List the memories, texts and messages that were put into a session, oldest first.

    Example: newton sessions injections s
    """
    return ItemList(items=await caller.injections.list_injections(session))


async def _list_ejected(caller: "OperationCaller", session: str, injection_id: str) -> list[TargetStatement]:
    return [TargetStatement((await caller.injections.find(session, injection_id)).trust)]


@operation(
    "DELETE /v1/sessions/{session:path}/injections/{injection_id}",
    "changes",
    act="end",
    list_targets=_list_ejected,
    command="sessions eject",
    text=lambda ejected: f"Removed {_describe(ejected)}.",
)
async def eject(
    caller: "OperationCaller",
    session: SessionName,
    injection_id: Annotated[str, describe_id("injection", ", or the id of the memory that was put in")],
) -> SessionInjection:
    """Take a memory, a text or messages out of a session that `inject` has put into it.

    Example: newton sessions eject s 3f9c2a71
    """
    return await caller.injections.eject(session, injection_id)
