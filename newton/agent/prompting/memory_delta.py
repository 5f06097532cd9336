"""The block before an input: the parts of a context that the blocks before earlier inputs do not have. Pure.

A block has up to three parts, each below a header line: instructions of the system, memories, and the input. No line of
a context begins with `=`, so that a memory cannot begin a part.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import NamedTuple

from newton.cognition.assembly.always_on import OMISSION_END
from newton.cognition.assembly.render import FENCE_BEGIN, FENCE_END, FRAME_HEADER, render_header
from newton.cognition.assembly.sections import ABSENCE_NOTES, INPUT_NOTES
from newton.heart.persons.profile_sections import TITLES
from newton.memory.representations import to_bullet
from newton.memory.source_marks import SOURCE_MARKS
from newton.text.words import extract_content_words

SYSTEM_HEADER, SYSTEM_HEADER_END = "=== System, ", " ===\n"
MEMORY_HEADER, INPUT_HEADER = "=== What you know ===\n", "=== Message ===\n"
ADDED_RULES, LIFTED_RULES = "In force from now on:\n", "No longer in force:\n"
REPLACED_SECTION = "## No Longer True\n"
NONE_LEFT = "- None any more.\n"
SUCCESSOR_MARK = " Now: "  # in a line of that section, between a fact and what took its place

# Sections that say what holds now. A changed one is sent as a whole; the others only with their new lines.
_STATE_SECTIONS = frozenset(render_header(layer) for layer in ("brief", "root"))
_NOTE_SECTION, _FACT_SECTION = render_header("note"), render_header("facts")
_RULE_SECTIONS = frozenset(render_header(layer) for layer in ("identity", "censors"))
# A day, or a section of a profile.
_HEADING = re.compile(rf"(?:\d{{4}}-\d\d-\d\d|{'|'.join(TITLES.values())}):\n")
_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
# The day of a fact, which changes with each confirmation and is no news. Whose word it is may stand before it.
_MARK = "|".join(map(re.escape, sorted(SOURCE_MARKS, key=len, reverse=True)))
_FACT_DAY = re.compile(rf"^(- (?:#\w+ )?(?:(?:{_MARK}), )?)(?:\d{{1,2}} {_MONTH}|{_MONTH} '\d\d|\d{{4}}): ")
DATE_FORMAT = "%A, %d %B %Y"


class ContextLine(NamedTuple):
    """A line of a context, with the lines that continue it; its section, and the heading above it, if any."""

    section: str
    heading: str
    text: str

    @property
    def key(self) -> tuple[str, str]:
        """Return the key (heading, text without day) by which an item is recognized when it is sent again."""
        return self.heading, _FACT_DAY.sub(r"\1", self.text)


class ReplacedFact(NamedTuple):
    """A fact that an earlier part of the prompt states and that is not true any more, and what is true instead.

    `successors` are the facts that took its place, the latest first; none if it was withdrawn.
    """

    text: str
    successors: tuple[str, ...] = ()

    @property
    def successor(self) -> str | None:
        """Return the latest successor that shares a word with the fact and says something else."""
        words = extract_content_words(self.text)
        words_of = {one: extract_content_words(one) for one in self.successors}
        return next((one for one, new in words_of.items() if words & new and new - words), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SentContext:
    """The earlier parts of a prompt: the system message, and the texts from memory before earlier inputs.

    `day` is that on which the system message was made.
    """

    system: str = ""
    day: date | None = None
    blocks: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NewContext:
    """A context (text from memory) for an input. `is_new` is False if it was made for an earlier input and is reused.

    `shows_frame` is False if the frame may not fit the input. `rules` are the lines of identity and constraints that
    hold now; None if they are not known. `kept_rules` are further lines that still hold, although this context does not
    show them. `replaced` are facts of earlier parts that are not true any more.
    """

    text: str
    today: date
    is_new: bool = True
    shows_frame: bool = True
    rules: Sequence[str] | None = None
    kept_rules: frozenset[str] = frozenset()
    replaced: Sequence[ReplacedFact] = ()


def format_date(day: date) -> str:
    """Return a day as a person writes it.

    >>> format_date(date(2026, 5, 5))
    'Tuesday, 5 May 2026'
    """
    return f"{day:%A}, {day.day} {day:%B %Y}"


def build_block(context: NewContext, sent: SentContext) -> str:
    """Return the text to put before an input: the lines of its context that are new or changed since `sent`.

    It ends with the header of the input. Return "" if nothing is new or changed.
    """
    state = _SentState.read(sent)
    system = "".join(_render_system(context, state))
    is_later = state.day is not None and state.day != context.today
    if system or is_later:
        system = f"{SYSTEM_HEADER}{format_date(context.today)}{SYSTEM_HEADER_END}{system}"
    memories = "".join(_render_memories(context, state))
    memories = MEMORY_HEADER + memories if memories else ""
    return f"{system}{memories}{INPUT_HEADER}" if system or memories else ""


@dataclass(slots=True)
class _SentState:
    """The knowledge that the earlier parts of a prompt gave the model: items, sections, rules, the last named day.

    `frames` are the sections of the frames, the latest last.
    """

    items: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    sections: dict[str, str] = field(default_factory=dict[str, str])
    frames: list[str] = field(default_factory=list[str])
    rules: dict[str, None] = field(default_factory=dict[str, None])
    replaced: set[str] = field(default_factory=set[str])
    day: date | None = None

    @classmethod
    def read(cls, sent: SentContext) -> "_SentState":
        """Read what the parts of a prompt that are sent again say, in order."""
        state = cls(day=sent.day)
        state.rules = dict.fromkeys(list_rules(sent.system))
        for block in sent.blocks:
            state._read_block(block)
        return state

    def _read_block(self, block: str) -> None:
        for header, text in _split_parts(block):
            if header.startswith(SYSTEM_HEADER):
                self._read_system(text)
                self.day = _parse_date(header) or self.day
            elif header == MEMORY_HEADER:
                self._read_memories(text)

    def _read_system(self, text: str) -> None:
        """Note the rules that a part of the system adds or lifts, and the frame that it shows."""
        is_lifted = False
        for line in text.splitlines(keepends=True):
            if line in (ADDED_RULES, LIFTED_RULES):
                is_lifted = line == LIFTED_RULES
            elif line.startswith("- "):
                self.rules.pop(line, None)
                self.rules |= {} if is_lifted else {line: None}
        if frame := _find_frame(text):
            self.frames.append(frame)

    def _read_memories(self, text: str) -> None:
        for section, items in _group_sections(text):
            if section in _STATE_SECTIONS:
                self.sections[section] = "".join(item.text for item in items)
            elif section == REPLACED_SECTION:
                for item in items:
                    self._read_replaced(item.text)
            else:
                self.items |= {item.key for item in items}
                if section == _FACT_SECTION:
                    self._keep_replaced(item.text for item in items)

    def _read_replaced(self, line: str) -> None:
        """Mark the fact as not sent, so that it is sent again once it is true again, and its successor as sent."""
        fact, successor = _parse_replaced(line)
        self.items = {one for one in self.items if one[0] or not one[1].rstrip("\n").endswith(fact)}
        self._keep_replaced([successor] if successor else [])
        self.replaced.add(line)

    def _keep_replaced(self, holding: Iterable[str]) -> None:
        """Keep the replaced facts that do not hold again since."""
        for text in holding:
            line = text.rstrip("\n")
            self.replaced = {one for one in self.replaced if not line.endswith(_parse_replaced(one)[0])}


def read_section(blocks: Iterable[str], layer: str) -> str:
    """Return the lines of one section (`layer`) of memories in texts before inputs, without headings."""
    memories = (text for block in blocks for header, text in _split_parts(block) if header == MEMORY_HEADER)
    groups = (group for text in memories for group in _group_sections(text))
    return "".join(item.text for section, items in groups if section == render_header(layer) for item in items)


def list_rules(text: str) -> list[str]:
    """Return the lines of identity and constraints in a context or a system message, without the counts of others."""
    rules: list[str] = []
    section = ""
    for line in text.splitlines(keepends=True):
        section = line if line.startswith("## ") else section
        if section in _RULE_SECTIONS and line.startswith("- ") and not line.endswith(f"{OMISSION_END}\n"):
            rules.append(line)
    return rules


def _render_system(context: NewContext, state: _SentState) -> Iterator[str]:
    """Yield the lines that have the authority of the system: changed rules, and the approach to the input."""
    if context.rules is not None:
        added = [line for line in context.rules if line not in state.rules]
        lifted = [line for line in state.rules if line not in context.rules and line not in context.kept_rules]
        yield from (ADDED_RULES, *added) if added else ()
        yield from (LIFTED_RULES, *lifted) if lifted else ()
    if context.is_new and context.shows_frame and (frame := _find_frame(context.text)):  # it is for this one input
        yield _abbreviate_frame(frame) if frame in state.frames else frame


def _render_memories(context: NewContext, state: _SentState) -> Iterator[str]:
    """Yield the sections of a context with the items that were not sent before."""
    lines = map(_render_replaced, _select_replaced(context, state))
    replaced = [line for line in lines if line not in state.replaced]
    yield from (REPLACED_SECTION, *replaced) if replaced else ()
    sections = _group_sections(_drop_stable(context.text))
    present = {section for section, _ in sections}
    for section, items in sections:
        whole = "".join(item.text for item in items)
        if section in _STATE_SECTIONS:
            yield from (section, whole) if whole != state.sections.get(section) else ()
        else:
            new = [item for item in items if _is_new(item, context, state)]
            yield from (section, *_render_items(new)) if new else ()
    for section, text in state.sections.items():
        if section in _STATE_SECTIONS and section not in present and text != NONE_LEFT and context.is_new:
            yield section + NONE_LEFT


def _is_new(item: ContextLine, context: NewContext, state: _SentState) -> bool:
    """Return whether an item is to be sent: it was not sent before, or it is a note on this very input."""
    note = item.text.removeprefix("- ") if item.section == _NOTE_SECTION else ""
    if not note.startswith(INPUT_NOTES):
        return item.key not in state.items
    # the conversation or a search by the model may have what the context lacks, and few inputs ask for it
    return context.is_new and not note.startswith(ABSENCE_NOTES)


def _select_replaced(context: NewContext, state: _SentState) -> list[ReplacedFact]:
    """Return the facts to call replaced: withdrawn, or with a successor about the same; no rule in force."""
    rules = list(state.rules if context.rules is None else context.rules)
    changed = [one for one in context.replaced if one.successor or not one.successors]
    return [one for one in changed if not any(one.text in rule for rule in rules)]


def _render_items(items: Sequence[ContextLine]) -> Iterator[str]:
    heading = ""
    for item in items:
        if item.heading != heading:
            if heading == FENCE_BEGIN:
                yield FENCE_END
            heading = item.heading
            yield heading
        yield item.text
    if heading == FENCE_BEGIN:
        yield FENCE_END


def _group_sections(text: str) -> list[tuple[str, list[ContextLine]]]:
    """Return the items of each section of a context, in order; lines below the frame belong to no section."""
    groups: list[tuple[str, list[ContextLine]]] = []
    section = heading = ""
    for line in text.splitlines(keepends=True):
        if line.startswith("## "):
            section, heading = line, ""
            groups.append((section, []))
        elif line == FENCE_BEGIN or _HEADING.fullmatch(line):
            heading = line
        elif line == FENCE_END:
            heading = ""
        elif groups and (line.startswith("- ") or not groups[-1][1] or section == _NOTE_SECTION):
            groups[-1][1].append(ContextLine(section, heading, line))
        elif groups:
            last = groups[-1][1][-1]
            groups[-1][1][-1] = last._replace(text=last.text + line)
    return [(name, items) for name, items in groups if items]


def _split_parts(block: str) -> Iterator[tuple[str, str]]:
    """Yield the header line and the text of each part of a block."""
    header, lines = "", list[str]()
    for line in block.splitlines(keepends=True):
        if line.startswith("=== "):
            if header:
                yield header, "".join(lines)
            header, lines = line, []
        else:
            lines.append(line)
    if header:
        yield header, "".join(lines)


def _find_frame(text: str) -> str:
    """Return the section of the frame in a text; an empty text if it has none."""
    found = list[str]()
    for line in text.splitlines(keepends=True):
        if line.startswith("## "):
            if found:
                break
            found += [line] if line.startswith(FRAME_HEADER) else []
        elif found:
            found.append(line)
    return "".join(found)


def _abbreviate_frame(frame: str) -> str:
    """Return the section of a frame that was sent before, without its questions and constraints."""
    return f"{frame.splitlines()[0]} (as above)\n"


def _drop_stable(text: str) -> str:
    """Return a context without identity, constraints and frame."""
    kept, is_kept = list[str](), False
    for line in text.splitlines(keepends=True):
        if line.startswith("## "):
            is_kept = line not in _RULE_SECTIONS and not line.startswith(FRAME_HEADER)
        kept += [line] if is_kept else []
    return "".join(kept)


def _render_replaced(fact: ReplacedFact) -> str:
    after = f"{SUCCESSOR_MARK}{fact.successor}" if fact.successor else ""
    return to_bullet(f"{fact.text}{after}")


def _parse_replaced(line: str) -> tuple[str, str]:
    """Return the fact of a line of replaced facts, and what took its place; an empty text if nothing did."""
    fact, _, successor = line.removeprefix("- ").rstrip("\n").partition(SUCCESSOR_MARK)
    return fact, successor


def _parse_date(header: str) -> date | None:
    """Return the day in the header line of a part of the system."""
    text = header.removeprefix(SYSTEM_HEADER).removesuffix(SYSTEM_HEADER_END)
    try:
        return datetime.strptime(f"{text} +0000", f"{DATE_FORMAT} %z").date()
    except ValueError:
        return None
