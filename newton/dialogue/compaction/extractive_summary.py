"""What a stretch of conversation comes to, found in its own words without a model: decisions, findings, dead ends,
artifacts, what is open. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from newton.dialogue.sentence_cues import (
    ERROR_PATTERN,
    MAX_NAME_CHARS,
    MAX_SENTENCE_CHARS,
    CueKind,
    classify_sentence,
    find_names,
    is_request,
)
from newton.dialogue.view import EntryKind, ViewMessage
from newton.memory.memory import TokenCounter
from newton.memory.representations import one_line
from newton.providers.chat import ToolCall

SummaryPart = Literal["asked", "did", "decided", "found", "failed", "worked", "rule", "thing", "open", "state"]
RULES_VERSION = "extract/2"  # the version of the rules by which an account is put together without a model

PARTS: tuple[SummaryPart, ...] = get_args(SummaryPart)

# What each part is called in the account of each sort of block, in the order in which they stand there.
SECTIONS: Mapping[EntryKind, Mapping[SummaryPart, str]] = {
    "tools": {
        "decided": "Strategy",
        "did": "Operations",
        "found": "Discoveries",
        "failed": "Dead Ends",
        "worked": "What Worked",
        "thing": "Critical Artifacts",
        "state": "Status",
    },
    "turn": {
        "asked": "Asked",
        "worked": "Milestones",
        "decided": "Key Decisions",
        "rule": "Constraints",
        "did": "Operations",
        "found": "Findings",
        "failed": "Dead Ends",
        "thing": "Critical Artifacts",
        "open": "Open Items",
        "state": "Current State",
    },
    "goals": {
        "asked": "Goal Arc",
        "decided": "Human Direction",
        "worked": "What Was Achieved",
        "found": "Findings",
        "failed": "Dead Ends",
        "rule": "Lasting Constraints",
        "thing": "Key Artifacts",
        "open": "Open Items",
    },
}
HEADINGS: Mapping[EntryKind, str] = {
    "tools": "[SUMMARIZED] What I did with tools here:",
    "turn": "[SUMMARIZED] Earlier in this conversation:",
    "goals": "[GOAL BATCH] Earlier in this conversation:",
    "merged": "[GOAL BATCH] The beginning of this conversation:",
}
# What is kept when there is no room for all: so many of each part in a round. What would be done wrong, or again,
# without it comes first, and names and addresses are short.
_ITEMS_PER_ROUND: Mapping[SummaryPart, int] = {
    "decided": 2,
    "failed": 2,
    "rule": 2,
    "open": 2,
    "thing": 3,
    "worked": 1,
    "asked": 1,
    "found": 1,
    "state": 1,
    "did": 1,
}
_PART_BY_HEADING: Mapping[str, SummaryPart] = {
    **{name: part for sections in SECTIONS.values() for part, name in sections.items()},
    "Strategy": "decided",
    "Operations": "did",
}
MAX_ITEM_CHARS = 220  # of one item
MAX_ERROR_CHARS = 400  # characters of an error, which is kept letter by letter or not at all
MAX_PATHS = 12
MAX_ERRORS, LAST_LINES = 4, 12  # of what one tool gave
MAX_TOOL_NAME_CHARS = 40  # characters of what it is called
MIN_WORDS = 3
MAX_INPUT_CHARS = 200_000  # characters of one message; the middle of a longer one is passed over
MAX_PROMPT_CHARS = 8_000  # the same, of what a model is given to tell of
DECISION_SHARE = 0.5  # of the room for an account: so much of it decisions may take before anything else

_PLAIN = re.compile(r"(?<![\w./])[A-Za-z]{2,}(?![\w./(])")  # a word as people write it
_SENTENCE = re.compile(r"(?<=[.!?…])\s+|\n+")
_PART_BY_CUE: Mapping[CueKind, SummaryPart] = {
    "error": "failed",
    "decision": "decided",
    "constraint": "rule",
    "task": "open",
}
_CUE_SOURCES: Sequence[tuple[SummaryPart, str]] = (
    (
        "worked",
        r"\b(?:works? now|worked|fixed|solved|resolved|pass(?:es|ed|ing)?|done|finished|merged|deployed|released|"
        r"completed?|succeed(?:s|ed)|green|migrated|created|added|implemented)\b",
    ),
    (
        "found",
        r"\b(?:found|turns out|because|the (?:cause|reason|problem|culprit)|caused by|means that|is set to|contains|"
        r"shows?|reports?|returns?|measured|it is|there (?:is|are)|learn(?:ed|t))\b",
    ),
)
_CUES: Sequence[tuple[SummaryPart, re.Pattern[str]]] = [
    (part, re.compile(words, re.IGNORECASE)) for part, words in _CUE_SOURCES
]


@dataclass(slots=True)
class BlockSummary:
    """The parts of what happened, each item once, in the order in which it came up."""

    parts: dict[SummaryPart, dict[str, None]] = field(default_factory=dict[SummaryPart, "dict[str, None]"])

    def add(self, part: SummaryPart, text: str) -> None:
        text = one_line(text)
        text = shorten_item(text) if part != "thing" else text if len(text) <= MAX_NAME_CHARS else ""
        if text:
            self.parts.setdefault(part, {})[text] = None

    def items(self, part: SummaryPart) -> list[str]:
        return list(self.parts.get(part, ()))


def summarize_block(items: Sequence[ViewMessage]) -> BlockSummary:
    """What these come to. Blocks among them are taken by their parts, so each item of theirs is kept."""
    told = BlockSummary()
    for item in items:
        _add_message(told, item)
    return told


def render_summary(
    kind: EntryKind, summary: BlockSummary, items: Sequence[ViewMessage], *, max_tokens: int, count_tokens: TokenCounter
) -> str:
    """The account in at most so many tokens, under the headings of such a block."""
    if kind == "tools":
        summary.parts["state"] = {_tool_status(items): None}
    sections = SECTIONS["goals" if kind == "merged" else kind]
    head = HEADINGS[kind]
    kept = _select_items(
        summary,
        sections,
        max_tokens=max_tokens - count_tokens(head + "\n"),
        count_tokens=count_tokens,
        latest=kind == "merged",
    )
    lines = [head]
    for part, name in sections.items():
        if kept.get(part):
            lines += [f"{name}:", *(f"- {words}" for words in kept[part])]
    return "\n".join(lines)


def render_message(item: ViewMessage) -> str:
    """A message as it is read by whoever is to tell of it."""
    called = "".join(f"\n  {_render_call(call)}" for call in item.calls)
    return f"{item.name or item.role}: {_sample_text(item.text, max_chars=MAX_PROMPT_CHARS)}{called}"


def mask_output(item: ViewMessage, *, max_tokens: int, count_tokens: TokenCounter) -> str:
    """What is left of a tool's words: how much there was, and of its lines the first and those that tell most."""
    whole = _split_nonblank(item.text)
    lines = [shorten_item(one_line(line)) for line in (*whole[:1], *whole[-1:])]
    head = f"[output left out: {item.tokens:,} tokens in {len(whole):,} lines]\n"
    left = max_tokens - count_tokens(head)
    kept: list[str] = []
    for line in dict.fromkeys(
        (*lines[:1], *map(shorten_item, _find_error_lines(_sample_text(item.text), limit=6)), *lines[-1:])
    ):
        left -= count_tokens(line + "\n")
        if left < 0:
            break
        kept.append(line)
    return head + "\n".join(kept)


