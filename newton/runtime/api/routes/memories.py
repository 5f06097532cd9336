"""Endpoints of single memories: store, read and edit."""

from dataclasses import replace
from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import Field

from newton.agent.field_types import Importance, Timestamp
from newton.agent.inputs import RememberInput
from newton.agent.memory_inputs import EditMemoryInput
from newton.agent.services.memories import FactDraft
from newton.errors import NotFoundError
from newton.memory.importance import MAX_IMPORTANCE
from newton.memory.inventory.edits import EditableField
from newton.memory.lookup import cut_page
from newton.memory.memory import Kind, Outcome, Trust
from newton.operations.results import ItemList
from newton.runtime.api.auth import ReadAccess, WriteAccess
from newton.runtime.api.base_models import ORIGIN, RequestModel, ResponseModel, with_example
from newton.runtime.api.idempotency import WriteAction, replace_body
from newton.runtime.api.path_ids import MemoryId
from newton.runtime.chat_backend.view_models import UndoneChangeView, to_undone_views
from newton.runtime.tools.views import MemoryMentionInfo
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
    replaced: list[MemoryMentionInfo] = Field(default=[], description="Stored facts that the new fact superseded.")
    contested: list[MemoryMentionInfo] = Field(
        default=[],
        description="Current facts that may contradict the new fact. `GET /v1/conflicts` lists such conflicts.",
    )
    redacted: dict[str, int] = Field(
        default={}, description="The secrets that were removed from the fact before it was stored, counted by kind."
    )
    warning: str | None = Field(
        default=None, description="A warning if the text matches a censor. The fact is stored nevertheless."
    )


class MemoryLinkInfo(ResponseModel):
    """A link to another memory. `micro` is the shortest form of the other memory's text."""

    type: str = Field(examples=["supersedes"])
    memory_id: UUID
    kind: Kind
    state: str
    micro: str


class StateChangeInfo(ResponseModel):
    """A change of the state of a memory."""

    changed_at: datetime
    from_state: str
    to_state: str
    event: str
    reason: str
    origin: str
    replaced_by: MemoryMentionInfo | None = Field(None, description="The fact that superseded the memory.")


class MemoryEditInfo(ResponseModel):
    """A change of one field by a person. Null stands for a field that is not set."""

    edited_at: datetime
    field: EditableField
    old_value: str | None
    new_value: str | None
    origin: str
    author: str = Field(description="Who made the edit: `token` and its name, `operator`, or the trust of the caller.")


class MemoryResponse(ResponseModel):
    """A memory with its full text, source, links, state changes and edits."""

    memory_id: UUID
    kind: Kind
    state: str = Field(examples=["ACTIVE"])
    micro: str
    summary: str
    full_text: str
    remaining_chars: int = Field(description="The number of characters of the text that follow after `full_text`.")
    confidence: float | None
    importance: float | None = Field(
        description="The importance from 0 to 10 if a person set it; null if it is computed."
    )
    outcome: Outcome | None
    confirmations: int
    uses: int
    occurred_at: datetime
    created_at: datetime
    confirmed_at: datetime | None
    origin: str
    trust: Trust
    quarantined: bool
    ref: str | None
    fact: dict[str, str] = Field(description="Subject, attribute and validity of a fact. Empty for other kinds.")
    links: list[MemoryLinkInfo]
    changes: list[StateChangeInfo]
    edits: list[MemoryEditInfo]


class EditMemoryRequest(EditMemoryInput):
    """The new values of fields of a memory. Omitted fields are not changed."""

    model_config = with_example(importance=8)


class EditResponse(ResponseModel):
    """The memory after the edit. `changed` names the fields that have a new value."""

    memory_id: UUID
    state: str
    importance: float = Field(description="The importance, from 0 to 10.")
    is_importance_set: bool
    is_core: bool
    changed: list[EditableField]


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
        replaced=list(map(MemoryMentionInfo.from_source, effects.replaced)),
        contested=list(map(MemoryMentionInfo.from_source, effects.contested)),
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


@router.get("/{memory_id}")
async def get_memory(
    memory_id: MemoryId,
    caller: ReadAccess,
    offset: Annotated[int, Query(ge=0, description="The first character of `full_text` to return.")] = 0,
    limit: Annotated[int | None, Query(ge=1, description="Maximum characters of `full_text`. Default: all.")] = None,
) -> MemoryResponse:
    """Return a memory with its full text, or with a part of the text."""
    detail, changes, fact = await caller.newton.curation(ORIGIN).get(memory_id.hex)
    links = [MemoryLinkInfo.from_source(one) for one in detail.relatives]
    history = [
        StateChangeInfo.from_source(
            one, changed_at=one.at, replaced_by=one.replaced_by and MemoryMentionInfo.from_source(one.replaced_by)
        )
        for one in changes
    ]
    edits = await caller.newton.memory_editor(ORIGIN, caller.author).list_edits(memory_id)
    page = cut_page(detail.full_text, offset=offset, limit=limit or len(detail.full_text))
    return MemoryResponse.from_source(
        detail,
        full_text=page.text,
        remaining_chars=page.remaining_chars,
        fact=fact,
        links=links,
        changes=history,
        importance=None if detail.importance is None else MAX_IMPORTANCE * detail.importance,
        edits=[MemoryEditInfo.from_source(one) for one in edits],
    )


@router.patch("/{memory_id}", response_model=EditResponse)
async def edit_memory(memory_id: MemoryId, body: EditMemoryRequest, act: WriteAction) -> Response:
    """Edit the importance, the core mark or the subject of a memory. Use `supersede` to change the text.

    The core mark needs a token with the scope admin: no later statement of a program supersedes a core fact.
    """
    if "core" in body.model_fields_set:
        act.caller.require_scope("admin")

    async def work(newton: AgentServices) -> EditResponse:
        edited = await newton.memory_editor(ORIGIN, act.caller.author).edit(memory_id.hex, body)
        return EditResponse.from_source(edited.memory, changed=list(edited.changed))

    return await act.run_once(work)
