"""The endpoint that appends messages and events to a session."""

from fastapi import APIRouter
from fastapi.responses import Response

from newton.agent.services.sessions import number_duplicates
from newton.agent.session_data.user_rules import hear_messages
from newton.memory import hygiene
from newton.memory.redaction.tally import count_redactions
from newton.runtime.api.base_models import ORIGIN
from newton.runtime.api.idempotency import WriteAction
from newton.runtime.api.session_messages import AppendMessagesRequest, AppendMessagesResponse, store_valid
from newton.runtime.wiring import AgentServices

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
            refused=[*body.refused, *refused],
        )

    response = await act.run_once(work)
    await act.caller.newton.process_written(ORIGIN)
    return response
