"""Summaries of messages without a model, built from their own sentences and names. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from newton.dialogue.brief.item_detection import is_reported_done
from newton.dialogue.compaction.summary_sections import HEADINGS, ITEMS_PER_ROUND, SECTIONS, SummaryPart, rank_items
from newton.dialogue.view import EntryKind, ViewMessage
from newton.memory.memory import TokenCounter
from newton.memory.representations import one_line
from newton.providers.chat import ToolCall
from newton.text.sentences import (
    ERROR_PATTERN,
    MAX_NAME_CHARS,
    MAX_SENTENCE_CHARS,
    CueKind,
    classify_sentence,
    find_names,
    is_request,
    split_sentences,
)

RULES_VERSION = "extract/3"  # of the rules of extraction; stored with each entry

_PART_BY_HEADING: Mapping[str, SummaryPart] = {
    **{name: part for sections in SECTIONS.values() for part, name in sections.items()},
    "Strategy": "decided",
    "Operations": "did",
    "Task": "worked",  # the line that replaces the messages of an ended task
}
MAX_ITEM_CHARS = 220
MAX_ERROR_CHARS = 400  # errors are kept whole or left out
MAX_PATHS = 12
MAX_ERRORS, LAST_LINES = 4, 12  # of one tool output
MAX_TOOL_NAME_CHARS = 40
MIN_WORDS = 3
MAX_INPUT_CHARS = 200_000  # read of one message; the middle of a longer one is skipped
MAX_PROMPT_CHARS = 8_000  # of one message in the prompt of a summary
DECISION_SHARE = 0.5  # of the tokens of a summary that decisions may take before other parts

_PLAIN = re.compile(r"(?<![\w./])[A-Za-z]{2,}(?![\w./(])")  # a word, not a part of a path or a call
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
    (part, re.compile(pattern, re.IGNORECASE)) for part, pattern in _CUE_SOURCES
]


@dataclass(slots=True)
class BlockSummary:
    """The items of a summary by part (such as decisions), each once, in order of appearance."""

    parts: dict[SummaryPart, dict[str, None]] = field(default_factory=dict[SummaryPart, "dict[str, None]"])

    def add(self, part: SummaryPart, text: str) -> None:
        """Add an item to a part in one line. A long one is shortened or, if it is an error or a name, left out."""
        text = one_line(text)
        text = shorten_item(text) if part != "thing" else text if len(text) <= MAX_NAME_CHARS else ""
        if text:
            self.parts.setdefault(part, {})[text] = None

    def remove(self, part: SummaryPart, text: str) -> None:
        self.parts.get(part, {}).pop(text, None)

    def close_open_items(self, sentence: str) -> None:
        """Remove the open items that a later sentence reports as done."""
        for text in self.items("open"):
            if is_reported_done(sentence, text):
                self.remove("open", text)

    def items(self, part: SummaryPart) -> list[str]:
        return list(self.parts.get(part, ()))


def summarize_block(items: Sequence[ViewMessage]) -> BlockSummary:
    """Extract the items of a summary (requests, decisions, errors and so on) from messages.

    Items of earlier summaries among the messages are kept.
    """
    summary = BlockSummary()
    for item in items:
        _add_message(summary, item)
    return summary


def render_summary(
    kind: EntryKind, summary: BlockSummary, items: Sequence[ViewMessage], *, max_tokens: int, count_tokens: TokenCounter
) -> str:
    """Render a summary of `items` within `max_tokens`, under the headings of its kind. Adds the status of tool work."""
    if kind == "tools":
        summary.parts["state"] = {_tool_status(items): None}
    sections = SECTIONS["goals" if kind == "merged" else kind]
    head = HEADINGS[kind]
    left = max_tokens - count_tokens(head + "\n")
    kept = _select_items(summary, sections, max_tokens=left, count_tokens=count_tokens, is_merge=kind == "merged")
    lines = [head]
    for part, name in sections.items():
        if kept.get(part):
            lines += [f"{name}:", *(f"- {text}" for text in kept[part])]
    return "\n".join(lines)


def render_message(item: ViewMessage) -> str:
    """Render a message as text for the prompt that asks for a summary."""
    calls = "".join(f"\n  {_render_call(call)}" for call in item.calls)
    return f"{item.name or item.role}: {_sample_text(item.text, max_chars=MAX_PROMPT_CHARS)}{calls}"


def mask_output(item: ViewMessage, *, max_tokens: int, count_tokens: TokenCounter) -> str:
    """Return the short form of a tool's output: its size, its first and last line, and its error lines."""
    output = _split_nonblank(item.text)
    lines = [shorten_item(one_line(line)) for line in (*output[:1], *output[-1:])]
    head = f"[output left out: {item.tokens:,} tokens in {len(output):,} lines]\n"
    left = max_tokens - count_tokens(head)
    kept: list[str] = []
    errors = map(shorten_item, _find_error_lines(_sample_text(item.text), limit=6))
    for line in dict.fromkeys((*lines[:1], *errors, *lines[-1:])):
        left -= count_tokens(line + "\n")
        if left < 0:
            break
        kept.append(line)
    return head + "\n".join(kept)


