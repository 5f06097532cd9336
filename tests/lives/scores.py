"""What a lived life got right, by the words of its gold. Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import combinations

import numpy as np

from tests.lives.life import Change, CurrentItem, Gold, Life, Never, Question, names_of
from tests.lives.living import LivedLife, StoredItem
from tests.lives.matching import content_words, fold_words, has_word, has_words, marks_of, shares_topic

CURRENT_STATES = ("NEW", "CONFIRMED", "CORE", "ACTIVE", "CREATED")
SAME_COSINE, ALIKE_COSINE = 0.93, 0.6  # of two facts that say the same; of two that also satisfy the same gold
MIN_SHARED_WORDS = 0.5  # of a sentence of the gold, in a text that comes from another line
MARK = "changed since|until|unsettled|maybe outdated|superseded|replaced|outdated|ended|no longer|earlier"
LABEL = re.compile(
    rf"^\W*(?:[^:(]{{0,40}}\b)?(?:{MARK})\b[^:]*:|^\W*or\b|[(\[][^()]{{0,40}}\b(?:{MARK})\b[^()]*[)\]]\W*$"
)
EVIDENCE_CHARACTERS = 50  # of the beginning of a text, by which a line of a context is known to quote it
OVERLAP = 0.65  # of the words of the longer of two facts that say the same, if they are not both of one line
# What says itself that something is over is not shown as if it held.
OVER = "no longer|not any more|instead of|moved out|moved away|used to|formerly|cancelled|is off|fell through|split up"
NEGATION = "no|not|never|nothing|cancelled|canceled|off|isn't|doesn't|won't|longer|fell through"


@dataclass(frozen=True, slots=True)
class KnownItem:
    """A stored text, with the line of the life that it comes from, None if its time is that of no line."""

    number: int
    kind: str
    text: str
    words: str
    line: str | None
    said_at: datetime
    is_current: bool


class LifeScore:
    """The comparison of what is known at the end of a life with its gold."""

    def __init__(self, life: Life, seen: LivedLife) -> None:
        self.gold: Gold = life["gold"]
        self.seen, self.names = seen, names_of(life)
        self.lines = {line.at: line.id for line in seen.lines}
        self.times = {line.id: line.at for line in seen.lines}
        self.marked = {pair["older"]["memory_id"]: pair["newer"]["text"] for pair in seen.conflicts}

    @cached_property
    def items(self) -> list[KnownItem]:
        ended = max(self.times.values())
        return [self._read_item(number, row, ended) for number, row in enumerate(self.seen.items)]

    def _read_item(self, number: int, row: StoredItem, ended: datetime) -> KnownItem:
        said_at: datetime = row["valid_from"] or row["said_at"]
        line = self.lines.get(row["said_at"].replace(second=0, microsecond=0))
        is_over = row["valid_to"] is not None and row["valid_to"] <= ended
        is_current = row["state"] in CURRENT_STATES and not row["quarantined"] and not is_over and not row["is_merged"]
        words = f"{row['text']} ({row['subject'] or ''})"
        at = self.times[line] if line else said_at
        return KnownItem(number, row["kind"], row["text"], words, line, at, is_current)

    @property
    def current(self) -> list[KnownItem]:
        return [item for item in self.items if item.is_current]

    @property
    def current_facts(self) -> list[KnownItem]:
        return [item for item in self.current if item.kind == "fact"]

    def says(self, item: KnownItem, wanted: CurrentItem) -> bool:
        """Whether an item says what is wanted: it has the words, and the line or half of the other words."""
        if not has_words(item.words, wanted["must"]):
            return False
        return item.line in wanted["from"] or self._is_about(item.words, wanted["says"])

    def _is_about(self, text: str, sentence: str) -> bool:
        wanted = content_words(sentence, but=self.names)
        return len(wanted & content_words(text)) >= MIN_SHARED_WORDS * len(wanted)

    @cached_property
    def right(self) -> dict[str, list[int]]:
        """The numbers of the current items that say each wanted sentence; also orders in force say one."""
        wanted = self.gold.get("current", [])
        found = {one["id"]: [item.number for item in self.current if self.says(item, one)] for one in wanted}
        for one in wanted:
            orders = self.seen.orders_at_end
            if any(has_words(text, one["must"]) and self._is_about(text, one["says"]) for text in orders):
                found[one["id"]].append(-1)
        return found

    def judge_change(self, change: Change) -> str:
        """Return "right", or what is wrong."""
        stale = self.list_stale(change)
        problems = [f"old is current: {item.text!r}" for item in stale]
        if change["new_words"] and not self._is_replaced_later(change) and not self._knows_new(change):
            problems.append("new is not known")
        if change["lookalike_kept"] and (lost := self._find_lost_lookalike(change)):
            problems.append(f"look-alike lost: {lost!r}")
        return "; ".join(problems) or "right"

    def list_stale(self, change: Change) -> list[KnownItem]:
        """The current items that were said before the change, have its old words and not the new ones, unmarked."""
        return [item for item in self._list_old(change) if not has_word(item.text, OVER)]

    def list_doubtful_stale(self, change: Change) -> list[KnownItem]:
        """The current items with the old words that say themselves that something is over: a reader must judge them."""
        return [item for item in self._list_old(change) if has_word(item.text, OVER)]

    def _list_old(self, change: Change) -> list[KnownItem]:
        at = self.times[change["at"]]
        return [item for item in self.current if item.said_at < at and self._says_old(item, change)]

    def knew_old(self, change: Change) -> bool:
        """Whether the old was stored at all: a change of what was never known ends right by itself."""
        at = self.times[change["at"]]
        return any(item.said_at < at and has_words(item.words, change["old_words"]) for item in self.items)

    def _says_old(self, item: KnownItem, change: Change) -> bool:
        old, new = change["old_words"], change["new_words"]
        if not has_words(item.words, old) or has_words(item.words, new):
            return False
        lookalike = change["lookalike_kept"]
        is_rival = bool(lookalike) and self._is_about(item.words, lookalike)
        if is_rival and len(self._rest(change["old"], item)) <= len(self._rest(lookalike, item)):
            return False
        newer = self.marked.get(self.seen.items[item.number]["memory_id"])
        is_marked = newer is not None and has_words(newer, new)
        return not is_marked and shares_topic(item.words, change["old"], values=old, names=self.names)

    def _rest(self, sentence: str, item: KnownItem) -> set[str]:
        return content_words(sentence, but=self.names) & content_words(item.words)

    def _knows_new(self, change: Change) -> bool:
        new = change["new_words"]
        return any(
            item.line == change["at"] or shares_topic(item.words, change["new"], values=new, names=self.names)
            for item in self.current
            if has_words(item.words, new)
        )

    def _is_replaced_later(self, change: Change) -> bool:
        changes = self.gold.get("changes", [])
        topic = content_words(change["new"], but=[*change["new_words"], *self.names])
        return any(
            self.times[other["at"]] > self.times[change["at"]]
            and any(
                has_word(entry.replace("|", " "), new) for entry in other["old_words"] for new in change["new_words"]
            )
            and topic & content_words(other["old"], but=other["old_words"])
            for other in changes
        )

    def _find_lost_lookalike(self, change: Change) -> str | None:
        """The look-alike of a change if a stored text says it, and no current one does."""
        told = [item for item in self.items if self._is_about(item.words, change["lookalike_kept"])]
        told = [item for item in told if not has_words(item.words, change["old_words"]) or not change["old_words"]]
        return told[0].text if told and not any(item.is_current for item in told) else None

    def list_duplicates(self) -> list[tuple[str, str]]:
        """Pairs of current facts that say the same."""
        return [(one.text, other.text) for one, other, is_certain in self._alike if is_certain]

    def list_doubtful_duplicates(self) -> list[tuple[str, str]]:
        """Pairs of current facts of which one also has what the gold asks of the other: a reader must judge them."""
        return [(one.text, other.text) for one, other, is_certain in self._alike if not is_certain]

    @cached_property
    def _alike(self) -> list[tuple[KnownItem, KnownItem, bool]]:
        facts = {item.number: item for item in self.current_facts}
        says = {number: {one for one, numbers in self.right.items() if number in numbers} for number in facts}
        found: list[tuple[KnownItem, KnownItem, bool]] = []
        for first, second in combinations(facts, 2):
            marks = marks_of(facts[first].text), marks_of(facts[second].text)
            cosine = self._cosine(first, second)
            is_same = cosine >= SAME_COSINE and marks[0] == marks[1]
            is_alike = says[first] & says[second] and (marks[0] <= marks[1] or marks[1] <= marks[0])
            if is_same or (is_alike and cosine >= ALIKE_COSINE):
                pair = facts[first], facts[second]
                found.append((*pair, is_same or self._rewords(*pair)))
        return found

    def _rewords(self, one: KnownItem, other: KnownItem) -> bool:
        """Whether one of two alike facts is a sentence of the line of both, or they share most words."""
        lines = {said.id: fold_words(said.text) for said in self.seen.lines}
        is_of_one = one.line == other.line or None in (one.line, other.line)
        if is_of_one and any(item.line and fold_words(item.text) in lines[item.line] for item in (one, other)):
            return True
        first, second = (content_words(item.text, but=self.names) for item in (one, other))
        return len(first & second) >= OVERLAP * max(len(first), len(second))

    def _cosine(self, first: int, second: int) -> float:
        if not self.seen.vectors:
            return 0.0
        one, other = np.asarray(self.seen.vectors[first]), np.asarray(self.seen.vectors[second])
        return float(one @ other / max(np.linalg.norm(one) * np.linalg.norm(other), 1e-9))

    def find_never(self, never: Never) -> str | None:
        """The current item that says what must not be known."""
        for item in self.current:
            if not has_words(item.words, never["words"]):
                continue
            is_there = item.line == never["at"]
            is_about = shares_topic(item.words, never["text"], values=never["words"], names=self.names)
            if is_there or (is_about and not has_word(item.text, NEGATION)):
                return item.text
        return None

    def judge_question(self, question: Question, context: str) -> "AnswerScore":
        """Whether a context answers a question, and how it shows what is outdated."""
        lines = [line for line in context.splitlines() if line.strip()]
        linked = self._list_linked(question)
        sentences, quotes = [question["q"], *(one["says"] for one in linked)], self._list_quotes(linked)
        new = [
            place
            for place, line in enumerate(lines)
            if has_words(line, question["answer"])
            and (any(one in line for one in quotes) or self._is_on(line, sentences, question["answer"]))
        ]
        outdated = [*sentences, *self._list_outdated(question)]
        old = [
            place
            for place, line in enumerate(lines)
            if any(has_word(line, word) for word in question["old"])
            and not (place in new or LABEL.search(line) or any(one in line for one in self._true_quotes))
            and self._is_on(line, outdated, question["old"])
        ]
        is_first = bool(new) and (not old or new[0] < old[0])
        return AnswerScore(bool(new), is_first, bool(new) and not old)

    @cached_property
    def _true_quotes(self) -> list[str]:
        """The beginnings of the stored texts that are true at the end: what they say is not outdated."""
        stale = {item.number for change in self.gold.get("changes", []) for item in self.list_stale(change)}
        numbers = {number for found in self.right.values() for number in found if number >= 0} - stale
        return [self.items[number].text[:EVIDENCE_CHARACTERS] for number in sorted(numbers)]

    def _is_on(self, line: str, sentences: Sequence[str], values: Sequence[str]) -> bool:
        return any(shares_topic(line, one, values=values, names=self.names) for one in sentences)

    def _list_linked(self, question: Question) -> list[CurrentItem]:
        """The wanted sentences that contain the answer."""
        return [one for one in self.gold.get("current", []) if has_words(one["says"], question["answer"])]

    def _list_quotes(self, linked: Sequence[CurrentItem]) -> list[str]:
        """The beginnings of the stored texts that say a wanted sentence, and of the lines that they are from."""
        numbers = {number for one in linked for number in self.right[one["id"]] if number >= 0}
        sources = {line for one in linked for line in one["from"]}
        texts = [self.items[number].text for number in numbers]
        texts += [" ".join(line.text.split()) for line in self.seen.lines if line.id in sources]
        return [text[:EVIDENCE_CHARACTERS] for text in texts]

    def _list_outdated(self, question: Question) -> Iterator[str]:
        changes = self.gold.get("changes", [])
        return (one["old"] for one in changes if any(has_word(one["old"], word) for word in question["old"]))


@dataclass(frozen=True, slots=True)
class AnswerScore:
    """Whether a context has the answer, has it before any outdated one, and marks each outdated one."""

    is_answered: bool
    is_first: bool
    is_clean: bool
