"""What a stretch of conversation comes to, found in its own words without a model: decisions, findings, dead ends,
artifacts, what is open. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from newton.dialogue.recognising import ERROR, MOST_NAME, MOST_SENTENCE, Sense, asks, names, recognised
from newton.dialogue.view import EntryKind, Shown
from newton.memory.memory import Count
from newton.memory.representations import one_line
from newton.providers.chat import Call

Part = Literal["asked", "did", "decided", "found", "failed", "worked", "rule", "thing", "open", "state"]
RULES = "extract/2"  # the version of the rules by which an account is put together without a model

PARTS: tuple[Part, ...] = get_args(Part)

# What each part is called in the account of each sort of block, in the order in which they stand there.
SECTIONS: Mapping[EntryKind, Mapping[Part, str]] = {
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
HEADS: Mapping[EntryKind, str] = {
    "tools": "[SUMMARIZED] What I did with tools here:",
    "turn": "[SUMMARIZED] Earlier in this conversation:",
    "goals": "[GOAL BATCH] Earlier in this conversation:",
    "merged": "[GOAL BATCH] The beginning of this conversation:",
}
# What is kept when there is no room for all: so many of each part in a round. What would be done wrong, or again,
# without it comes first, and names and addresses are short.
_SHARES: Mapping[Part, int] = {
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
_NAMES: Mapping[str, Part] = {
    **{name: part for sections in SECTIONS.values() for part, name in sections.items()},
    "Strategy": "decided",
    "Operations": "did",
}
MOST_CHARACTERS = 220  # of one item
MOST_ERROR = 400  # characters of an error, which is kept letter by letter or not at all
MOST_THINGS = 12
MOST_ERRORS, LAST_LINES = 4, 12  # of what one tool gave
MOST_TOOL = 40  # characters of what it is called
FEWEST_WORDS = 3
MOST_READ = 200_000  # characters of one message; the middle of a longer one is passed over
MOST_TOLD = 8_000  # the same, of what a model is given to tell of
DECIDED = 0.5  # of the room for an account: so much of it decisions may take before anything else

_PLAIN = re.compile(r"(?<![\w./])[A-Za-z]{2,}(?![\w./(])")  # a word as people write it
_SENTENCE = re.compile(r"(?<=[.!?…])\s+|\n+")
_PART_OF: Mapping[Sense, Part] = {"error": "failed", "decision": "decided", "constraint": "rule", "task": "open"}
_SAID: Sequence[tuple[Part, str]] = (
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
_CUES: Sequence[tuple[Part, re.Pattern[str]]] = [(part, re.compile(words, re.IGNORECASE)) for part, words in _SAID]


@dataclass(slots=True)
class Account:
    """The parts of what happened, each item once, in the order in which it came up."""

    parts: dict[Part, dict[str, None]] = field(default_factory=dict[Part, "dict[str, None]"])

    def note(self, part: Part, words: str) -> None:
        words = one_line(words)
        words = shortened(words) if part != "thing" else words if len(words) <= MOST_NAME else ""
        if words:
            self.parts.setdefault(part, {})[words] = None

    def items(self, part: Part) -> list[str]:
        return list(self.parts.get(part, ()))


def account(items: Sequence[Shown]) -> Account:
    """What these come to. Blocks among them are taken by their parts, so each item of theirs is kept."""
    told = Account()
    for item in items:
        _take(told, item)
    return told


def written(kind: EntryKind, told: Account, items: Sequence[Shown], *, most: int, count: Count) -> str:
    """The account in at most so many tokens, under the headings of such a block."""
    if kind == "tools":
        told.parts["state"] = {_status(items): None}
    sections = SECTIONS["goals" if kind == "merged" else kind]
    head = HEADS[kind]
    kept = _chosen(told, sections, most=most - count(head + "\n"), count=count, latest=kind == "merged")
    lines = [head]
    for part, name in sections.items():
        if kept.get(part):
            lines += [f"{name}:", *(f"- {words}" for words in kept[part])]
    return "\n".join(lines)


def told_as(item: Shown) -> str:
    """A message as it is read by whoever is to tell of it."""
    called = "".join(f"\n  {_called(call)}" for call in item.calls)
    return f"{item.name or item.role}: {_sample(item.text, most=MOST_TOLD)}{called}"


def masked(item: Shown, *, most: int, count: Count) -> str:
    """What is left of a tool's words: how much there was, and of its lines the first and those that tell most."""
    whole = _lines(item.text)
    lines = [shortened(one_line(line)) for line in (*whole[:1], *whole[-1:])]
    head = f"[output left out: {item.tokens:,} tokens in {len(whole):,} lines]\n"
    left = most - count(head)
    kept: list[str] = []
    for line in dict.fromkeys((*lines[:1], *map(shortened, _errors(_sample(item.text), most=6)), *lines[-1:])):
        left -= count(line + "\n")
        if left < 0:
            break
        kept.append(line)
    return head + "\n".join(kept)


