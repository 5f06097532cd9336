"""Endpoints that build a context for an input, or from the working memory of a session."""

import json
from collections.abc import Sequence
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import Field

from newton.agent.field_types import CleanText, Name, Ref, Timestamp
from newton.agent.inputs import ContextInput, WorkingMemoryInput
from newton.client.context import ContextResponse
from newton.cognition.request import ContextBuildRequest, ContextFilters, SentMessages
from newton.dialogue import sessions
from newton.errors import InputError
from newton.memory.memory import Kind
from newton.runtime.api.auth import AuthenticatedCaller, ReadAccess
from newton.runtime.api.base_models import ORIGIN, with_example
from newton.runtime.api.path_ids import IdRef, resolve_memory_ref
from newton.runtime.tools.views import WorkingMemoryResponse
from newton.runtime.tools.working_memory import build_working_context
from newton.runtime.wiring import AgentServices

router = APIRouter(prefix="/v1", tags=["context"])


class ContextRequest(ContextInput):
    """The input for which to build a context, and filters on the memories in it."""

    model_config = with_example(input="The staging server does not answer, what is wrong?")

    session: Ref | None = Field(
        None,
        description="The session to which the input belongs. The folder of a session is its name up to the first slash;"
        " memories from sessions of the same folder are preferred.",
        examples=["planning"],
    )
    omit_session_messages: bool = Field(
        default=False,
        description="Leave out the messages and events of the session, for a caller that has them already.",
    )
    profile: Name | None = Field(None, description="The name of the profile that scores the memories.")
    as_of: Timestamp | None = Field(None, description="Build the context as of this time in the past.")
    since: Timestamp | None = None
    until: Timestamp | None = None
    kinds: list[Kind] = Field([], description="Include only memories of these kinds.", examples=[["fact", "decision"]])
    event_types: list[Name] = Field([])
    entity_types: list[Name] = Field([])
    exclude: list[IdRef] = Field([], max_length=200)
    additional: CleanText | None = Field(None, description="Additional text to include in the context.")
    item_ids: bool = Field(default=False, description="Show in each line of a memory the id that `expand` accepts.")


@router.post("/context", response_model=ContextResponse)
async def build_context(body: ContextRequest, caller: ReadAccess) -> Response:
    """Build the context for an input, and store it as a bundle. The input does not become a memory."""
    newton = caller.newton
    bundle = await newton.context_builder.build(await _to_context_query(caller, body))
    if body.as_of is None:  # a context of the past does not count as a use of its memories
        await newton.memories(ORIGIN).record_access([item.memory_id for item in bundle.items])
    # a plain response, because validating hundreds of candidates takes longer than ranking them
    return Response(json.dumps(bundle.as_json(), ensure_ascii=False), media_type="application/json")


@router.get("/working-memory")
async def get_working_memory(
    caller: ReadAccess, query: Annotated[WorkingMemoryInput, Query()]
) -> WorkingMemoryResponse:
    """Build a context from the working memory of a session (the memories it used lately), without a search."""
    return await build_working_context(caller.newton, query)


async def _to_context_query(caller: AuthenticatedCaller, body: ContextRequest) -> ContextBuildRequest:
    newton, settings = caller.newton, caller.newton.settings
    if body.as_of is not None and body.as_of > newton.scope.now():
        raise InputError(f"{body.as_of.isoformat()} is in the future.", hint="Omit as_of for the present.")
    sets = {name: frozenset(getattr(body, name)) for name in ("kinds", "event_types", "entity_types")}
    excluded = frozenset([await resolve_memory_ref(caller, ref) for ref in body.exclude])
    session_id, related = await _find_sessions(newton, body.session)
    sent = SentMessages(session_id=session_id, first_position=0, has_events=True) if session_id else None
    return ContextBuildRequest(
        agent_id=newton.scope.agent_id,
        input=body.input,
        tokens=settings.context_tokens if body.max_tokens is None else body.max_tokens,
        adaptive_budget=body.max_tokens is None,
        fill=body.fill,
        frame=body.frame,
        profile=body.profile or settings.profile,
        session_id=session_id,
        related_sessions=related,
        sent_messages=sent if body.omit_session_messages else None,
        as_of=body.as_of,
        filters=ContextFilters(since=body.since, until=body.until, exclude=excluded, **sets),
        additional=body.additional,
        item_ids=body.item_ids,
    )


async def _find_sessions(newton: AgentServices, name: str | None) -> tuple[UUID | None, Sequence[UUID]]:
    """Return the id of the session and the ids of the sessions in its folder; None and () without a name."""
    if name is None:
        return None, ()
    async with newton.scope.transaction() as tx:
        session_id = await sessions.get_session_id(tx, agent_id=newton.scope.agent_id, ref=name)
        return session_id, await sessions.list_folder(tx, agent_id=newton.scope.agent_id, ref=name)
