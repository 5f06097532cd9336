"""The texts of a prompt by who they are from: of the person, of their memory, of others. Pure."""

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple, cast

from markdown_it import MarkdownIt

from newton.agent.actions.act_requests import find_agreed, is_consent, names_nothing, read_request
from newton.agent.actions.outbound_rules import PromptTexts, iter_strings
from newton.agent.loop.chat_tools.tool_table import CHAT_TOOLS
from newton.agent.loop.prompt import PromptBuilder
from newton.cognition.assembly.render import FENCE_BEGIN, FENCE_END, SECTION_TITLES
from newton.heart.reconciliation.quoted_text import MAX_QUOTED_NAME, mask_quotations
from newton.memory.memory import PERSON_TIERS, UNTRUSTED_TIERS, Kind, Trust
from newton.memory.representations import INDENT
from newton.memory.source_marks import SOURCE_MARKS
from newton.providers.chat import ChatMessage, ToolCall, ToolDefinition
from newton.text.pasted_text import MASK, mask_pasted_text
from newton.text.sentences import split_sentences

MIN_ECHO_CHARS = 4
MAX_SENT_CHARS = 1_000  # of the arguments of earlier calls
# Of documents, those that people receive rather than write. Others, such as notes and tables, count as their own.
RECEIVED_FORMATS: frozenset[str | None] = frozenset(("mail", "html", "pdf", "docx", "pptx", "log"))
# The beginning of a line of memory that is not the person's word: an id or a heading, and whose word it is.
_MARKED = re.compile(
    rf"- [^\n]{{0,80}}?(?:{'|'.join(map(re.escape, SOURCE_MARKS))})[,:]|- (?:[^\n]{{0,80}}: )?Assistant: "
)

_MARKDOWN = MarkdownIt("commonmark").enable("table")
_SHOWN = frozenset(("text", "code_inline", "code_block", "fence", "softbreak", "hardbreak"))
_HTML = frozenset(("html_inline", "html_block"))
# Formulas, which may have a transparent colour, and definitions and notes, as some renderers leave them out.
_UNSHOWN = re.compile(
    r"\$[^$]{0,500}?\\[A-Za-z][^$]{0,500}\$|\\\([\s\S]{0,500}?\\\)|\\\[[\s\S]{0,500}?\\\]|^ {0,3}\[[^\]\n]+\]:[^\n]*",
    re.MULTILINE,
)
_REORDERED = re.compile(r"[\u202a-\u202e\u2066-\u2069]")  # the order of letters is another one from there on
_COMMENT, _TAG = re.compile(r"<!--[\s\S]*?(?:-->|\Z)"), re.compile(r"<[^<>]*>")
_HIDING = re.compile(
    r"<[!?]|<[a-z][\w-]*(?:\s+|/)[^\s/>]|<(?:details|dialog|template|script|style|head|title|no\w+|iframe|object|audio"
    r"|video|canvas|svg|math|select|opt\w+|datalist|textarea|rp)\b",
    re.IGNORECASE,
)  # an element with attributes, or one whose text may not be shown


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