def trimmed(text: str, *, most: int, count: Count, lines: int = 50) -> str:
    """The beginning and the end of a text, up to so many lines of each, in at most so many tokens; or nothing."""
    if len(text) <= 8 * most and count(text) <= most:
        return text
    told, head, tail = text.splitlines(), text, text
    if len(told) > 2 * lines:
        head, tail = "\n".join(told[:lines]), "\n".join(told[-lines:])
    note = f"\n[… the middle of {len(text):,} characters is left out …]\n"
    room = (most - count(note)) // 2
    if room < 1:
        return clipped(text, most=most, count=count)
    begin = clipped(head, most=room, count=count)
    rest = clipped(tail[::-1], most=max(room - 4, 1), count=lambda words: count(words[::-1]))[::-1]
    joined = begin + note + rest
    return joined if count(joined) <= most else clipped(text, most=most, count=count)


def clipped(text: str, *, most: int, count: Count) -> str:
    """The longest beginning of a text, to within a few characters, that costs at most so many tokens."""
    low, high = 0, min(len(text), most * 8)
    if count(text[:high]) <= most:
        return text[:high]
    while high - low > max(1, low // 50):
        middle = (low + high) // 2
        low, high = (middle, high) if count(text[:middle]) <= most else (low, middle)
    return text[:low]


def shortened(words: str) -> str:
    """An item of at most MOST_CHARACTERS, cut between words. A name is never cut, and an error is kept to its last
    letter or left out."""
    if len(words) <= MOST_CHARACTERS:
        return words
    error = ERROR.search(words[:MOST_SENTENCE])
    if error and len(words) <= MOST_ERROR:
        return words
    end = min(MOST_CHARACTERS, error.start() if error else MOST_CHARACTERS)
    head, space, _ = words[:end].rpartition(" ")
    if not space and not (words[:end].isascii() or names(words[:MOST_SENTENCE])):
        head = words[:end]  # some languages are written without spaces
    return f"{head} …" if head else ""


def things(texts: Iterable[str]) -> list[str]:
    """The paths and addresses that texts name, exactly as they are written: those that lead furthest first.

    >>> things(["see src/app.py, then https://example.org/a.", "src/app.py again"])
    ['https://example.org/a', 'src/app.py']
    """
    seen: dict[str, None] = {}
    for text in texts:
        seen |= dict.fromkeys(names(text))
    return sorted(seen, key=_depth, reverse=True)


def _depth(name: str) -> int:
    """How far a path leads: its parts, and more for the file at its end and for a path from the root."""
    return len(re.findall(r"[/\\]", name)) + 2 * bool(re.search(r"\.\w+$", name)) + name.startswith(("/", "~", "http"))


def parsed(text: str) -> Iterator[tuple[Part, str]]:
    """The items of an account, by part."""
    part: Part | None = None
    for line in text.splitlines():
        if line.startswith("- "):
            if part:
                yield part, line[2:]
        else:
            name, _, rest = line.partition(":")
            part = _NAMES.get(name)
            if part and rest.strip():
                yield part, rest.strip()


def _take(told: Account, item: Shown) -> None:
    if item.kind not in ("line", "mask"):
        for part, words in parsed(item.text):
            told.note(part, words)
        return
    for call in item.calls:
        told.note("did", _called(call))
    named = [*things(call.arguments for call in item.calls), *things([_sample(item.text)])]
    for name in named[: MOST_ERRORS if item.role == "tool" else MOST_THINGS]:
        told.note("thing", name)
    if item.role == "tool":
        _tool(told, item)
    else:
        _talk(told, item)


def _talk(told: Account, item: Shown) -> None:
    """What was said, sentence by sentence: each goes to the first part whose words it has. What a person asks for is
    asked, whatever words are in it."""
    sentences = [one_line(s) for s in _SENTENCE.split(_sample(item.text)) if len(s.split()) > 2]
    person = item.role == "user"
    if person and sentences:
        told.note("asked", sentences[0])
    for sentence in sentences:
        part = _part_of(sentence)
        if person and asks(sentence) and part not in ("decided", "rule", "open"):
            part = "asked"
        elif sentence.endswith("?"):
            part = "asked" if person else None
        elif part is None and person and sentence != sentences[0]:
            part = "found"  # what a person states is news
        if part:
            told.note(part, sentence)
    if item.role == "assistant" and sentences:
        told.parts["state"] = {shortened(sentences[-1]): None}


def _tool(told: Account, item: Shown) -> None:
    """Its errors, and of its last lines those that say something in words. Each says that a tool put it out."""
    text = _sample(item.text)
    by = f"[{one_line(item.name or 'tool')[:MOST_TOOL]}]"
    errors = _errors(text, most=MOST_ERRORS)
    for line in errors:
        told.note("failed", f"{by} {line}")
    for line in _lines(text)[-LAST_LINES:]:
        if len(_PLAIN.findall(line)) >= FEWEST_WORDS and line not in errors and _part_of(line):
            told.note("found", f"{by} {line}")


def _errors(text: str, *, most: int) -> list[str]:
    """The first lines that tell of an error; of those that say nothing else, such as an exit status, one if need be."""
    lines: dict[str, None] = {}
    end = 0
    for hit in ERROR.finditer(text):
        if hit.start() < end:
            continue  # one line is read once, whatever it tells
        if len(lines) == most:
            break
        begin = text.rfind("\n", 0, hit.start()) + 1
        end = text.find("\n", hit.end())
        end = len(text) if end < 0 else end
        lines[_error(one_line(text[begin:end]), by=hit[0])] = None
    telling = [line for line in lines if len(line.split()) > FEWEST_WORDS]
    return telling or list(lines)[:1]


def _error(line: str, *, by: str) -> str:
    """A line that tells of an error; of one that is too long to be kept, the sentence that tells of it."""
    if len(line) <= MOST_ERROR:
        return line
    return next((part for part in _SENTENCE.split(line) if by in part and len(part) <= MOST_ERROR), line)


def _part_of(sentence: str) -> Part | None:
    sentence = sentence[:MOST_SENTENCE]
    if part := _PART_OF.get(recognised(sentence) or "path"):
        return part
    return next((part for part, cue in _CUES if cue.search(sentence)), None)


def _called(call: Call) -> str:
    return f"I called {call.name} {one_line(call.arguments)}"


def _status(items: Sequence[Shown]) -> str:
    last = next((item for item in reversed(items) if item.role == "tool"), None)
    if last is None:
        return "BLOCKED"
    return "PARTIAL" if ERROR.search(_sample(last.text)) else "COMPLETE"


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def _sample(text: str, *, most: int = MOST_READ) -> str:
    return text if len(text) <= most else f"{text[: most // 2]}\n…\n{text[-most // 2 :]}"


@dataclass(slots=True, kw_only=True)
class _Choice:
    """What is kept of an account: what waits for its turn by part, the first ones or the latest first."""

    waiting: Mapping[Part, list[str]]
    sections: Mapping[Part, str]
    left: int  # tokens
    count: Count
    kept: dict[Part, list[str]] = field(default_factory=dict[Part, "list[str]"])

    def take(self, part: Part, *, leaving: int = 0) -> bool:
        """Whether there was room for the next one, with so many tokens left over."""
        heading = "" if part in self.kept else f"{self.sections[part]}:\n"
        tokens = self.count(f"{heading}- {self.waiting[part][0]}\n")
        fits = self.left - tokens >= leaving
        if fits:
            self.kept.setdefault(part, []).append(self.waiting[part].pop(0))
            self.left -= tokens
        return fits

    def take_all(self) -> None:
        """Decisions first, and then of each part in turn its share."""
        leaving = int(self.left * (1 - DECIDED))
        while self.waiting.get("decided") and self.take("decided", leaving=leaving):
            pass
        while any(self.waiting.values()):
            for part, queue in self.waiting.items():
                for _ in range(min(_SHARES[part], len(queue))):
                    if not self.take(part):
                        queue.pop(0)


def _chosen(
    told: Account, sections: Mapping[Part, str], *, most: int, count: Count, latest: bool
) -> Mapping[Part, Sequence[str]]:
    """As many items as there is room for, in their order: of each part the first ones or the latest, of names those
    that lead furthest."""
    items: dict[Part, list[str]] = {part: told.items(part) for part in _SHARES if part in sections}
    if not latest and "thing" in items:
        items["thing"] = sorted(items["thing"], key=_depth, reverse=True)[:MOST_THINGS]
    waiting: dict[Part, list[str]] = {part: words[::-1] if latest else words[:] for part, words in items.items()}
    choice = _Choice(waiting=waiting, sections=sections, left=most, count=count)
    choice.take_all()
    return {part: [words for words in items[part] if words in set(kept)] for part, kept in choice.kept.items()}
