"""The endpoint that appends messages and events to a session."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, Self, TypeVar, cast

from fastapi import APIRouter
from fastapi.responses import Response
from pydantic import Field, JsonValue, ModelWrapValidatorHandler, PrivateAttr, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from newton.agent.field_types import Ref, Timestamp
from newton.agent.services.sessions import number_duplicates
from newton.agent.session_data.user_rules import hear_messages
from newton.content.validation_messages import describe_problem
from newton.errors import ConflictError, InputError, NewtonError
from newton.heart.events.event_store import NewEvent
from newton.heart.events.event_types import validate_event
from newton.memory import hygiene
from newton.memory.redaction.tally import count_redactions
from newton.runtime.api.base_models import ORIGIN, RequestModel, ResponseModel
from newton.runtime.api.idempotency import WriteAction
from newton.runtime.transfer.import_lines import MessageFields
from newton.runtime.wiring import AgentServices

Item = TypeVar("Item")
Stored = TypeVar("Stored")
ItemList = Literal["messages", "events"]
ITEM_LISTS: tuple[ItemList, ...] = ("messages", "events")


class MessageInput(RequestModel, MessageFields):
    """A message. `ref` is an id of your own: a message whose `ref` the session already has is ignored."""

    ref: Ref | None = Field(None, examples=["m1"])
    at: Timestamp | None = Field(None, description="When the message was sent. Default: now.")


class EventInput(RequestModel):
    """An action of an agent, or what it observed.

    `ref` is an id of your own: an event whose `ref` the session already has is ignored.
    """

    ref: Ref = Field(examples=["call_1"])
    event_type: str = Field(
        description="One of file_read, file_write, shell_exec and error, or a type of your own.",
        examples=["shell_exec"],
    )
    payload: dict[str, JsonValue] = Field(examples=[{"command": "make test", "exit_code": 0}])
    at: Timestamp | None = Field(None, description="When the event occurred. Default: now.")

    def to_event(self, *, now: datetime) -> NewEvent:
        return NewEvent(ref=self.ref, event=validate_event(self.event_type, self.at or now, self.payload))


class RefusedItem(ResponseModel):
    """A message or event that is not stored."""

    item: str = Field(description="The place of the item in the request.", examples=["messages[3]"])
    detail: str = Field(description="Why the item is not stored.", examples=["role: Input should be 'user'."])


class AppendMessagesRequest(RequestModel):
    """Messages, events, or both. Output of tools in events is stored as quarantined."""

    messages: list[MessageInput] = Field([], max_length=1_000)
    events: list[EventInput] = Field([], max_length=1_000)
    on_invalid: Literal["reject", "skip"] = Field(
        "reject",
        description="What an invalid message or event does: `reject` the request, or `skip` only that item and list it"
        " in `refused`. If all are invalid, the request is rejected.",
    )
    _refused: list[RefusedItem] = PrivateAttr(default_factory=list[RefusedItem])
    _places: dict[ItemList, list[int]] = PrivateAttr(default_factory=dict[ItemList, list[int]])

    @property
    def refused(self) -> list[RefusedItem]:
        """Return the items that were left out because they are invalid."""
        return self._refused

    def refuse(self, name: ItemList, index: int, error: NewtonError) -> RefusedItem:
        """Return the place in the request and the error of the item at `index` of the list `name`."""
        place = self._places[name][index] if self._places else index
        return RefusedItem(item=f"{name}[{place}]", detail=error.what)

    @model_validator(mode="wrap")
    @classmethod
    def _skip_invalid(cls, data: object, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Validate the request; if that fails and it says so, validate it without its invalid items."""
        try:
            return handler(data)
        except ValidationError as error:
            refused = dict(_find_invalid_items(error))
            body = cast("dict[str, Any]", data) if isinstance(data, dict) else dict[str, Any]()
            if not refused or body.get("on_invalid") != "skip":
                raise
            counts = {name: len(body.get(name, ())) for name in ITEM_LISTS}
            places: dict[ItemList, list[int]] = {
                name: [index for index in range(counts[name]) if (name, index) not in refused] for name in ITEM_LISTS
            }
            if not any(places.values()):
                raise
        kept = {name: [body[name][index] for index in indexes] for name, indexes in places.items()}
        request = handler({**body, **kept})
        request._refused = [RefusedItem(item=f"{name}[{at}]", detail=detail) for (name, at), detail in refused.items()]
        request._places = places
        return request

    @model_validator(mode="after")
    def _check_content(self) -> Self:
        if not (self.messages or self.events):
            raise PydanticCustomError("empty", "the request has no messages and no events")
        return self


