"""The query, scope and result of a search for memories. Pure."""

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from newton.db.pool import Database
from newton.deadline import NO_DEADLINE, RequestDeadline
from newton.memory.memory import ARCHIVED, PAST_STATES, Kind, Trust, derive_importance
from newton.memory.ranking import (
    DEFAULT_WEIGHTS,
    NO_PREFERENCE,
    PreferredMemories,
    RankingWeights,
    evidence_score,
)
from newton.memory.representations import DATE_PREFIX_LENGTH, keep_lines, one_line, split_date_prefix
from newton.text.questions import has_only_questions, is_only_question, lacks_answer
from newton.text.sentences import SENTENCE_END
from newton.text.time_expressions import TimeRange, remove_resolved_dates
from newton.text.words import extract_content_words

if TYPE_CHECKING:
    from newton.providers.embedding import Vector

ASSISTANT = "Assistant"  # the speaker of a reply, as the text of a message names it

WIDEN_FACTOR = 4  # of the limits of a search that is widened

MAX_QUERY_CHARS = 8_000  # of a text that is searched for; in a long text, a question stands at one of the ends
_NO_QUOTES = str.maketrans("", "", "'’\"“”")

MAX_REPEATED_REPLY = 600  # characters; longer replies are compared word by word, with all their words
# Words by which two replies of an assistant with the same content differ, without quotation marks.
_REPLY_FILLER_TEXT = """
a again ah alright am an and at but course for great hi hello i im just kindly me moment momentarily my now of oh ok
okay please really right so sorry still sure thanks thank that the there this unfortunately very well you your
"""
_REPLY_FILLERS = frozenset(_REPLY_FILLER_TEXT.split())
_FULL_FORMS = {"couldnt": "could not", "cant": "can not", "cannot": "can not", "didnt": "did not", "wont": "will not"}
_SPOKEN_WORD = re.compile(r"[^\W_]+(?:[.,:][^\W_]+)*")

CLOSE_COSINE = 0.25  # below it, texts of the bundled model are unrelated
LIKELY_ANSWER = 0.5  # probability from which a memory answers more likely than not


class SearchLimits(NamedTuple):
    """The limits for one kind of memory: how many each search returns, and how many the merged result keeps."""

    searched: int
    kept: int


class BestWindow(NamedTuple):
    """The window (consecutive sentences) of a long text that is most similar to the query.

    `tokens` counts it as a line of a context.
    """

    position: int
    text: str
    tokens: int