def truncate_middle(text: str, *, max_tokens: int, count_tokens: TokenCounter, max_lines: int = 50) -> str:
    """Shorten a text to `max_tokens` by removing its middle. Beginning and end have at most `max_lines` lines each.

    The result may be empty.
    """
    # a token seldom has more than 8 characters, so that a much longer text need not be counted
    if len(text) <= 8 * max_tokens and count_tokens(text) <= max_tokens:
        return text
    lines, head, tail = text.splitlines(), text, text
    if len(lines) > 2 * max_lines:
        head, tail = "\n".join(lines[:max_lines]), "\n".join(lines[-max_lines:])
    note = f"\n[… the middle of {len(text):,} characters is left out …]\n"
    room = (max_tokens - count_tokens(note)) // 2
    if room < 1:
        return truncate(text, max_tokens=max_tokens, count_tokens=count_tokens)
    begin = truncate(head, max_tokens=room, count_tokens=count_tokens)
    # reversed, because `truncate` keeps the beginning; 4 tokens less, because the joined texts may have a few more
    rest = truncate(tail[::-1], max_tokens=max(room - 4, 1), count_tokens=lambda s: count_tokens(s[::-1]))[::-1]
    joined = begin + note + rest
    if count_tokens(joined) <= max_tokens:
        return joined
    return truncate(text, max_tokens=max_tokens, count_tokens=count_tokens)


