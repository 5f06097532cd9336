"""The turn that a request asks for."""

import hashlib
from collections.abc import Sequence
from functools import partial

from fastapi import Request

from newton.agent.loop.history_match import HistoryMatch, IncomingMessage, fingerprint
from newton.agent.loop.turn_types import CallerOptions, TurnInput
from newton.providers.chat import ToolCall
from newton.runtime.api.chat_completions.request_models import ChatCompletionRequest, to_message_parts

SESSION_PREFIX = "openai"  # prefix of default session names, before a part of the token's hash


def to_turn_input(body: ChatCompletionRequest, history: HistoryMatch) -> TurnInput:
    """Return the last user message and the tool results after it."""
    sent = body.incoming_messages
    new = list(history.new_messages)
    ends_with_user = bool(new) and sent[-1].role == "user"
    last_user = next((one for one in reversed(sent) if one.role == "user"), IncomingMessage("user", history.last_input))
    parts_by_ref = {ref: to_message_parts(one) for ref, one in zip(history.fingerprints, sent, strict=True)}
    return TurnInput(
        session_id=history.session_id,
        text=last_user.text,
        ref=history.fingerprint if ends_with_user else None,
        earlier=new[:-1] if ends_with_user else new,
        already_stored=not ends_with_user,
        caller_options=CallerOptions(
            request_options=body.request_options,
            instructions=body.instructions,
            max_reply_tokens=body.max_reply_tokens,
            fingerprint=partial(sign_reply, history),
            offers_own_tools=body.wants_plain_text,
            accepts_quotes=body.wants_plain_text and not body.tools,
            attachments={ref: parts for ref, parts in parts_by_ref.items() if parts},
            input_parts=to_message_parts(last_user),
        ),
    )


def sign_reply(history: HistoryMatch, reply: str, calls: Sequence[ToolCall]) -> str:
    """Return the fingerprint of the reply to the last message."""
    return fingerprint(history.fingerprint, IncomingMessage("assistant", reply, tuple(calls)))


def default_session_name(request: Request) -> str:
    """Return the name of the session of requests that name none: one for each token."""
    authorization = request.headers.get("Authorization", "")
    return f"{SESSION_PREFIX}-{hashlib.sha256(authorization.encode()).hexdigest()[:12]}"
