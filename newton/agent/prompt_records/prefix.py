"""Measurement of how much of a prompt repeats the previous prompt of its session, and so hits the prompt cache."""

import hashlib
import json
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple
from uuid import UUID

from newton.agent.prompt_records.prompt_encoder import SentRequest, to_hashed_message
from newton.agent.prompt_records.spans import TextSpan

# What a prompt had in place of the next message of the one before it. tools: other definitions, which come first;
# instructions: of the caller; system: Newton's system message; compaction: summaries; window: messages left out for
# lack of room; tool work: calls of a turn that has ended; conversation: an edited, restored or forgotten message.
PrefixBreak = Literal["tools", "instructions", "system", "compaction", "window", "tool work", "conversation"]

MAX_SESSIONS = 1_000


class SentMessage(NamedTuple):
    """The characters of a sent message as JSON, and the hash of the JSON. `is_work` marks a call or a result."""

    chars: int
    digest: bytes
    is_work: bool


class SentPrompt(NamedTuple):
    """The hashes of a sent prompt (messages, tools, instructions) that are kept to compare the next one with."""

    messages: tuple[SentMessage, ...]
    tools: bytes
    instructions: bytes


class PrefixShare(NamedTuple):
    """The characters of a prompt's messages, and those at its start that repeat the previous prompt.

    `difference` is why the previous prompt was not repeated to its end; None if it was.
    """

    message_chars: int
    identical_chars: int
    difference: PrefixBreak | None


@dataclass(slots=True)
class LastPrompts:
    """The last prompt of each session that this process sent, for the sessions used last."""

    _prompts: OrderedDict[tuple[UUID, UUID], SentPrompt] = field(
        default_factory=OrderedDict[tuple[UUID, UUID], SentPrompt]
    )

    def replace(self, agent_id: UUID, session_id: UUID, sent: SentRequest) -> PrefixShare | None:
        """Store a prompt as the last of its session; return how much of it the previous one had, None without one."""
        key, prompt = (agent_id, session_id), _describe(sent)
        previous = self._prompts.pop(key, None)
        self._prompts[key] = prompt
        if len(self._prompts) > MAX_SESSIONS:
            self._prompts.popitem(last=False)
        return measure_prefix(previous, prompt, sent.spans) if previous else None


LAST_PROMPTS = LastPrompts()


def measure_prefix(previous: SentPrompt, prompt: SentPrompt, spans: Sequence[tuple[TextSpan, ...]]) -> PrefixShare:
    """Return how much of the beginning of a prompt the previous one had, and what ended that. Pure.

    `spans` are the sources of the messages of the prompt.
    """
    pairs = zip(previous.messages, prompt.messages, strict=False)
    same = next((n for n, (old, new) in enumerate(pairs) if old != new), min(map(len, (previous[0], prompt[0]))))
    return PrefixShare(
        message_chars=sum(one.chars for one in prompt.messages),
        identical_chars=sum(one.chars for one in prompt.messages[:same]),
        difference=_find_break(previous, prompt, same, spans),
    )


def _find_break(
    previous: SentPrompt, prompt: SentPrompt, same: int, spans: Sequence[tuple[TextSpan, ...]]
) -> PrefixBreak | None:
    """Return what the first message that differs from the previous prompt is made of; None if nothing differs."""
    if previous.tools != prompt.tools:
        return "tools"
    if same == len(previous.messages):
        return None
    kinds = {span.kind for span in spans[same]} if same < len(spans) else set[str]()
    if "system" in kinds or "instructions" in kinds:
        return "instructions" if previous.instructions != prompt.instructions else "system"
    if kinds & {"entry", "summary"}:
        return "compaction"
    if previous.messages[same].is_work:
        return "tool work"
    return "window" if kinds == {"fixed"} else "conversation"


def _describe(sent: SentRequest) -> SentPrompt:
    texts = [json.dumps(to_hashed_message(message), ensure_ascii=False) for message in sent.messages]
    tools = json.dumps([tool.function for tool in sent.options.all_tools], ensure_ascii=False)
    return SentPrompt(
        messages=tuple(
            SentMessage(len(text), _hash(text), bool(message.calls) or message.role == "tool")
            for text, message in zip(texts, sent.messages, strict=True)
        ),
        tools=_hash(tools),
        instructions=_hash(_find_instructions(sent)),
    )


def _find_instructions(sent: SentRequest) -> str:
    """Return the part of the system message that is the caller's."""
    if not sent.messages or not any(span.kind == "instructions" for span in sent.spans[0]):
        return ""
    system_chars = sum(span.chars for span in sent.spans[0] if span.kind == "system")
    text = sent.messages[0].text
    return text[: len(text) - system_chars]


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