class RetrievedMemory(NamedTuple):
    """A memory that a search found, with the evidence for it.

    `similarity` is its cosine similarity to the query, `lexical` its BM25 score as a share of the highest possible one,
    and `relevance` the combination of both, divided by that of the best memory found.

    The fields before `similarity` and after `relevance` are the columns of the query `get_memories`, in its order,
    without its similarities. Those after `relevance` are set only for facts, `changed` also for messages.
    `renewed_at` is the time at which the fact was last stated again, `contradicted_ids` are facts that contradict it,
    and `changed` is what the message states that has changed since, or what replaced the fact. `stated_thread_id` and
    `stated_position` are set for a fact that a single message states, and say which; `said_at` is the time of its first
    message. `word_trust` is set for a fact that a person confirmed, and for a relation: the highest trust of those who
    state it.
    `prefix_length`, `full_text` and `full_tokens` are set for a long text, and `window` is the part that answers best.
    `is_inherited` is True if a search for a project found it in the memory of the project's parent.

    It is a tuple, because hundreds are created for each context and a dataclass takes ten times as long.
    """

    memory_id: UUID
    kind: Kind
    state: str
    micro: str
    summary: str
    micro_tokens: int
    summary_tokens: int
    word_count: int
    confidence: float | None
    importance: float | None
    outcome: str | None
    uses: int
    occurred_at: datetime
    created_at: datetime
    accessed_at: datetime | None
    confirmed_at: datetime | None
    trust: Trust
    quarantined: bool
    ref: str | None
    thread_id: UUID | None
    position: int | None
    similarity: float = 0.0
    lexical: float = 0.0
    relevance: float = 0.0
    renewed_at: datetime | None = None
    valid_to: datetime | None = None
    attribute: str | None = None
    contradicted_ids: Sequence[UUID] = ()
    changed: str | None = None
    prefix_length: int = 0
    full_text: str | None = None
    full_tokens: int | None = None
    stated_thread_id: UUID | None = None
    stated_position: int | None = None
    said_at: datetime | None = None
    word_trust: Trust | None = None
    window: "BestWindow | None" = None
    is_inherited: bool = False

    @property
    def is_long(self) -> bool:
        """True if the text is longer than a summary, so that windows of it (groups of sentences) are searched too."""
        return self.full_tokens is not None

    @property
    def prefix(self) -> str:
        """The label or date with which all forms of the text begin."""
        return self.summary[: self.prefix_length]

    @property
    def full_line(self) -> str | None:
        """The whole text; None if it is no longer than a summary may be, or archived."""
        return None if self.full_text is None else self.prefix + keep_lines(self.full_text)

    @property
    def window_line(self) -> str | None:
        """The window that answers the query best; None if there is none."""
        return self.prefix + self.window.text if self.window else None

    @property
    def outdated(self) -> str | None:
        """What the memory says that has changed since; of an episode or a summary, the statements that it repeats."""
        if self.changed is None or self.kind in ("exchange", "fact"):
            return self.changed
        said = extract_content_words(self.spoken_text)
        facts = SENTENCE_END.split(self.changed)
        return " ".join(one for one in facts if frozenset() < _list_content_words(one) <= said) or None

    @property
    def told_at(self) -> datetime:
        """The time at which the memory occurred.

        For a fact: its last statement or the start of its validity, the later one.
        """
        return self.renewed_at or max(self.said_at or self.occurred_at, self.occurred_at)

    @property
    def effective_importance(self) -> float:
        """The importance in [0, 1]: as a person set it, otherwise derived from kind, state, outcome and use count."""
        if self.importance is not None:
            return self.importance
        return derive_importance(self.kind, self.state, self.outcome, self.uses)

    @property
    def evidence_score(self) -> float:
        """The weighted sum of cosine similarity and lexical share, without the evidence of neighbouring messages."""
        return evidence_score(self.kind, self.similarity, self.lexical, self.word_count)

    @property
    def spoken_text(self) -> str:
        """The text without date and speaker of a message, label of an artifact, and resolved dates of a fact."""
        if self.kind == "fact":
            return remove_resolved_dates(self.summary)
        return self.summary.partition(": ")[2] if self.kind in ("exchange", "artifact") else self.summary

    @property
    def day(self) -> str | None:
        """The date with which both short forms begin; None if they do not."""
        day = split_date_prefix(self.summary)[0]
        return day if day and self.micro[:DATE_PREFIX_LENGTH] == self.summary[:DATE_PREFIX_LENGTH] else None

    @property
    def dedup_text(self) -> str:
        """The text by which duplicates are found: two memories with an equal one are duplicates.

        It has the speaker, but no date, time, quotation marks and final punctuation. That of a short reply of the
        assistant has no polite words either.
        """
        return _reduce_text(self.kind, self.summary)

    @property
    def is_only_question(self) -> bool:
        """True if the memory only asks, only says that an answer is unknown, or summarizes only questions."""
        if self.kind == "episode":
            return has_only_questions(self.spoken_text)
        if self.kind != "exchange":
            return False
        return _tells_nothing(self.summary)

    def repeats_query(self, text: str) -> bool:
        """Return whether this is a message with the same text as the query, such as the same question asked before."""
        return self.kind == "exchange" and _fold_spoken(self.summary) == _fold_case(text)


# The caches below are of short forms: a turn judges the same memories as the turn before, and each several times.


def _list_content_words(fact: str) -> frozenset[str]:
    return extract_content_words(remove_resolved_dates(fact))


@lru_cache(maxsize=4_096)
def _tells_nothing(summary: str) -> bool:
    speaker, _, text = summary.partition(": ")
    return is_only_question(text) or (speaker.endswith(ASSISTANT) and lacks_answer(text))


@lru_cache(maxsize=4_096)
def _fold_spoken(summary: str) -> str:
    return summary.partition(": ")[2].casefold()


@lru_cache(maxsize=4_096)
def _reduce_text(kind: Kind, summary: str) -> str:
    """Return the text of a memory without what does not tell it from a duplicate."""
    text = summary.partition("] ")[2] if kind in ("exchange", "event") else remove_resolved_dates(summary)
    if kind == "exchange" and len(text) <= MAX_REPEATED_REPLY and text.startswith(f"{ASSISTANT}: "):
        return _reduce_reply(text)
    return text.casefold().translate(_NO_QUOTES).rstrip(" .,;:!?…")


def _reduce_reply(text: str) -> str:
    """Return the words of a reply that say something, in their order. Numbers, names and negations are among them.

    >>> replies = ("Sorry, I couldn't reach it. Please try again.", "I am sorry, I could not reach it - try again!")
    >>> {_reduce_reply(reply) for reply in replies}
    {'could not reach it try'}
    """
    words: list[str] = _SPOKEN_WORD.findall(text.casefold().translate(_NO_QUOTES))
    told = " ".join(_FULL_FORMS.get(word, word) for word in words if word not in _REPLY_FILLERS)
    return told or text.casefold()


