"""The texts of a prompt by who they are from: of the person, of their memory, of others. Pure."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from newton.agent.actions.outbound_rules import PromptTexts, iter_strings
from newton.agent.loop.chat_tools.tool_table import CHAT_TOOLS
from newton.agent.loop.prompt import PromptBuilder
from newton.cognition.assembly.render import FENCE_BEGIN, FENCE_END
from newton.memory.memory import PERSON_TIERS, UNTRUSTED_TIERS, Kind, Trust
from newton.memory.source_marks import SOURCE_MARKS
from newton.providers.chat import ChatMessage, ToolCall, ToolDefinition
from newton.text.pasted_text import MASK, mask_pasted_text

MIN_ECHO_CHARS = 4
# Of documents, those that people receive rather than write. Others, such as notes and tables, count as their own.
RECEIVED_FORMATS: frozenset[str | None] = frozenset(("mail", "html", "pdf", "docx", "pptx", "log"))
# The beginning of a line of memory that is not the person's word: an id or a heading, and whose word it is.
_MARKED = re.compile(
    rf"- [^\n]{{0,80}}?(?:{'|'.join(map(re.escape, SOURCE_MARKS))})[,:]|- (?:[^\n]{{0,80}}: )?Assistant: "
)


class MemoryText(NamedTuple):
    """A memory that a prompt states. `is_error` is True for the failure of a call, which may repeat its arguments.

    So may a censor that was proposed after failures. `format` is that of the document of a passage.
    """

    kind: Kind
    trust: Trust
    quarantined: bool
    text: str
    is_error: bool = False
    format: str | None = None

    @property
    def is_own(self) -> bool:
        """Return whether the text is the person's: not that of others in a mail or a page that they stored."""
        return self.trust in PERSON_TIERS and not self.quarantined and self.format not in RECEIVED_FORMATS

    @property
    def is_foreign(self) -> bool:
        is_others = self.quarantined or self.kind == "event" or self.trust in UNTRUSTED_TIERS
        is_received = self.trust in PERSON_TIERS and self.format in RECEIVED_FORMATS
        return (is_others or is_received) and not self.is_error and self.kind != "censor"


def collect_texts(prompt: PromptBuilder, memories: Sequence[MemoryText], foreign_replies: Set[int]) -> PromptTexts:
    """Return the texts of a prompt by who they are from.

    `memories` are those that it states, and `foreign_replies` the positions of replies that may repeat text of tools or
    the web. Text that a person has pasted is not theirs.
    """
    blocks = [prompt.system, prompt.memory, *(item.memory.text for item in prompt.view if item.memory)]
    *inputs, asked = (*(item.text for item in prompt.view if item.is_input), *filter(None, [prompt.text])) or ("",)
    histories = [item.text for item in prompt.view if item.is_history]
    results = _Results.of(prompt)
    told = [one.text for one in memories if one.kind == "exchange" and one.trust in PERSON_TIERS]
    pasted = [text for text in (asked, *inputs, *told) if mask_pasted_text(text) != text]
    kept = [_Block.split(block) for block in blocks]
    replies = [item.text for item in prompt.view if item.role == "assistant" and item.first in foreign_replies]
    own = [one for one in memories if one.is_own]
    theirs = [one for one in memories if one not in own]
    foreign = [one for one in theirs if one.is_foreign]
    definitions = [one for one in prompt.options.own_tools if one.name not in CHAT_TOOLS]
    return PromptTexts(
        asked=_unpasted(asked),
        said=(*map(_unpasted, inputs), _unpasted(prompt.instructions)),
        known=(
            *(_unpasted(one.text) if one.kind == "exchange" else one.text for one in own),
            *results.known,
        ),
        system=kept[0].own,
        memory=(*blocks, *histories, *results.memory),
        foreign=(*(one.text for one in foreign), *results.foreign, *pasted, *replies),
        reported=(
            *(one.text for one in theirs if one not in foreign),
            *results.reported,
            *(text for one in kept for text in (one.fenced, one.marked) if text),
            *map(_describe, definitions),
        ),
        pasted=_find_pasted(asked),
        outputs=tuple(results.outputs),
    )