class AppendMessagesResponse(ResponseModel):
    """The positions of the new messages, and the number of new events."""

    positions: list[int]
    events: int
    redacted: dict[str, int] = Field(
        default={},
        description="The secrets that were removed from the messages before they were stored, counted by kind.",
    )
    wills: list[str] = Field(
        [], description="What was done about messages in which a person asks not to keep or to forget something."
    )
    refused: list[RefusedItem] = Field([], description="The invalid items, if the request says to skip them.")


async def store_valid(
    items: Sequence[Item], store: Callable[[Sequence[Item]], Awaitable[Stored]], *, skips_invalid: bool
) -> tuple[list[Stored], Mapping[int, NewtonError]]:
    """Store all items at once; if this fails and `skips_invalid` is True, store each item alone.

    Return the results of the calls, and the errors of the items that cannot be stored, by index. `store` must raise
    ConflictError or InputError before it changes anything.
    """
    if not items:
        return [], {}
    try:
        return [await store(items)], {}
    except (ConflictError, InputError):
        if not skips_invalid:
            raise
    results: list[Stored] = []
    errors: dict[int, NewtonError] = {}
    for index, item in enumerate(items):
        try:
            results.append(await store([item]))
        except (ConflictError, InputError) as error:
            errors[index] = error
    return results, errors


def _find_invalid_items(error: ValidationError) -> Iterator[tuple[tuple[ItemList, int], str]]:
    """Yield the place and the first error of each invalid item; nothing if the error is not about an item."""
    found: dict[tuple[ItemList, int], str] = {}
    for one in error.errors():
        match one["loc"]:
            case ("messages" | "events" as name, int(index), *field):
                place = f"{'.'.join(map(str, field))}: " if field else ""
                found.setdefault((name, index), f"{place}{describe_problem(one)}.")
            case _:
                return
    yield from found.items()


router = APIRouter(prefix="/v1/sessions", tags=["sessions"])


@router.post("/{session:path}/messages", status_code=201, response_model=AppendMessagesResponse)
async def append_messages(session: str, body: AppendMessagesRequest, act: WriteAction) -> Response:
    """Append messages and events to a session. A session that does not exist is created."""

    async def work(newton: AgentServices) -> AppendMessagesResponse:
        now, service, name = newton.scope.now(), newton.sessions(ORIGIN), hygiene.clean_ref(session, what="session")
        skips_invalid = body.on_invalid == "skip"
        messages = number_duplicates([one.to_message(ref=one.ref, said_at=one.at or now) for one in body.messages])
        parts, errors = await store_valid(
            messages, lambda items: service.append(name, items), skips_invalid=skips_invalid
        )
        counts, event_errors = await store_valid(
            body.events,
            lambda items: service.record_events(name, [one.to_event(now=now) for one in items]),
            skips_invalid=skips_invalid,
        )
        stored = [one for part in parts for one in part]
        await hear_messages(newton.scope.at(ORIGIN), stored)
        refused = [body.refuse("messages", index, error) for index, error in errors.items()]
        refused += [body.refuse("events", index, error) for index, error in event_errors.items()]
        return AppendMessagesResponse(
            positions=[one.position for one in stored],
            events=sum(counts),
            redacted=count_redactions(*(one.message.content for one in stored)),
            wills=[one.notice for one in stored if one.notice],
            refused=[*body.refused, *refused],
        )

    response = await act.run_once(work)
    await act.caller.newton.process_written(ORIGIN)
    return response