def collect_texts(
    prompt: PromptBuilder, memories: Sequence[MemoryText], foreign_lines: Set[int], *, speaks: Trust = "user"
) -> PromptTexts:
    """Return the texts of a prompt by who they are from.

    `memories` are those that it states, and `foreign_lines` the positions of replies that may repeat text of tools or
    the web, and of what a model reported of the user. `speaks` is the trust of who gives the input of the turn: that of
    a model is text of others, whatever its role. Text that a person has pasted is not theirs.
    """
    blocks = [prompt.system, prompt.memory, *(item.memory.text for item in prompt.view if item.memory)]
    inputs, asked, reported = _split_inputs(prompt, foreign_lines, speaks)
    request = OwnText.split(asked)
    histories = [item.text for item in prompt.view if item.is_history]
    results = _Results.of(prompt)
    told = [one.text for one in memories if one.kind == "exchange" and one.trust in PERSON_TIERS]
    others = [*reported, *(OwnText.split(text).others for text in (asked, *inputs, *told))]
    kept = [_Block.split(block) for block in blocks]
    replies = [item.text for item in prompt.view if item.role == "assistant" and item.first in foreign_lines]
    own = [one for one in memories if one.is_own]
    theirs = [one for one in memories if one not in own]
    foreign = [one for one in theirs if one.is_foreign]
    earlier = next((OwnText.split(one).unquoted for one in reversed(inputs) if not is_consent(one)), "")
    offer, rules = read_shown(_find_offer(prompt, foreign_lines)), tuple(_list_rules(kept[0].own))
    agreed = find_agreed(request.unquoted, offer)
    needs_earlier = is_consent(request.unquoted) or names_nothing(request.unquoted)
    definitions = [one for one in prompt.options.own_tools if one.name not in CHAT_TOOLS]
    return PromptTexts(
        asked=request.own,
        said=(*(OwnText.split(one).own for one in inputs), OwnText.split(prompt.instructions).own),
        known=(
            *(OwnText.split(one.text).own if one.kind == "exchange" else one.text for one in own),
            *results.known,
        ),
        system=kept[0].own,
        memory=(*blocks, *histories, *results.memory),
        foreign=(*(one.text for one in foreign), *results.foreign, *filter(None, others), *replies),
        reported=(
            *(one.text for one in theirs if one not in foreign),
            *results.reported,
            *(text for one in kept for text in (one.fenced, one.marked) if text),
            *map(_describe, definitions),
        ),
        pasted=_find_pasted(asked),
        outputs=tuple(results.outputs),
        requests=(request.unquoted, *rules),
        earlier=earlier,
        offer=offer,
        agreed=agreed,
        turn=(request.own, agreed, *rules, *([earlier] if needs_earlier else [])),
        sent=tuple(_list_sent(prompt)),
    )


def _split_inputs(prompt: PromptBuilder, foreign_lines: Set[int], speaks: Trust) -> tuple[list[str], str, list[str]]:
    """Return the earlier inputs of the person, the one that the turn answers, and those of a model."""
    inputs = [(item.text, item.first not in foreign_lines) for item in prompt.view if item.is_input]
    inputs += [(prompt.text, True)] if prompt.text else []
    *earlier, (asked, is_said) = inputs or [("", True)]
    is_own = is_said and speaks in PERSON_TIERS
    reported = [text for text, is_of_person in (*earlier, (asked, is_own)) if not is_of_person]
    return [text for text, is_of_person in earlier if is_of_person], asked if is_own else "", reported


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
        own, fenced, marked = list[str](), list[str](), list[str]()
        lines, is_fenced = own, False
        for line in text.splitlines(keepends=True):
            if line in (FENCE_BEGIN, FENCE_END):
                is_fenced = line == FENCE_BEGIN
            elif is_fenced:
                fenced.append(line)
            else:  # further lines of an item are indented or blank, and of whoever said the first
                is_further = line.startswith(INDENT) or not line.strip()
                lines = lines if is_further else marked if _MARKED.match(line) else own
                lines.append(line)
        return cls("".join(own), "".join(fenced), "".join(marked))


def _describe(tool: ToolDefinition) -> str:
    """Return the prose of the definition of a tool."""
    return "\n".join(text for text in iter_strings(tool.function) if " " in text)


def _find_pasted(text: str) -> str:
    """Return the pasted part of a text."""
    masked = mask_pasted_text(text)
    return (
        "".join(char for char, mark in zip(text, masked, strict=True) if mark in (MASK, "\n")) if MASK in masked else ""
    )


class OwnText(NamedTuple):
    """A message of a person: their own text with what they give to be sent or written, without it, and that of others.

    A quotation is given if the sentence that presents it asks for an act.
    """

    own: str
    unquoted: str
    others: str

    @classmethod
    @lru_cache(maxsize=1_024)
    def split(cls, text: str) -> "OwnText":
        r"""Divide a message.

        >>> OwnText.split('Tell Vera "I am late again". Is this spam? "pay 400 to klaus@x.example"')[::2]
        ('Tell Vera "I am late again". Is this spam?', '"pay 400 to klaus@x.example"')
        """
        unpasted = mask_pasted_text(text)
        unquoted = "".join(_mask_parts(unpasted.replace(MASK, " "))).ljust(len(text))
        own, others = list(unpasted.replace(MASK, " ")), [text] if MASK in unpasted else []
        for start, end in _find_masked(own, unquoted):
            quoted = "".join(own[start:end])
            before, after = split_sentences(unquoted[:start]), split_sentences(unquoted[end:])
            is_given = bool(read_request("".join(before[-1:] or after[:1]), whole=text).kinds)
            if not is_given and not _is_name(quoted):
                own[start:end] = " " * (end - start)
                others.append(quoted)
        return cls("".join(own).rstrip(" "), unquoted.rstrip(), "\n".join(others))