def list_passages(prompt: PromptBuilder) -> Sequence[str]:
    """Return the ids, or their ends, of passages in results of Newton's tools, which do not say their documents."""
    return _Results.of(prompt).passage_ids


class _Block(NamedTuple):
    """The lines of a text from memory: the person's, those that quote the output of tools, and others' words."""

    own: str
    fenced: str
    marked: str

    @classmethod
    def split(cls, text: str) -> "_Block":
        first, *parts = text.split(FENCE_BEGIN)
        fenced, rest = zip(*(part.partition(FENCE_END)[::2] for part in parts), strict=True) if parts else ((), ())
        lines = "".join((first, *rest)).splitlines(keepends=True)
        marked = [line for line in lines if _MARKED.match(line)]
        return cls("".join(line for line in lines if line not in marked), "".join(fenced), "".join(marked))


def _describe(tool: ToolDefinition) -> str:
    """Return the prose of the definition of a tool."""
    return "\n".join(text for text in iter_strings(tool.function) if " " in text)


def _find_pasted(text: str) -> str:
    """Return the pasted part of a text."""
    masked = mask_pasted_text(text)
    return (
        "".join(char for char, mark in zip(text, masked, strict=True) if mark in (MASK, "\n")) if MASK in masked else ""
    )


def _unpasted(text: str) -> str:
    return mask_pasted_text(text).replace(MASK, " ")


@dataclass(slots=True)
class _Results:
    """The texts of the results of tools: of Newton's by their stated trust, and those of others."""

    known: list[str] = field(default_factory=list[str])
    memory: list[str] = field(default_factory=list[str])
    foreign: list[str] = field(default_factory=list[str])
    reported: list[str] = field(default_factory=list[str])
    outputs: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    passage_ids: list[str] = field(default_factory=list[str])

    @classmethod
    def of(cls, prompt: PromptBuilder) -> "_Results":
        """Return the results of tools in a prompt."""
        results = cls()
        results.read(ChatMessage(item.role, item.text, item.calls, item.tool_call_id) for item in prompt.view)
        results.read(one.message for one in prompt.tool_messages)
        return results

    def read(self, messages: Iterable[ChatMessage]) -> None:
        """Add the results of tools among the messages."""
        calls = dict[str, ToolCall]()
        for message in messages:
            calls |= {call.id: call for call in message.calls}
            if message.role == "tool":
                self._add(calls.get(message.tool_call_id or ""), message.text)

    def _add(self, call: ToolCall | None, text: str) -> None:
        fields = _parse(text)
        if call is None or call.name not in CHAT_TOOLS or call.name == "read_artifact":
            output = _remove_echo(call, _find_output(fields, text))
            self.foreign.append(output)
            self.outputs += [(one, output) for one in iter_strings(_parse(call.arguments) if call else None)]
            return
        self.memory.append(text)
        for item in _iter_items(fields):
            if item.get("kind") == "passage" and item["trust"] in PERSON_TIERS:
                self.passage_ids.append(str(item.get("memory_id", "")).replace("-", ""))
                continue
            is_foreign = item["trust"] in UNTRUSTED_TIERS or item.get("kind") == "event"
            texts = self.foreign if is_foreign else self.reported if item["trust"] == "agent" else self.known
            texts.append(str(item.get("text", "")))


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None  # no JSON, or a result that was truncated


def _find_output(fields: Any, text: str) -> str:
    """Return what a tool wrote in a result, without the words of Newton around it."""
    if not isinstance(fields, dict) or not {"outcome", "error"} & fields.keys():
        return text
    return str(cast("dict[str, Any]", fields).get("output", ""))


def _remove_echo(call: ToolCall | None, output: str) -> str:
    """Return the output of a call without the arguments that it repeats, which are the words of the model."""
    for value in iter_strings(_parse(call.arguments)) if call else ():
        output = output.replace(value, " ") if len(value) >= MIN_ECHO_CHARS else output
    return output


def _iter_items(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the objects in a JSON value that state the trust of a text."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        if fields.get("trust") in PERSON_TIERS | UNTRUSTED_TIERS | {"agent"}:
            yield fields
        for one in fields.values():
            yield from _iter_items(one)
    elif isinstance(value, list):
        for one in cast("list[Any]", value):
            yield from _iter_items(one)