def truncate(text: str, *, max_tokens: int, count_tokens: TokenCounter) -> str:
    """Return the beginning of a text, within `max_tokens`.

    It may be 2 % shorter than possible, because its length is found by bisection.
    """
    low, high = 0, min(len(text), max_tokens * 8)
    if count_tokens(text[:high]) <= max_tokens:
        return text[:high]
    while high - low > max(1, low // 50):
        middle = (low + high) // 2
        low, high = (middle, high) if count_tokens(text[:middle]) <= max_tokens else (low, middle)
    return text[:low]


def shorten_item(text: str) -> str:
    """Shorten an item to MAX_ITEM_CHARS between words.

    Names are never cut. An error is kept whole if it has at most MAX_ERROR_CHARS, else it is left out.
    """
    if len(text) <= MAX_ITEM_CHARS:
        return text
    error = ERROR_PATTERN.search(text[:MAX_SENTENCE_CHARS])
    if error and len(text) <= MAX_ERROR_CHARS:
        return text
    end = min(MAX_ITEM_CHARS, error.start() if error else MAX_ITEM_CHARS)
    head, space, _ = text[:end].rpartition(" ")
    if not space and not (text[:end].isascii() or find_names(text[:MAX_SENTENCE_CHARS])):
        head = text[:end]  # some scripts have no spaces
    return f"{head} …" if head else ""


def find_paths(texts: Iterable[str]) -> list[str]:
    """Return the paths and URLs in texts exactly as written, the most nested first.

    >>> find_paths(["see src/app.py, then https://example.org/a.", "src/app.py again"])
    ['https://example.org/a', 'src/app.py']
    """
    seen: dict[str, None] = {}
    for text in texts:
        seen |= dict.fromkeys(find_names(text))
    return sorted(seen, key=_path_depth, reverse=True)


def _path_depth(name: str) -> int:
    """Return the nesting depth of a path. File names with an ending, and absolute paths, count more."""
    return len(re.findall(r"[/\\]", name)) + 2 * bool(re.search(r"\.\w+$", name)) + name.startswith(("/", "~", "http"))


def parse_summary(text: str) -> Iterator[tuple[SummaryPart, str]]:
    """Yield the items of a rendered summary, each after the part (such as decisions) that contains it."""
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
        for part, text in parse_summary(item.text):
            summary.close_open_items(text)
            summary.add(part, text)
        return
    for call in item.calls:
        summary.add("did", _render_call(call))
    names = [*find_paths(call.arguments for call in item.calls), *find_paths([_sample_text(item.text)])]
    for name in names[: MAX_ERRORS if item.role == "tool" else MAX_PATHS]:
        summary.add("thing", name)
    if item.role == "tool":
        _add_tool_output(summary, item)
    else:
        _add_dialogue(summary, item)


def _add_dialogue(summary: BlockSummary, item: ViewMessage) -> None:
    """Add each sentence to the part that its cue words indicate; requests of a user are added to `asked`."""
    sentences = [one_line(s) for s in split_sentences(_sample_text(item.text)) if len(s.split()) > 2]
    is_user = item.role == "user"
    if is_user and sentences:
        summary.add("asked", sentences[0])
    for sentence in sentences:
        summary.close_open_items(sentence)
        part = _classify(sentence)
        if is_user and is_request(sentence) and part not in ("decided", "rule", "open"):
            part = "asked"
        elif sentence.endswith("?"):
            part = "asked" if is_user else None
        elif part is None and is_user and sentence != sentences[0]:
            part = "found"  # a user's statement is new information
        if part:
            summary.add(part, sentence)
    if item.role == "assistant" and sentences:
        summary.parts["state"] = {shorten_item(sentences[-1]): None}


def _add_tool_output(summary: BlockSummary, item: ViewMessage) -> None:
    """Add the errors and the informative last lines of a tool's output, labelled with the tool."""
    text = _sample_text(item.text)
    label = f"[{one_line(item.name or 'tool')[:MAX_TOOL_NAME_CHARS]}]"
    errors = _find_error_lines(text, limit=MAX_ERRORS)
    for line in errors:
        summary.add("failed", f"{label} {line}")
    for line in _split_nonblank(text)[-LAST_LINES:]:
        if len(_PLAIN.findall(line)) >= MIN_WORDS and line not in errors and _classify(line):
            summary.add("found", f"{label} {line}")


def _find_error_lines(text: str, *, limit: int) -> list[str]:
    """Return the first error lines of a text.

    Very short ones, such as an exit status, are returned only if there is no other.
    """
    lines: dict[str, None] = {}
    end = 0
    for hit in ERROR_PATTERN.finditer(text):
        if hit.start() < end:
            continue  # each line once
        if len(lines) == limit:
            break
        begin = text.rfind("\n", 0, hit.start()) + 1
        end = text.find("\n", hit.end())
        end = len(text) if end < 0 else end
        lines[_shorten_error_line(one_line(text[begin:end]), matched=hit[0])] = None
    return [line for line in lines if len(line.split()) > MIN_WORDS] or list(lines)[:1]


def _shorten_error_line(line: str, *, matched: str) -> str:
    """Return an error line; if it is too long, only the sentence that contains the error."""
    if len(line) <= MAX_ERROR_CHARS:
        return line
    return next((part for part in split_sentences(line) if matched in part and len(part) <= MAX_ERROR_CHARS), line)


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
    """Selection of the items of a summary that fit into `tokens_left`. `waiting` are the items not yet selected."""

    waiting: Mapping[SummaryPart, list[str]]
    sections: Mapping[SummaryPart, str]
    tokens_left: int
    count_tokens: TokenCounter
    selected: dict[SummaryPart, list[str]] = field(default_factory=dict[SummaryPart, "list[str]"])

    def take(self, part: SummaryPart, *, leaving: int = 0) -> bool:
        """Select the next item of a part if `leaving` tokens remain then. Return True if it was selected."""
        heading = "" if part in self.selected else f"{self.sections[part]}:\n"
        tokens = self.count_tokens(f"{heading}- {self.waiting[part][0]}\n")
        fits = self.tokens_left - tokens >= leaving
        if fits:
            self.selected.setdefault(part, []).append(self.waiting[part].pop(0))
            self.tokens_left -= tokens
        return fits

    def take_all(self) -> None:
        """Select items until nothing more fits: first decisions, then a few items of each part in turn."""
        leaving = int(self.tokens_left * (1 - DECISION_SHARE))
        while self.waiting.get("decided") and self.take("decided", leaving=leaving):
            pass
        while any(self.waiting.values()):
            for part, queue in self.waiting.items():
                for _ in range(min(ITEMS_PER_ROUND[part], len(queue))):
                    if not self.take(part):
                        queue.pop(0)


def _select_items(
    summary: BlockSummary,
    sections: Mapping[SummaryPart, str],
    *,
    max_tokens: int,
    count_tokens: TokenCounter,
    is_merge: bool,
) -> Mapping[SummaryPart, Sequence[str]]:
    """Return the items that fit, by part, in their original order.

    The first items of a part are preferred, of a merge the most important ones; of paths, the most nested ones. A name
    that stands in another item is not listed again.
    """
    items: dict[SummaryPart, list[str]] = {part: summary.items(part) for part in ITEMS_PER_ROUND if part in sections}
    if not is_merge and "thing" in items:
        items["thing"] = sorted(items["thing"], key=_path_depth, reverse=True)[:MAX_PATHS]
    waiting: dict[SummaryPart, list[str]] = rank_items(items) if is_merge else {p: t[:] for p, t in items.items()}
    selection = _ItemSelection(waiting=waiting, sections=sections, tokens_left=max_tokens, count_tokens=count_tokens)
    selection.take_all()
    kept: dict[SummaryPart, list[str]] = {
        part: [text for text in items[part] if text in set(chosen)] for part, chosen in selection.selected.items()
    }
    # not in operations and status, because a summary of summaries leaves these out
    texts = [text for part, chosen in kept.items() if part not in ("thing", "did", "state") for text in chosen]
    kept["thing"] = [name for name in kept.get("thing", ()) if not any(name in text for text in texts)]
    return kept
