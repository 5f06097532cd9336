"""Ranking of the found memories for the kind of question that was asked, and standing wishes that apply. Pure.

A request seldom has words of an instruction that applies to it, so the statements are compared with the input apart
from all other memories. A manner, an instruction on the form of every answer, applies to every input. Preferences apply
only to requests, other instructions also to inputs of their domain: those that are close to them, or that ask for what
their form is about.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, NamedTuple
from uuid import UUID

from newton.cognition.questions.question_kinds import POINT, QuestionKind, QuestionReading, read_question
from newton.heart.identity.tenets import reduce_wish
from newton.memory.memory import StandingType
from newton.memory.search_types import ASSISTANT, RetrievedMemory
from newton.text.questions import is_one_sentence, is_only_question, opens_question, select_questions
from newton.text.words import extract_content_words

if TYPE_CHECKING:
    from newton.client.context import QuestionReport

# The least cosine similarity to a request. Within one domain, unrelated statements have less.
REASONS: Mapping[StandingType, str] = {
    "manner": "a standing wish on the form of every answer",
    "instruction": "a standing instruction that applies to the input",
    "preference": "a standing preference that applies to the input",
}
MIN_COSINE: Mapping[StandingType, float] = {"manner": -1.0, "instruction": 0.15, "preference": 0.25}
MIN_OTHER_COSINE = 0.28  # of an instruction to an input that is no request: memory may have many domains
REQUEST_SHARE, OTHER_SHARE = 0.2, 0.06  # of the tokens, for statements that apply to a request and to another input


# What a question asks for, and the words of an instruction on the form of such an answer.
_FORMS = tuple(
    (re.compile(asks, re.IGNORECASE), re.compile(says, re.IGNORECASE))
    for asks, says in (
        (r"\bwhen\b|\bwhat (?:date|day|time)\b|\bhow long\b", r"\b(?:dates?|times?|days?|deadlines?|timelines?)\b"),
        (
            r"\bhow (?:much|many)\b|\bwhat (?:amount|price)\b",
            r"\b(?:numbers?|amounts?|figures?|percent\w*|prices?|units?)\b",
        ),
    )
)


class StandingStatement(NamedTuple):
    """A memory that states an instruction or a preference. Its `similarity` is its cosine to the input."""

    found: RetrievedMemory
    standing: StandingType


def choose_standing(
    reading: QuestionReading, statements: Sequence[StandingStatement], *, text: str, max_tokens: int
) -> dict[UUID, str]:
    """Return the statements that apply to an input, best first, with the reasons: manners, instructions, preferences.

    Without vectors, an instruction or a preference applies if it shares a content word with the input. Of manners with
    the same words, one applies.
    """
    is_request = reading.kind == "standing"
    free_tokens, chosen = max_tokens * (REQUEST_SHARE if is_request else OTHER_SHARE), dict[UUID, str]()
    types: Sequence[StandingType] = ("manner", "instruction", *(("preference",) if is_request else ()))
    wishes = set[str]()
    for standing in types:
        for found, own in statements:
            wish = reduce_wish(found.spoken_text)
            if own != standing or found.summary_tokens > free_tokens or wish in wishes:
                continue
            if _applies(found, standing, text, is_request):
                free_tokens -= found.summary_tokens
                wishes.add(wish)
                chosen[found.memory_id] = REASONS[standing]
    return chosen


def _applies(found: RetrievedMemory, standing: StandingType, text: str, is_request: bool) -> bool:  # noqa: FBT001 (private)
    if standing == "manner":
        return True
    if not found.similarity:
        return not extract_content_words(text).isdisjoint(extract_content_words(found.spoken_text))
    if found.similarity < MIN_COSINE[standing]:
        return False
    return is_request or found.similarity >= MIN_OTHER_COSINE or _is_on_form(found.spoken_text, text)


def _is_on_form(statement: str, text: str) -> bool:
    """Return True if an instruction is about the form of the requested answer, such as how to write dates.

    >>> _is_on_form("Always write dates with the month first.", "When is the fair?")
    True
    """
    return any(asks.search(text) and says.search(statement) for asks, says in _FORMS)


PERSON = "User"  # the speaker of a message by the person, as its text names it
MAX_REQUEST_CHARACTERS = 120  # of a question without a question mark; a longer text mostly tells something
SUMMARY_SHARE = 0.1  # of the tokens, for summaries of sessions that come first in the context for a summary

SESSION_SUMMARY = "a summary of a session comes first"

CHRONOLOGICAL_KINDS: frozenset[QuestionKind] = frozenset({"timeline", "summary"})
ANSWERED_KINDS: frozenset[QuestionKind] = frozenset({"point", "list"})  # by single memories, each of which answers
BROAD_KINDS: frozenset[QuestionKind] = frozenset({"list", "timeline", "summary"})


class QuestionRules(NamedTuple):
    """Factors that a kind of question applies to the relevance of memories; 1.0 changes nothing.

    `spread` multiplies a memory once for every better memory of its session. `reply_factor` applies to replies if the
    question is about the person, `own_words_factor` if it asks what the person has said. With `later_turn_factor`, a
    message and the reply to it rank together, and the factor applies to all turns of a session except the best.
    """

    spread: float = 1.0
    reply_factor: float = 1.0
    own_words_factor: float = 1.0
    later_turn_factor: float | None = None


RULES: Mapping[QuestionKind, QuestionRules] = {
    "point": QuestionRules(reply_factor=0.85, own_words_factor=0.7),
    "list": QuestionRules(spread=0.98, reply_factor=0.85, own_words_factor=0.7),
    "timeline": QuestionRules(spread=0.95, reply_factor=0.7, own_words_factor=0.2),
    "summary": QuestionRules(later_turn_factor=0.9),
    "standing": QuestionRules(),
}


# What brings a memory into a context besides the search.
MemoryOrigin = Literal[
    "injected", "standing", "triggered", "named", "related", "salient", "recent", "recent_elsewhere", "contradicts",
    "artifact", "about",
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionGathering:
    """How memories were gathered for an input: the kind of question, the rules applied, and reasons by memory.

    `standing` are instructions and preferences that apply to the input. `origins` says how each memory that the search
    did not find, or that needs no search, became a candidate. `inherited` are the memories, found for a project, of the
    agent above it. `about` are the memories in the profile of a person with their sections; if `asks_person`, the input
    asks for them; if `asks_changes`, it asks what changed, and they did.
    """

    reading: QuestionReading = POINT
    rules: tuple[str, ...] = ()
    reasons: Mapping[UUID, str] = field(default_factory=dict[UUID, str])
    standing: frozenset[UUID] = frozenset()
    origins: Mapping[UUID, MemoryOrigin] = field(default_factory=dict[UUID, MemoryOrigin])
    inherited: frozenset[UUID] = frozenset()
    about: Mapping[UUID, str] = field(default_factory=dict[UUID, str])
    asks_person: bool = False
    asks_changes: bool = False

    @property
    def is_chronological(self) -> bool:
        return self.reading.kind in CHRONOLOGICAL_KINDS

    def as_json(self) -> "QuestionReport":
        return {"kind": self.reading.kind, "phrase": self.reading.phrase, "rules": list(self.rules)}


NO_GATHERING = QuestionGathering()


class RankedMemories(NamedTuple):
    """The memories, best first, and how they were gathered."""

    memories: Sequence[RetrievedMemory]
    gathering: QuestionGathering


def rank_for_question(
    reading: QuestionReading, memories: Sequence[RetrievedMemory], *, max_tokens: int
) -> RankedMemories:
    """Rank memories, best first, for the kind of question. No relevance exceeds the highest one before the ranking.

    If a summary is asked for, the best summaries of sessions come first, within a share of `max_tokens`.
    """
    rules = RULES[reading.kind]
    applied, reasons = list[str](), dict[UUID, str]()
    if rules.later_turn_factor is not None:
        memories = _prefer_best_turns(_rank_turns(memories), rules.later_turn_factor)
        applied.append("a message and the reply to it rank together, the best turn of each session first")
    factor = _select_reply_factor(reading, rules)
    if factor < 1:
        memories = [f._replace(relevance=f.relevance * factor) if is_reply(f) else f for f in memories]
        applied.append(f"replies count {factor:g}, because the question is about the person")
    if rules.spread < 1:
        memories = _spread(memories, rules.spread)
        applied.append(f"each further memory of a session counts {rules.spread:g} of the one before")
    if reading.kind == "summary":
        memories, reasons = _put_summaries_first(memories, max_tokens * SUMMARY_SHARE)
    ranked = sorted(memories, key=lambda f: (-f.relevance, f.memory_id))
    return RankedMemories(ranked, QuestionGathering(reading=reading, rules=tuple(applied), reasons=reasons))


def find_broad_kind(text: str) -> QuestionKind | None:
    """Return the kind of the question in a text if it asks for many memories."""
    kind = read_question(text).kind
    return kind if kind in BROAD_KINDS else None


def asks_memory(text: str, reading: QuestionReading) -> bool:
    """Return True for an input that asks about stored memories, and does not only tell or request something.

    >>> texts = ("what is my van", "I sold the van. What now?", "I sold it. What did I say of it?", "Where were we?")
    >>> [asks_memory(text, read_question(text)) for text in texts]
    [True, False, True, True]
    """
    is_short = len(text) <= MAX_REQUEST_CHARACTERS and is_one_sentence(text)
    if reading.kind != "standing" and (is_only_question(text) or (is_short and opens_question(text))):
        return True
    reading = reading if is_short else read_question(select_questions(text))
    return reading.asks_own_words or reading.asks_agent_words or reading.kind in CHRONOLOGICAL_KINDS


def is_reply(found: RetrievedMemory) -> bool:
    """Return True for a message by the assistant."""
    return found.kind == "exchange" and found.summary.partition(": ")[0].endswith(f"] {ASSISTANT}")


def _select_reply_factor(reading: QuestionReading, rules: QuestionRules) -> float:
    if reading.asks_own_words:
        return rules.own_words_factor
    return rules.reply_factor if reading.is_first_person else 1.0


def _rank_turns(memories: Sequence[RetrievedMemory]) -> list[RetrievedMemory]:
    """Give a message and its reply (the next message of the session) the higher relevance of the two."""
    by_place = {(f.thread_id, f.position): f for f in memories if f.kind == "exchange" and f.position is not None}

    def find_partner(found: RetrievedMemory) -> RetrievedMemory | None:
        if found.position is None:
            return None
        offset = -1 if is_reply(found) else 1
        partner = by_place.get((found.thread_id, found.position + offset))
        return partner if partner and is_reply(partner) != is_reply(found) else None

    pairs = [(found, find_partner(found)) for found in memories]
    return [f._replace(relevance=max(f.relevance, p.relevance)) if p else f for f, p in pairs]


def _spread(memories: Sequence[RetrievedMemory], factor: float) -> list[RetrievedMemory]:
    """Multiply the relevance of each memory by `factor` for every better memory of the same session."""
    counts, spread = Counter[UUID | None](), list[RetrievedMemory]()
    for found in sorted(memories, key=lambda f: (-f.relevance, f.memory_id)):
        if found.thread_id is None:
            spread.append(found)
            continue
        spread.append(found._replace(relevance=found.relevance * factor ** counts[found.thread_id]))
        counts[found.thread_id] += 1
    return spread


def _prefer_best_turns(memories: Sequence[RetrievedMemory], factor: float) -> list[RetrievedMemory]:
    """Multiply the relevance of all messages of a session by `factor`, except those of its best turn."""
    best: dict[UUID | None, float] = {}
    for found in memories:
        best[found.thread_id] = max(found.relevance, best.get(found.thread_id, 0.0))
    return [
        f._replace(relevance=f.relevance * factor) if f.thread_id and f.relevance < best[f.thread_id] else f
        for f in memories
    ]


def _put_summaries_first(
    memories: Sequence[RetrievedMemory], free_tokens: float
) -> tuple[Sequence[RetrievedMemory], dict[UUID, str]]:
    """Give the best summaries of sessions that fit into `free_tokens` the relevance of the best memory."""
    best = max((found.relevance for found in memories), default=0.0)
    first = dict[UUID, str]()
    for found in sorted(memories, key=lambda f: (-f.relevance, f.memory_id)):
        if found.kind == "episode" and found.summary_tokens <= free_tokens:
            free_tokens -= found.summary_tokens
            first[found.memory_id] = SESSION_SUMMARY
    return [f._replace(relevance=best) if f.memory_id in first else f for f in memories], first


def add_standing(
    ranked: RankedMemories, statements: Sequence[StandingStatement], chosen: Mapping[UUID, str]
) -> RankedMemories:
    """Add the chosen instructions and preferences, with the relevance of the best memory. `chosen` are the reasons."""
    if not chosen:
        return ranked
    best = max((found.relevance for found in ranked.memories), default=1.0)
    known = {found.memory_id for found in ranked.memories}
    added = [one.found for one in statements if one.found.memory_id in chosen.keys() - known]
    first = [f._replace(relevance=best) for f in (*ranked.memories, *added) if f.memory_id in chosen]
    others = [found for found in ranked.memories if found.memory_id not in chosen]
    gathering = replace(ranked.gathering, reasons={**ranked.gathering.reasons, **chosen}, standing=frozenset(chosen))
    return RankedMemories([*first, *others], gathering)
