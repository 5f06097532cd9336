"""Endpoints on what a session has: what was put into it, its statistics and its entities."""

from fastapi import APIRouter
from fastapi.responses import Response

from newton.agent.context_inputs import InjectionContentInput
from newton.operations.results import ItemList
from newton.runtime.api.auth import ReadAccess
from newton.runtime.api.base_models import ORIGIN, with_example
from newton.runtime.api.idempotency import WriteAction
from newton.runtime.api.path_ids import PathId
from newton.runtime.tools.session_info import (
    InjectionInfo,
    SessionStatsResponse,
    inject,
    to_injection_info,
    to_stats_response,
)
from newton.runtime.wiring import AgentServices

router = APIRouter(prefix="/v1/sessions", tags=["sessions"])


class InjectRequest(InjectionContentInput):
    """The content to put into a session: exactly one of a memory, a text, and messages of another session."""

    model_config = with_example(text="The deadline is 12 June")


@router.post("/{session:path}/injections", status_code=201, response_model=InjectionInfo)
async def inject_into_session(session: str, body: InjectRequest, act: WriteAction) -> Response:
    """Put a memory or a text into every context of a session, or messages of another session into its view.

    A session that does not exist is created for a memory or a text.
    """

    async def work(newton: AgentServices) -> InjectionInfo:
        return await inject(newton.injections(ORIGIN), session, body)

    return await act.run_once(work)


@router.get("/{session:path}/injections")
async def list_injections(session: str, caller: ReadAccess) -> ItemList[InjectionInfo]:
    """List the memories, texts and messages that were put into a session, oldest first."""
    found = await caller.newton.injections(ORIGIN).list_injections(session)
    return ItemList(items=[to_injection_info(one) for one in found])


@router.delete("/{session:path}/injections/{injection_id}", response_model=InjectionInfo)
async def eject_from_session(session: str, injection_id: PathId, act: WriteAction) -> Response:
    """Take out a memory, a text or messages that were put into a session. The id of the memory is accepted too."""

    async def work(newton: AgentServices) -> InjectionInfo:
        return to_injection_info(await newton.injections(ORIGIN).eject(session, injection_id))

    return await act.run_once(work)


@router.get("/{session:path}/stats")
async def get_session_stats(session: str, caller: ReadAccess) -> SessionStatsResponse:
    """Return the tokens of a session by part, its compactions, what is masked, and the tokens of its latest context."""
    return to_stats_response(await caller.newton.session_stats().read(session))
