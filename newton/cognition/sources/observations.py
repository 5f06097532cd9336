"""Search and selection of observations (events with tool output) for the context of an input.

An observation is selected by its similarity to the input, by words that both contain, and by what the input asks for: a
failure, or the result of a command. Without such a reason it is left out, even in the session where the tool ran.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from newton.cognition.request import ContextBuildRequest, SentMessages
from newton.cognition.sources.signals import asks_for_times, asks_only_about_time, classify_intent
from newton.cognition.sources.source_reader import embed_input
from newton.db.pool import Database
from newton.deadline import RequestDeadline
from newton.heart.events import event_store
from newton.heart.events.event_store import ObservationHit, ObservationQuery
from newton.ids import derive_model_id
from newton.memory.memory_reader import fetch_memories
from newton.memory.ranking import SINGLE_PRECISION
from newton.memory.search_types import RetrievedMemory
from newton.text.greetings import is_small_talk
from newton.text.time_expressions import TimeRange
from newton.text.words import extract_content_words

if TYPE_CHECKING:
    from newton.providers.embedding import Embedder

MAX_OWN = 50  # latest events of the session
MAX_FOUND = 10  # by each search in all sessions


class FoundObservation(NamedTuple):
    """An event with its evidence, and how it was found. The evidence has the precision of stored contexts."""

    memory: RetrievedMemory
    hit: ObservationHit

    @property
    def is_own(self) -> bool:
        """True if the event happened in the session of the input."""
        return self.hit.age is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationSource:
    """Reads events. If the embedder does not answer until the `deadline`, only words are compared."""

    db: Database
    embedder: "Embedder | None"
    deadline: RequestDeadline

    async def read(
        self, request: ContextBuildRequest, hidden_ids: Sequence[UUID], time_ranges: Sequence[TimeRange] = ()
    ) -> Sequence[FoundObservation]:
        """Return the last events of the session, and those of all sessions that match the input."""
        vector = await embed_input(self.embedder, request.input, self.deadline)
        query = ObservationQuery(
            agent_id=request.agent_id,
            session_id=request.session_id,
            text=request.input,
            vector=vector,
            model_id=derive_model_id(self.embedder.identity) if self.embedder else None,
            moment=request.as_of,
            excluded_ids=hidden_ids,
            max_own=MAX_OWN,
            max_found=MAX_FOUND,
            time_ranges=time_ranges,
        )
        async with self.db.transaction(request.agent_id) as tx:
            hits: dict[UUID, ObservationHit] = {}
            for hit in await event_store.find_observations(tx, query):
                known = hits.get(hit.memory_id)
                # what was done after a failure may match the input by itself
                hits[hit.memory_id] = known._replace(cause_id=known.cause_id or hit.cause_id) if known else hit
            if not hits:
                return ()
            found = await fetch_memories(tx, list(hits), agent_id=request.agent_id, moment=request.as_of)
        return [FoundObservation(_add_evidence(one, hits[one.memory_id]), hits[one.memory_id]) for one in found]


def _add_evidence(found: RetrievedMemory, hit: ObservationHit) -> RetrievedMemory:
    packed = SINGLE_PRECISION.pack(hit.similarity, hit.lexical, min(max(hit.similarity, hit.lexical, 0.0), 1.0))
    similarity, lexical, relevance = SINGLE_PRECISION.unpack(packed)
    return found._replace(similarity=similarity, lexical=lexical, relevance=relevance)


MAX_CHOSEN = 3  # of the session, and of other sessions
MAX_REPAIRS = 3  # steps after one failure in another session

# The least evidence of an observation of the session and of another one: the cosine and a part of the shared words.
# Less is enough if the input asks for what a tool returned.
LEXICAL_WEIGHT = 0.6
MIN_OWN, MIN_OWN_ASKED = 0.28, 0.22
MIN_OTHER, MIN_OTHER_ASKED = 0.5, 0.4
FULL_WORDS_COSINE = 0.15  # from which on shared words count in full, and below it in part: verbs are in all texts
NEAR_BEST = 0.6  # as a share of the best one
FAILURE_BONUS = 0.15  # for a failed action, and an input that asks for one
MORE_THAN_OWN = 1.2  # of another session, if the session has an observation that the input can mean
MAX_NAMED = 3  # content words of an input that may mean the last observation without naming it

ALREADY_SENT = "a tool result of this session: the model has it already"
OF_THIS_SESSION = "a tool result of this session"
OF_ANOTHER_SESSION = "a tool result of another session"

_FAILURE_WORDS = (
    r"errors?|exceptions?|traceback|stack ?trace|panic\w*|crash\w*|fail\w*|broke\w*|breaks?|red|wrong|bugs?|fix\w*"
    r"|complain\w*|problems?|conflicts?|refused|denied|killed|time[ds]? ?out|not work\w*|stop(?:s|ped)?|hangs?|again"
    r"|cannot|can['’]t|could(?: not|n['’]t)|does(?: not|n['’]t)|did(?: not|n['’]t)|is(?: not|n['’]t)|once more|back"
    r"|why (?:is|are|was|were|does|do|did|has|have)\b.{1,60}?\b(?:not|never|no)"
)
_RESULT_WORDS = (
    r"warnings?|build\w*|compil\w*|lint\w*|tests?|coverage|logs?|outputs?|results?|commands?|exit codes?|deploy\w*"
    r"|migrat\w*|install\w*|return(?:s|ed)?|print(?:s|ed)?|report(?:s|ed)?|answers|responds|numbers"
)
_ASKS_FAILURE = re.compile(rf"\b(?:{_FAILURE_WORDS})\b", re.IGNORECASE)
_ASKS_RESULT = re.compile(rf"\b(?:{_RESULT_WORDS})\b", re.IGNORECASE)
# A question on something that happened, such as "What did it return?" or "Does it compile now?".
_ASKS_PAST = re.compile(
    r"\b(?:did|was|were|went|happened|result|output|returned|said|shown?|printed|reported|found)\b|\bnow\b|\?\s*$",
    re.IGNORECASE,
)


class ObservationVerdict(NamedTuple):
    """The choice of an observation for a context, or its rejection, and the reason."""

    is_chosen: bool
    reason: str


class _InputCues(NamedTuple):
    """Whether an input asks for a repair (`is_fix`), for a failure, or for any result of a tool."""

    is_fix: bool
    asks_failure: bool
    asks_result: bool

    @classmethod
    def of(cls, text: str) -> "_InputCues":
        is_fix = classify_intent(text) == "fix"
        asks_failure = is_fix or _ASKS_FAILURE.search(text) is not None
        return cls(is_fix, asks_failure, asks_failure or _ASKS_RESULT.search(text) is not None)


class _Candidate(NamedTuple):
    """An observation with its score for the input."""

    found: FoundObservation
    score: float

    @property
    def memory_id(self) -> UUID:
        return self.found.memory.memory_id


def choose_observations(
    found: Sequence[FoundObservation],
    text: str,
    *,
    sent: SentMessages | None = None,
    time_ranges: Sequence[TimeRange] = (),
    takes_own: bool = False,
) -> dict[UUID, ObservationVerdict]:
    """Choose or reject each observation for an input, with a reason.

    Observations whose message is `sent` to the model are rejected; `takes_own` chooses all others of the session.
    """
    cues = _InputCues.of(text)
    known = [one for one in found if _is_sent(one, sent)]
    ranked = _rank([one for one in found if one not in known], asks_failure=cues.asks_failure)
    own = [candidate for candidate in ranked if candidate.found.is_own]
    others = [candidate for candidate in ranked if not candidate.found.is_own]
    own_reasons = _keep_near_best(own, MIN_OWN_ASKED if cues.asks_result else MIN_OWN)
    own_reasons = _add_failure(own, own_reasons, cues) or _find_last(own, text, cues)
    least = MIN_OTHER_ASKED if cues.asks_result else MIN_OTHER
    if own_reasons:
        least = max(least, MORE_THAN_OWN * own[0].score)
    other_reasons = _keep_near_best(others, least)
    timely = _find_timely(ranked, text, time_ranges, cues)
    verdicts = {one.memory.memory_id: _reject(ALREADY_SENT) for one in known}
    verdicts |= _judge(own, own_reasons | timely, where=OF_THIS_SESSION, takes_all=takes_own)
    verdicts |= _judge(others, other_reasons | timely, where=OF_ANOTHER_SESSION)
    return verdicts | _choose_repairs(others, verdicts)


def _is_sent(one: FoundObservation, sent: SentMessages | None) -> bool:
    if sent is None or one.hit.session_id != sent.session_id:
        return False
    position = one.hit.position
    return sent.has_events if position is None else sent.covers(position, position)


def _rank(found: Sequence[FoundObservation], *, asks_failure: bool) -> list[_Candidate]:
    """Return the observations, best first. Of equal ones, the latest comes first.

    A failure gets its bonus only if it matches the input at least weakly.
    """
    has_vectors = any(one.memory.similarity for one in found)
    candidates: list[_Candidate] = []
    for one in found:
        cosine = one.memory.similarity
        trust_in_words = min(max(cosine, 0.0) / FULL_WORDS_COSINE, 1.0) if has_vectors else 1.0
        evidence = max(cosine, 0.0) + LEXICAL_WEIGHT * trust_in_words * one.memory.lexical
        bonus = FAILURE_BONUS if asks_failure and evidence and one.memory.outcome == "failure" else 0.0
        candidates.append(_Candidate(one, evidence + bonus))
    return sorted(candidates, key=lambda c: (-c.score, -c.memory_id.int))


def _keep_near_best(ranked: Sequence[_Candidate], least: float) -> dict[UUID, str]:
    floor = max(NEAR_BEST * ranked[0].score, least) if ranked else least
    return {c.memory_id: _describe(c) for c in ranked if c.score >= floor}


def _describe(candidate: _Candidate) -> str:
    memory = candidate.found.memory
    return f"cosine {memory.similarity:.2f}, shared words {memory.lexical:.2f}"


def _find_timely(
    ranked: Sequence[_Candidate], text: str, time_ranges: Sequence[TimeRange], cues: _InputCues
) -> dict[UUID, str]:
    """Return the observations of the times that the input names, if it asks what happened then."""
    is_asked = asks_for_times(text, time_ranges) and (cues.asks_result or asks_only_about_time(text, time_ranges))
    times = {c.memory_id: c.found.memory.occurred_at for c in ranked} if time_ranges and is_asked else {}
    reason = "of the time that the input names"
    return {i: reason for i, moment in times.items() if any(span.contains(moment) for span in time_ranges)}


def _add_failure(own: Sequence[_Candidate], reasons: Mapping[UUID, str], cues: _InputCues) -> dict[UUID, str]:
    """Add the last failure of the session if the input asks for a failure and none is among the best observations."""
    failed = [c for c in own if c.found.memory.outcome == "failure"]
    if not (reasons and failed and cues.asks_failure) or any(c.memory_id in reasons for c in failed):
        return dict(reasons)
    last = min(failed, key=lambda c: c.found.hit.age or 0)
    return {last.memory_id: "the last failure, of which the input can ask", **reasons}


def _find_last(own: Sequence[_Candidate], text: str, cues: _InputCues) -> dict[UUID, str]:
    """Return the observation that an input without specific words means: the last failure, command or action.

    An input that does not ask for a result, such as "Go on", gets only an action that a trusted writer recorded.
    """
    words, latest = extract_content_words(text), sorted(own, key=lambda c: c.found.hit.age or 0)
    failed = [c for c in latest if c.found.memory.outcome == "failure"]
    asks_last = cues.asks_result and len(words) <= MAX_NAMED and _ASKS_PAST.search(text) is not None
    if cues.is_fix or asks_last:
        commands = [c for c in latest if c.found.hit.type == "shell_exec"] if asks_last else []
        return {c.memory_id: "the last one of which the input can ask" for c in (failed or commands)[:1]}
    says_nothing = not words and not is_small_talk(text)
    actions = [c for c in latest if not c.found.memory.quarantined] if says_nothing else []
    return {c.memory_id: "the last one, and the input names nothing" for c in actions[:1]}


def _judge(
    ranked: Sequence[_Candidate], reasons: Mapping[UUID, str], *, where: str, takes_all: bool = False
) -> dict[UUID, ObservationVerdict]:
    """Choose the best observations that have a reason; reject all others and repeated texts."""
    verdicts, texts = dict[UUID, ObservationVerdict](), set[str]()
    for candidate in ranked:
        text = candidate.found.memory.dedup_text
        reason = reasons.get(candidate.memory_id) or ("the budget is to be filled" if takes_all else None)
        if reason is None:
            verdict = _reject(f"{where}: too far from the input ({_describe(candidate)})")
        elif text in texts:
            verdict = _reject(f"{where}: repeats a better one")
        elif len(texts) >= MAX_CHOSEN and not takes_all:
            verdict = _reject(f"{where}: not among the best {MAX_CHOSEN}")
        else:
            texts.add(text)
            verdict = ObservationVerdict(is_chosen=True, reason=f"{where}: {reason}")
        verdicts[candidate.memory_id] = verdict
    return verdicts


def _reject(reason: str) -> ObservationVerdict:
    return ObservationVerdict(is_chosen=False, reason=reason)


def _choose_repairs(
    others: Sequence[_Candidate], verdicts: Mapping[UUID, ObservationVerdict]
) -> dict[UUID, ObservationVerdict]:
    """Choose the events after the best chosen failure of another session, up to the success of the same action."""
    chosen = [c.found for c in others if verdicts[c.memory_id].is_chosen and c.found.memory.outcome == "failure"]
    verdict = ObservationVerdict(is_chosen=True, reason=f"{OF_ANOTHER_SESSION}: done after a failure, until it worked")
    for cause in chosen:
        after = [c.found.memory for c in others if c.found.hit.cause_id == cause.memory.memory_id]
        steps = sorted(after, key=lambda memory: memory.memory_id)[:MAX_REPAIRS]
        action = _name_action(cause.memory.summary)
        ends = [n for n, one in enumerate(steps) if one.outcome == "success" and _name_action(one.summary) == action]
        if ends:
            return {memory.memory_id: verdict for memory in steps[: ends[0] + 1]}
    return {}


def _name_action(line: str) -> str:
    """Return the action in the line of an event, without time and result, to find other attempts at it."""
    return line.partition("] ")[2].partition(" · ")[0]
