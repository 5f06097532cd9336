"""Endpoints that store facts, process new memories and undo changes."""

from dataclasses import replace
from datetime import datetime
from typing import Literal
from uuid import UUID

from fastapi import APIRouter
from fastapi.responses import Response
from pydantic import Field

from newton.agent.field_types import Importance, Timestamp
from newton.agent.inputs import RememberInput
from newton.agent.services.memories import FactDraft
from newton.errors import NotFoundError
from newton.memory.lookup import MemoryMention
from newton.operations.results import ItemList
from newton.runtime.api.auth import WriteAccess
from newton.runtime.api.base_models import ORIGIN, RequestModel, ResponseModel, with_example
from newton.runtime.api.idempotency import WriteAction, replace_body
from newton.runtime.chat_backend.view_models import UndoneChangeView, to_undone_views
from newton.runtime.wiring import AgentServices

router = APIRouter(prefix="/v1/memories", tags=["memories"])


class RememberRequest(RememberInput):
    """A fact to store."""

    model_config = with_example(content="Ana lives in Porto.", subject="Ana", attribute="lives in", confidence=0.9)

    importance: Importance | None = Field(None, examples=[7])
    at: Timestamp | None = Field(None, description="When the fact became true. Default: now.")
    until: Timestamp | None = Field(None, description="When the fact stops being true, if known.")


class RememberResponse(ResponseModel):
    """The memory that contains the fact, whether the fact was new, and its effects on other facts."""

    memory_id: UUID
    status: Literal["new", "confirmed", "unchanged"] = Field(examples=["new"])
    started_at: datetime = Field(
        description="Time at which the request began. Pass it as `since` to `POST /v1/memories/process`."
    )
    replaced: list[MemoryMention] = Field(default=[], description="Stored facts that the new fact superseded.")
    contested: list[MemoryMention] = Field(
        default=[],
        description="Current facts that may contradict the new fact. `GET /v1/conflicts` lists such conflicts.",
    )
    redacted: dict[str, int] = Field(
        default={}, description="The secrets that were removed from the fact before it was stored, counted by kind."
    )
    warning: str | None = Field(
        default=None, description="A warning if the text matches a censor. The fact is stored nevertheless."
    )


class ProcessPendingRequest(RequestModel):
    since: Timestamp = Field(description="The `started_at` from the response to the write request.")


class UndoChangesRequest(RequestModel):
    since: Timestamp = Field(description="The time before the first message whose changes are undone.")


class ChangedMemory(ResponseModel):
    """A change of the state of a memory. `micro` is the shortest form of its text."""

    memory_id: UUID
    event: str
    from_state: str
    to_state: str
    reason: str
    micro: str


@router.post("", status_code=201, response_model=RememberResponse)
async def remember_fact(body: RememberRequest, act: WriteAction) -> Response:
    """Store a fact, or confirm a stored one. The fact may supersede or contradict facts that are stored.

    A fact whose `source` is a tool or the web is not stored if a censor blocks its text.
    """
    newton, warnings = act.caller.newton, list[str]()
    scope = newton.scope.at(ORIGIN, None if body.source == "own" else body.source)

    async def check(newton: AgentServices) -> None:
        if warning := await newton.action_gate(ORIGIN).check_write(body.content, trust=scope.trust):
            warnings.append(warning)

    async def work(newton: AgentServices, _: None) -> RememberResponse:
        started_at = newton.scope.now()
        memories = replace(newton.memories(ORIGIN), scope=newton.scope.at(ORIGIN, scope.trust))
        result = await memories.remember(FactDraft(**body.model_dump(exclude={"source"})))
        return RememberResponse(
            memory_id=result.memory_id, status=result.status, started_at=started_at, redacted=result.redacted
        )

    response = await act.run_after(check, work)
    await newton.maintenance(ORIGIN).process_pending()
    stored = RememberResponse.model_validate_json(bytes(response.body))
    answer = await _add_effects(newton, stored, warning=next(iter(warnings), None))
    return replace_body(response, answer)


async def _add_effects(newton: AgentServices, stored: RememberResponse, *, warning: str | None) -> RememberResponse:
    """Return the response with the facts that the new fact replaced or contradicts.

    If the fact has been deleted meanwhile, return the response unchanged.
    """
    try:
        effects = await newton.curation(ORIGIN).find_effects(stored.memory_id)
    except NotFoundError:
        return stored
    # not stored for a repetition of the request: it is text of the user
    return RememberResponse.from_source(
        stored,
        replaced=list(effects.replaced),
        contested=list(effects.contested),
        warning=warning,
    )


@router.post("/process")
async def process_memories(body: ProcessPendingRequest, caller: WriteAccess) -> ItemList[ChangedMemory]:
    """Index, embed and deduplicate new memories now, without waiting for a job.

    Returns the changes of states since the time `since`.
    """
    await caller.newton.maintenance(ORIGIN).process_pending(passages=True)
    changes = await caller.newton.curation(ORIGIN).list_changes(body.since)
    return ItemList(items=[ChangedMemory.from_source(step, micro=micro) for step, micro in changes])


@router.post("/undo", response_model=ItemList[UndoneChangeView])
async def undo_changes(body: UndoChangesRequest, act: WriteAction) -> Response:
    """Undo what messages have changed in the facts since the time `since`.

    Facts that they ended or hid hold again, those that a model learnt from them are retracted. Returns these changes,
    and those of the user's rules (`ruled`, `lifted`), which the routes of the identity undo.
    """

    async def work(newton: AgentServices) -> ItemList[UndoneChangeView]:
        return ItemList(items=to_undone_views(await newton.curation(ORIGIN).undo_changes(body.since)))

    return await act.run_once(work)