@lru_cache(maxsize=8)  # hundreds of memories are compared with the same input
def _fold_case(text: str) -> str:
    return one_line(text).casefold()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallQuery:
    """The text to search for, and, if it was embedded, its vectors and the id of the embedding model.

    `widened_from` is the original question if the text has further words, such as the goal of a task. `vector`, by the
    embedding model, is close to texts that say the same; `search_vector` is close to texts that answer the question.
    """

    text: str
    vector: "Vector | None" = None
    search_vector: "Vector | None" = None
    model_id: UUID | None = None
    widened_from: str | None = None

    @property
    def question(self) -> str:
        """The question that the memories shall answer: `widened_from`, else the text."""
        return self.text if self.widened_from is None else self.widened_from

    @property
    def is_encoded(self) -> bool:
        """True if both vectors are known and differ: then `search_vector` is from an encoder trained for questions."""
        vectors = (self.vector, self.search_vector)
        return all(one is not None for one in vectors) and self.vector is not self.search_vector

    def add_text_vector(self, embedded: "RecallQuery") -> "RecallQuery":
        """Return the query with the vector of `embedded`: the same text, encoded by the embedding model.

        It may have none.
        """
        return replace(self, vector=embedded.vector, model_id=self.model_id or embedded.model_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallResult:
    """The memories found, best first, and what is known about the searches.

    `in_time_range` are the ids of those in the requested times. `missing` maps the name of each search that failed to
    the reason. `contradictions` are facts that were not found, but contradict one of the memories. `known_share` is the
    share of the query's words that occur in any memory, weighted by their rarity. `text_count` is the number of texts
    searched, without procedures. `probabilities` are those that a memory answers the query, empty if they were not
    estimated. `answer_similarities` are the cosines of the memories with the vector of the search, empty if that is
    the vector of the query's text, with which their `similarity` is computed.
    """

    query: RecallQuery
    memories: Sequence[RetrievedMemory]
    missing: Mapping[str, str]
    in_time_range: Set[UUID] = frozenset()
    contradictions: Sequence[RetrievedMemory] = ()
    known_share: float = 0.0
    text_count: int = 0
    probabilities: Mapping[UUID, float] = field(default_factory=dict[UUID, float])
    answer_similarities: Mapping[UUID, float] = field(default_factory=dict[UUID, float])

    def find_answer_similarity(self, found: RetrievedMemory) -> float:
        """Return the cosine of a memory with the vector that was searched for."""
        return self.answer_similarities.get(found.memory_id, found.similarity)

    def find_probability(self, memory_id: UUID) -> float | None:
        """Return the probability that a memory answers the query, to four decimals; None if it was not estimated."""
        probability = self.probabilities.get(memory_id)
        return None if probability is None else round(probability, 4)

    @property
    def has_match(self) -> bool:
        """True if a memory has a word of the query, is close to its meaning, or answers it more likely than not."""
        return any(
            found.lexical > 0
            or found.similarity >= CLOSE_COSINE
            or self.probabilities.get(found.memory_id, 0.0) >= LIKELY_ANSWER
            for found in self.memories
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySearch:
    """The scope and the limits of a search.

    Quarantined (not yet confirmed) memories are found only if they are of `quarantined_kinds` or among `shown_ids`.
    Memories in `excluded_states` and `excluded_ids` are left out. The words of `uncounted_ids` do not count as known
    words: a message that asks for something is no evidence that memory contains it. With `moment`, memories are
    searched as of that moment, and `superseded_ids` were superseded then. Memories in the `time_ranges` are found even
    without other evidence. The `preferred` memories rank higher. Embedding and searches share the time until the
    `deadline`.
    """

    db: Database
    agent_id: UUID
    limits: Mapping[Kind, SearchLimits]
    quarantined_kinds: Set[Kind] = frozenset()
    shown_ids: Sequence[UUID] = ()
    excluded_states: Set[str] = frozenset({*PAST_STATES, ARCHIVED})
    moment: datetime | None = None
    excluded_ids: Sequence[UUID] = ()
    uncounted_ids: Sequence[UUID] = ()
    superseded_ids: Sequence[UUID] = ()
    time_ranges: Sequence[TimeRange] = ()
    preferred: PreferredMemories = NO_PREFERENCE
    deadline: RequestDeadline = NO_DEADLINE
    weights: RankingWeights = DEFAULT_WEIGHTS

    @property
    def query_arguments(self) -> dict[str, object]:
        """The parameters that the SQL queries of all searches share."""
        return {
            "agent_id": self.agent_id,
            "kinds": list(self.limits),
            "limits": [width.searched for width in self.limits.values()],
            "quarantined": list(self.quarantined_kinds),
            "past_states": list(self.excluded_states) if self.moment is None else [],
            "excluded_ids": self.excluded_ids,
            "shown_ids": self.shown_ids,
        }

    def widen(self) -> "MemorySearch":
        """Return the same search with limits multiplied by WIDEN_FACTOR."""
        factor = WIDEN_FACTOR
        limits = {kind: SearchLimits(w.searched * factor, w.kept * factor) for kind, w in self.limits.items()}
        return replace(self, limits=limits)


def shorten_query(text: str) -> str:
    """Return the beginning and the end of a query longer than `MAX_QUERY_CHARS`; a shorter query unchanged.

    Words are not divided, so that no part of a word is searched for.
    """
    if len(text) <= MAX_QUERY_CHARS:
        return text
    half = MAX_QUERY_CHARS // 2 - 1
    start, end = text[:half], text[-half:]
    return f"{start.rsplit(None, 1)[0]}\n\n{end.split(None, 1)[-1]}"