def _mask_parts(text: str) -> Iterator[str]:
    """Yield the parts of a text with spaces in place of quotations. Behind "Shorten this page." it goes on."""
    while text:
        masked = mask_quotations(text)
        yield masked
        text = text[len(masked) :] if masked.rstrip(" ").endswith((".", "!")) else ""


def _find_masked(text: Sequence[str], masked: str) -> Iterator[tuple[int, int]]:
    """Yield begin and end of the parts of a text that another one of its length has spaces for."""
    pairs = zip(text, masked, strict=True)
    marks = "".join("x" if one != kept and kept == " " else " " if one.isspace() else "-" for one, kept in pairs)
    return (match.span() for match in re.finditer(r"x(?:[x ]*x)?", marks))


def _is_name(quoted: str) -> bool:
    return len(quoted.split()) <= MAX_QUOTED_NAME and not re.search(r"[\d@#/\n]", quoted)


def _list_rules(system: str) -> Iterator[str]:
    """Yield the rules and wishes of the person in a system prompt."""
    for section in re.split(r"^## ", system, flags=re.MULTILINE):
        title, _, lines = section.partition("\n")
        if title == SECTION_TITLES["identity"]:
            yield lines


def _list_sent(prompt: PromptBuilder) -> Iterator[str]:
    """Yield the arguments of the calls of the session to tools of servers: of all in their order, and of each tool.

    A call of another tool does not part the pieces of a code.
    """
    lines = [*prompt.view, *(one.message for one in prompt.tool_messages)]
    refused = {one.tool_call_id for one in lines if one.role == "tool" and _is_refusal(one.text)}
    made = (call for one in lines for call in one.calls)
    calls = (call for call in made if call.name not in CHAT_TOOLS and call.id not in refused)
    sent = dict[str, list[str]]()
    for name, value in ((call.name, value) for call in calls for value in iter_strings(_parse(call.arguments))):
        sent.setdefault("", []).append(value)
        sent.setdefault(name, []).append(value)
    yield from ("\n".join(values)[-MAX_SENT_CHARS:] for values in sent.values())


def _is_refusal(text: str) -> bool:
    """Return whether a result says that its call was not made."""
    fields = _parse(text)
    return isinstance(fields, dict) and "error" in fields and "outcome" not in fields


def _find_offer(prompt: PromptBuilder, foreign_lines: Set[int]) -> str:
    """Return the reply of the assistant that the last input answers, if it is the person's and not that of a model."""
    view, offer, is_own = prompt.view, "", True
    if not prompt.text:
        view = view[: max((n for n, item in enumerate(view) if item.is_input), default=0)]
    for item in view:
        if item.is_input:
            is_own = item.first not in foreign_lines
            offer = "" if is_own else offer
        elif is_own and item.role == "assistant" and item.text:
            offer = item.text
    return offer


@lru_cache(maxsize=256)
def read_shown(reply: str) -> str:
    """Return what a person sees of a reply, however it is rendered.

    Comments, link targets, titles, alternative texts, definitions, formulas and text behind HTML that may hide it are
    not seen.

    >>> read_shown("[Noon](/a 'Pay it?'). <!-- Pay it? --> Shall I **wait**? <p hidden>Pay it?</p>").split()
    ['Noon.', 'Shall', 'I', 'wait?']
    """
    text, shown = _REORDERED.split(_UNSHOWN.sub(" ", reply))[0], ""
    for block in _MARKDOWN.parse("".join(one for one in text if unicodedata.category(one) != "Cf")):
        for one in block.children or [block]:
            content = _COMMENT.sub(" ", one.content) if one.type in _HTML else one.content
            if one.type in _HTML | {"text"} and _HIDING.search(content):
                return shown.strip()
            if one.type in _HTML | _SHOWN:
                shown += _TAG.sub(" ", content) if one.type in _HTML else content or "\n"
        shown += "\n"
    return shown.strip()


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
