"""JSON models of the prompts of a turn."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import Field

from newton.agent.prompt_records.reproduction import (
    STATUS_REASONS,
    LineAccount,
    LineStatus,
    PromptReproduction,
    ReproducedMessage,
)
from newton.agent.prompt_records.service import TurnPrompts
from newton.agent.prompt_records.spans import PartTokens
from newton.dialogue.messages import Role, StoredMessage
from newton.memory.representations import one_line
from newton.runtime.tools.views import ViewModel

MAX_PREVIEW_CHARS = 200


class PromptMessageInfo(ViewModel):
    """A message of a prompt in OpenAI's format. `sources` says what its text was made from.

    Of an image or a file, `content` has the hash in place of the data.
    """

    role: Role
    content: str | list[dict[str, Any]] | None
    tool_calls: list[dict[str, Any]] = Field([])
    tool_call_id: str | None = None
    sources: list[str]


class PromptGapInfo(ViewModel):
    """A place that cannot be reproduced: the index of the message, from 0, or null for the tools; and the reason."""

    message: int | None
    reason: str


class LinePreview(ViewModel):
    """The beginning of a message of the log."""

    position: int
    role: Role
    text: str


class LogRangeInfo(ViewModel):
    """A range of the log, and whether a prompt contained it. `compaction_id` is the summary that replaced it.

    `messages` are previews, unless the messages were sent as they are.
    """

    first: int
    last: int
    status: LineStatus
    reason: str
    compaction_id: UUID | None
    detail: str | None
    messages: list[LinePreview]


class PartTokensInfo(ViewModel):
    """Tokens of the parts of a prompt, counted by Newton. `memories` is the context that is sent with the input."""

    system: int
    conversation: int
    memories: int
    input: int
    tool_work: int
    tools: int


class PromptInfo(ViewModel):
    """A prompt as the model received it, in one model call.

    `is_verified` is true if it equals the request that was sent, byte for byte; if not, `mismatch` says why.
    `input_tokens` and `output_tokens` are what the call cost, as the model reported or, if `estimated`, as counted.
    `served_model` is the model that the server named. `edition_id` names the messages before the input: two prompts
    with the same one differ only in how far the conversation had come. The first `identical_chars` of the
    `message_chars` of its messages were in the prompt before it too, so that a server can reuse its prompt cache;
    `difference` is why that prompt was not repeated to its end. They are null for the first prompt of a session, and of
    a process.
    """

    prompt_id: UUID
    created_at: datetime
    model: str
    served_model: str | None
    finish: str
    error: str | None
    max_tokens: int | None
    input_tokens: int | None
    output_tokens: int | None
    estimated: bool | None
    tokens: PartTokensInfo
    message_chars: int | None
    identical_chars: int | None
    difference: str | None
    bundle_id: UUID | None
    edition_id: UUID
    messages: list[PromptMessageInfo]
    tools: list[dict[str, Any]]
    options: dict[str, Any]
    is_verified: bool
    mismatch: str | None
    gaps: list[PromptGapInfo]
    attachments: int = Field(description="The number of images and files, of which only the hash is stored.")
    log: list[LogRangeInfo]


class TurnPromptsInfo(ViewModel):
    """The prompts of a turn: one for each call of the model, in their order."""

    session: str
    input_position: int
    calls: list[PromptInfo]


def to_turn_prompts_info(shown: TurnPrompts) -> TurnPromptsInfo:
    lines = {line.position: line for line in shown.lines}
    calls = [_to_prompt_info(one, lines) for one in shown.calls]
    return TurnPromptsInfo(session=shown.session, input_position=shown.input_position, calls=calls)


def _to_prompt_info(prompt: PromptReproduction, lines: Mapping[int, StoredMessage]) -> PromptInfo:
    return PromptInfo.from_source(
        prompt.record,
        served_model=prompt.record.answered_by,
        tokens=_to_tokens(prompt.record.part_tokens),
        messages=[_to_message(one) for one in prompt.messages],
        tools=list(prompt.tools),
        options=dict(prompt.options),
        is_verified=prompt.is_verified,
        mismatch=prompt.mismatch,
        gaps=[PromptGapInfo.from_source(gap) for gap in prompt.gaps],
        attachments=prompt.attachment_count,
        log=[_to_log_range(one, lines) for one in prompt.log],
    )


def _to_tokens(tokens: PartTokens) -> PartTokensInfo:
    return PartTokensInfo.from_source(tokens)


def _to_message(message: ReproducedMessage) -> PromptMessageInfo:
    return PromptMessageInfo.model_validate({**message.fields, "sources": list(message.sources)})


def _to_log_range(one: LineAccount, lines: Mapping[int, StoredMessage]) -> LogRangeInfo:
    shown = [lines[place] for place in range(one.first, one.last + 1) if place in lines and one.status != "sent"]
    previews = [
        LinePreview(position=line.position, role=line.message.role, text=_preview(line.message.content))
        for line in shown
    ]
    return LogRangeInfo.from_source(
        one, reason=STATUS_REASONS[one.status], compaction_id=one.entry_id, messages=previews
    )


def _preview(text: str) -> str:
    line = one_line(text[: 2 * MAX_PREVIEW_CHARS])
    return line if len(line) <= MAX_PREVIEW_CHARS else f"{line[: MAX_PREVIEW_CHARS - 2]} …"
