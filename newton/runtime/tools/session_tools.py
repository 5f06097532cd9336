"""Tools on sessions."""

import json
from datetime import datetime

from newton.agent.exchange_inputs import NoteExchangeInput, ToolRunInput
from newton.agent.loop.tools import ToolResult
from newton.agent.session_data.user_rules import hear_messages
from newton.cognition.pending_approvals import list_lines
from newton.cognition.sources import session_state
from newton.dialogue.messages import Message, StoredMessage
from newton.heart.events.event_store import NewEvent
from newton.heart.events.tool_results import ToolOutcome, to_event
from newton.ids import new_id
from newton.memory.memory import Trust
from newton.memory.redaction.tally import count_redactions
from newton.operations.caller import OperationCaller

DEFAULT_SESSION = "mcp"  # of an exchange, if neither the call nor the connection names a session


async def note_exchange(caller: OperationCaller, args: NoteExchangeInput) -> ToolResult:
    """Store a message of the user, the reply to it and the results of the tools, as the client reports them.

    The trust of the message is at most the caller's. A matching censor only warns, because the messages were sent
    already; a match with the reply is counted.
    """
    warning = await _check_exchange(caller, args)
    now = caller.newton.scope.now()
    said = Message(role="user", content=args.user, said_at=now, min_trust=caller.trust)
    min_trust: Trust | None = "tool" if args.tools else None  # the reply follows what the tools returned
    reply = args.assistant and Message(role="assistant", content=args.assistant, said_at=now, min_trust=min_trust)
    messages = [said, reply] if reply else [said]
    service, session = caller.newton.sessions(caller.origin), args.session or DEFAULT_SESSION
    stored = await service.append(session, messages)
    heard = await hear_messages(caller.newton.scope.at(caller.origin), stored)
    events = [_to_event(one, at=now) for one in args.tools]
    recorded = await service.record_events(session, events) if events else 0
    await caller.newton.process_written(caller.origin, reads_now=heard.is_unsure)
    pending = await _list_pending_approvals(caller, stored[0]) if stored else []
    redacted = count_redactions(*(one.message.content for one in stored))
    counts = {"messages": len(stored), "tool_results": recorded, "redacted": redacted}
    rules = {
        "rules": [change.added.text for change in heard.changes if change.added],
        "lifted_rules": [tenet.text for change in heard.changes for tenet in change.removed],
        "proposed_rules": [proposal.tenet.text for proposal in heard.proposed],
    }
    fields = {"session": session, **counts, **rules, "pending_approvals": pending, "warning": warning}
    return ToolResult({name: value for name, value in fields.items() if value})


async def _list_pending_approvals(caller: OperationCaller, first: StoredMessage) -> list[str]:
    """Return a line for each thing that waits for approval and was told neither by a context nor before `first`."""
    scope = caller.newton.scope
    async with scope.transaction() as tx:
        pending = await session_state.list_pending_approvals(
            tx, agent_id=scope.agent_id, session_id=first.session_id, position=first.position, now=scope.now()
        )
    return list_lines(pending)


def _to_event(run: ToolRunInput, *, at: datetime) -> NewEvent:
    outcome = ToolOutcome(run.tool, json.dumps(run.input, ensure_ascii=False), run.output, run.is_error)
    return NewEvent(ref=str(new_id()), event=to_event(outcome, occurred_at=at), is_tool_result=True)


async def _check_exchange(caller: OperationCaller, args: NoteExchangeInput) -> str | None:
    """Return the warning of a censor that matches the reply or the user's message; None if none matches."""
    gate = caller.newton.action_gate(caller.origin)
    checks = [await gate.check(args.assistant, "action")] if args.assistant else []
    checks.append(await gate.check(args.user, "input"))
    return next((check.message for check in checks if check.matches), None)