def truncate_middle(text: str, *, max_tokens: int, count_tokens: TokenCounter, max_lines: int = 50) -> str:
    """The beginning and the end of a text, up to so many lines of each, in at most so many tokens; or nothing."""
    if len(text) <= 8 * max_tokens and count_tokens(text) <= max_tokens:
        return text
    told, head, tail = text.splitlines(), text, text
    if len(told) > 2 * max_lines:
        head, tail = "\n".join(told[:max_lines]), "\n".join(told[-max_lines:])
    note = f"\n[… the middle of {len(text):,} characters is left out …]\n"
    room = (max_tokens - count_tokens(note)) // 2
    if room < 1:
        return truncate(text, max_tokens=max_tokens, count_tokens=count_tokens)
    begin = truncate(head, max_tokens=room, count_tokens=count_tokens)
    rest = truncate(tail[::-1], max_tokens=max(room - 4, 1), count_tokens=lambda words: count_tokens(words[::-1]))[::-1]
    joined = begin + note + rest
    return (
        joined
        if count_tokens(joined) <= max_tokens
        else truncate(text, max_tokens=max_tokens, count_tokens=count_tokens)
    )


def truncate(text: str, *, max_tokens: int, count_tokens: TokenCounter) -> str:
    """The longest beginning of a text, to within a few characters, that costs at most so many tokens."""
    low, high = 0, min(len(text), max_tokens * 8)
    if count_tokens(text[:high]) <= max_tokens:
        return text[:high]
    while high - low > max(1, low // 50):
        middle = (low + high) // 2
        low, high = (middle, high) if count_tokens(text[:middle]) <= max_tokens else (low, middle)
    return text[:low]


def shorten_item(text: str) -> str:
    """An item of at most MOST_CHARACTERS, cut between words. A name is never cut, and an error is kept to its last
    letter or left out."""
    if len(text) <= MAX_ITEM_CHARS:
        return text
    error = ERROR_PATTERN.search(text[:MAX_SENTENCE_CHARS])
    if error and len(text) <= MAX_ERROR_CHARS:
        return text
    end = min(MAX_ITEM_CHARS, error.start() if error else MAX_ITEM_CHARS)
    head, space, _ = text[:end].rpartition(" ")
    if not space and not (text[:end].isascii() or find_names(text[:MAX_SENTENCE_CHARS])):
        head = text[:end]  # some languages are written without spaces
    return f"{head} …" if head else ""


def find_paths(texts: Iterable[str]) -> list[str]:
    """The paths and addresses that texts name, exactly as they are written: those that lead furthest first.

    >>> find_paths(["see src/app.py, then https://example.org/a.", "src/app.py again"])
    ['https://example.org/a', 'src/app.py']
    """
    seen: dict[str, None] = {}
    for text in texts:
        seen |= dict.fromkeys(find_names(text))
    return sorted(seen, key=_path_depth, reverse=True)


def _path_depth(name: str) -> int:
    """How far a path leads: its parts, and more for the file at its end and for a path from the root."""
    return len(re.findall(r"[/\\]", name)) + 2 * bool(re.search(r"\.\w+$", name)) + name.startswith(("/", "~", "http"))


def parse_summary(text: str) -> Iterator[tuple[SummaryPart, str]]:
    """The items of an account, by part."""
    part: SummaryPart | None = None
    for line in text.splitlines():
        if line.startswith("- "):
            if part:
                yield part, line[2:]
        else:
            name, _, rest = line.partition(":")
            part = _PART_BY_HEADING.get(name)
            if part and rest.strip():
                yield part, rest.strip()


def _add_message(summary: BlockSummary, item: ViewMessage) -> None:
    if item.kind not in ("line", "mask"):
        for part, words in parse_summary(item.text):
            summary.add(part, words)
        return
    for call in item.calls:
        summary.add("did", _render_call(call))
    named = [*find_paths(call.arguments for call in item.calls), *find_paths([_sample_text(item.text)])]
    for name in named[: MAX_ERRORS if item.role == "tool" else MAX_PATHS]:
        summary.add("thing", name)
    if item.role == "tool":
        _add_tool_output(summary, item)
    else:
        _add_dialogue(summary, item)


def _add_dialogue(summary: BlockSummary, item: ViewMessage) -> None:
    """What was said, sentence by sentence: each goes to the first part whose words it has. What a person asks for is
    asked, whatever words are in it."""
    sentences = [one_line(s) for s in _SENTENCE.split(_sample_text(item.text)) if len(s.split()) > 2]
    person = item.role == "user"
    if person and sentences:
        summary.add("asked", sentences[0])
    for sentence in sentences:
        part = _classify(sentence)
        if person and is_request(sentence) and part not in ("decided", "rule", "open"):
            part = "asked"
        elif sentence.endswith("?"):
            part = "asked" if person else None
        elif part is None and person and sentence != sentences[0]:
            part = "found"  # what a person states is news
        if part:
            summary.add(part, sentence)
    if item.role == "assistant" and sentences:
        summary.parts["state"] = {shorten_item(sentences[-1]): None}


def _add_tool_output(summary: BlockSummary, item: ViewMessage) -> None:
    """Its errors, and of its last lines those that say something in words. Each says that a tool put it out."""
    text = _sample_text(item.text)
    by = f"[{one_line(item.name or 'tool')[:MAX_TOOL_NAME_CHARS]}]"
    errors = _find_error_lines(text, limit=MAX_ERRORS)
    for line in errors:
        summary.add("failed", f"{by} {line}")
    for line in _split_nonblank(text)[-LAST_LINES:]:
        if len(_PLAIN.findall(line)) >= MIN_WORDS and line not in errors and _classify(line):
            summary.add("found", f"{by} {line}")


def _find_error_lines(text: str, *, limit: int) -> list[str]:
    """The first lines that tell of an error; of those that say nothing else, such as an exit status, one if need be."""
    lines: dict[str, None] = {}
    end = 0
    for hit in ERROR_PATTERN.finditer(text):
        if hit.start() < end:
            continue  # one line is read once, whatever it tells
        if len(lines) == limit:
            break
        begin = text.rfind("\n", 0, hit.start()) + 1
        end = text.find("\n", hit.end())
        end = len(text) if end < 0 else end
        lines[_shorten_error_line(one_line(text[begin:end]), matched=hit[0])] = None
    telling = [line for line in lines if len(line.split()) > MIN_WORDS]
    return telling or list(lines)[:1]


def _shorten_error_line(line: str, *, matched: str) -> str:
    """A line that tells of an error; of one that is too long to be kept, the sentence that tells of it."""
    if len(line) <= MAX_ERROR_CHARS:
        return line
    return next((part for part in _SENTENCE.split(line) if matched in part and len(part) <= MAX_ERROR_CHARS), line)


def _classify(sentence: str) -> SummaryPart | None:
    sentence = sentence[:MAX_SENTENCE_CHARS]
    if part := _PART_BY_CUE.get(classify_sentence(sentence) or "path"):
        return part
    return next((part for part, cue in _CUES if cue.search(sentence)), None)


def _render_call(call: ToolCall) -> str:
    return f"I called {call.name} {one_line(call.arguments)}"


def _tool_status(items: Sequence[ViewMessage]) -> str:
    last = next((item for item in reversed(items) if item.role == "tool"), None)
    if last is None:
        return "BLOCKED"
    return "PARTIAL" if ERROR_PATTERN.search(_sample_text(last.text)) else "COMPLETE"


def _split_nonblank(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def _sample_text(text: str, *, max_chars: int = MAX_INPUT_CHARS) -> str:
    return text if len(text) <= max_chars else f"{text[: max_chars // 2]}\n…\n{text[-max_chars // 2 :]}"


@dataclass(slots=True, kw_only=True)
class _ItemSelection:
    """What is kept of an account: what waits for its turn by part, the first ones or the latest first."""

    waiting: Mapping[SummaryPart, list[str]]
    sections: Mapping[SummaryPart, str]
    tokens_left: int  # tokens
    count_tokens: TokenCounter
    selected: dict[SummaryPart, list[str]] = field(default_factory=dict[SummaryPart, "list[str]"])

    def take(self, part: SummaryPart, *, leaving: int = 0) -> bool:
        """Whether there was room for the next one, with so many tokens left over."""
        heading = "" if part in self.selected else f"{self.sections[part]}:\n"
        tokens = self.count_tokens(f"{heading}- {self.waiting[part][0]}\n")
        fits = self.tokens_left - tokens >= leaving
        if fits:
            self.selected.setdefault(part, []).append(self.waiting[part].pop(0))
            self.tokens_left -= tokens
        return fits

    def take_all(self) -> None:
        """Decisions first, and then of each part in turn its share."""
        leaving = int(self.tokens_left * (1 - DECISION_SHARE))
        while self.waiting.get("decided") and self.take("decided", leaving=leaving):
            pass
        while any(self.waiting.values()):
            for part, queue in self.waiting.items():
                for _ in range(min(_ITEMS_PER_ROUND[part], len(queue))):
                    if not self.take(part):
                        queue.pop(0)


def _select_items(
    summary: BlockSummary,
    sections: Mapping[SummaryPart, str],
    *,
    max_tokens: int,
    count_tokens: TokenCounter,
    latest: bool,
) -> Mapping[SummaryPart, Sequence[str]]:
    """As many items as there is room for, in their order: of each part the first ones or the latest, of names those
    that lead furthest."""
    items: dict[SummaryPart, list[str]] = {part: summary.items(part) for part in _ITEMS_PER_ROUND if part in sections}
    if not latest and "thing" in items:
        items["thing"] = sorted(items["thing"], key=_path_depth, reverse=True)[:MAX_PATHS]
    waiting: dict[SummaryPart, list[str]] = {part: words[::-1] if latest else words[:] for part, words in items.items()}
    choice = _ItemSelection(waiting=waiting, sections=sections, tokens_left=max_tokens, count_tokens=count_tokens)
    choice.take_all()
    return {part: [words for words in items[part] if words in set(kept)] for part, kept in choice.selected.items()}
