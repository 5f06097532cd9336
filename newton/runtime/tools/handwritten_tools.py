"""The tools that no operation declares: they store documents and exchanges."""

import json
from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, Field, JsonValue

from newton.agent.document_inputs import IngestDocumentInput
from newton.agent.field_types import MessageContent, Name, Ref
from newton.agent.inputs import ToolInput
from newton.agent.loop.tools import ToolResult
from newton.agent.session_data.user_rules import hear_messages
from newton.cognition.pending_approvals import list_lines
from newton.cognition.sources import session_state
from newton.dialogue.messages import Message, StoredMessage
from newton.heart.events.event_store import NewEvent
from newton.heart.events.tool_results import ToolOutcome, cut_output, to_event
from newton.ids import new_id
from newton.memory.hygiene import MAX_MESSAGE_CHARACTERS
from newton.memory.memory import UNTRUSTED_TIERS, Trust, lowest_known_trust, lowest_trust
from newton.memory.redaction.tally import count_redactions
from newton.memory.tombstones import is_redacted
from newton.operations.caller import OperationCaller
from newton.operations.foreign_text import limit_trust

EMBEDDED_AT_ONCE = 16  # passages, while the caller waits


async def ingest_document(caller: OperationCaller, args: IngestDocumentInput) -> ToolResult:
    """Store a document, and embed its first passages. The job `embed` does the rest; until then words find them."""
    trust = (await limit_trust(caller, {})).trust
    trust = trust if args.source == "own" else lowest_trust((trust, args.source))
    service = caller.newton.ingest(caller.origin)
    read = await service.read_upload(args.content.encode(), name=args.name, title=args.title)
    stored = await service.store_upload(read, trust=trust)
    await caller.newton.maintenance(caller.origin).process_pending(EMBEDDED_AT_ONCE, passages=True)
    counts = stored.counts
    return ToolResult(
        {
            "document": stored.ref,
            "format": stored.format,
            "new": counts.new,
            "unchanged": counts.kept,
            "replaced": counts.replaced,
            "redacted": stored.redacted,
        }
    )


class ToolRunInput(ToolInput):
    """A tool that you ran, and what it returned."""

    tool: Name = Field(description="The name of the tool, such as bash or read_file.")
    input: dict[str, JsonValue] = Field({}, description='What you gave to it, such as {"command": "make test"}.')
    output: Annotated[str, AfterValidator(cut_output)] = Field(
        "", max_length=MAX_MESSAGE_CHARACTERS, description="What it returned, verbatim."
    )
    is_error: bool = Field(default=False, description="Whether the call failed.")


class NoteExchangeInput(ToolInput):
    """Store what was said: the user's message and your reply, verbatim. Both become messages of a session. When the
    session is idle, it becomes an episode, and facts are extracted from what the user said. Add the tools that you ran
    for the reply: later contexts show their results as data, such as the last error."""

    user: MessageContent = Field(description="The message of the user, in their words.", min_length=1)
    name: Name | None = Field(None, description="Who wrote the message, if it was not the user.")
    assistant: MessageContent | None = Field(None, description="Your reply.", min_length=1)
    tools: list[ToolRunInput] = Field([], max_length=100, description="The tools that you ran, in this order.")
    session: Ref | None = Field(
        None,
        description="The name of the conversation. Use the same name for all of its messages. Default: the session of"
        " the connection, else `mcp`.",
    )


DEFAULT_SESSION = "mcp"  # of an exchange, if neither the call nor the connection names a session


async def note_exchange(caller: OperationCaller, args: NoteExchangeInput) -> ToolResult:
    """Store a message of the user, the reply to it and the results of the tools, as the client reports them.

    The trust of the message is at most the caller's. A matching censor only warns, because the messages were sent
    already; a match with the reply is counted.
    """
    warning = await _check_exchange(caller, args)
    now = caller.newton.scope.now()
    session = args.session or DEFAULT_SESSION
    read = (await limit_trust(caller, {"session": session})).trust  # of what the assistant was given before
    said = Message(role="user", content=args.user, name=args.name, said_at=now, min_trust=caller.trust)
    ran: Trust | None = "tool" if args.tools else None
    min_trust = lowest_known_trust([ran, read if read in UNTRUSTED_TIERS else None])
    reply = args.assistant and Message(role="assistant", content=args.assistant, said_at=now, min_trust=min_trust)
    messages = [said, reply] if reply else [said]
    service = caller.newton.sessions(caller.origin)
    stored = await service.append(session, messages)
    heard = await hear_messages(caller.newton.scope.at(caller.origin), stored)
    is_kept = not any(is_redacted(one.message.content) for one in stored)
    events = [_to_event(one, at=now) for one in args.tools] if is_kept else []
    recorded = await service.record_events(session, events) if events else 0
    await caller.newton.process_written(caller.origin, reads_now=heard.is_unsure)
    pending = await _list_pending_approvals(caller, stored[0]) if stored else []
    redacted = count_redactions(*(one.message.content for one in stored))
    counts = {"messages": len(stored), "tool_results": recorded, "redacted": redacted}
    rules = {
        "wills": [one.notice for one in stored if one.notice],
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
    """Return the warning of a censor (rule) that matches the reply or the user's message; None if none matches."""
    gate = caller.newton.action_gate(caller.origin)
    checks = [await gate.check(args.assistant, "action")] if args.assistant else []
    checks.append(await gate.check(args.user, "input"))
    return next((check.message for check in checks if check.matches), None)
