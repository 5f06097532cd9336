"""Choice of the observations for an input: what the tools of the agent did that the input is about. Pure.

The result of a tool is evidence of the session in which the tool ran. It is chosen by its similarity to the input, by the
words that it shares with it, and by what the input asks for: a failure, or the result of a command. Without a reason it is
left out, also in its own session.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from newton.cognition.content_words import extract_content_words
from newton.cognition.request import SentMessages
from newton.cognition.sources.observations import FoundObservation
from newton.cognition.sources.signals import InputIntent, classify_intent
from newton.heart.statements.greetings import is_small_talk
from newton.memory.time_expressions import TimeRange

MAX_CHOSEN = 3  # of the session, and of other sessions
MAX_REPAIRS = 3  # of one failure in another session

# The least evidence, the cosine and a part of the shared words, of an observation of the session and of another one; less
# is enough if the input asks for what a tool returned.
LEXICAL_WEIGHT = 0.6
MIN_OWN, MIN_OWN_ASKED = 0.45, 0.28
MIN_OTHER, MIN_OTHER_ASKED = 0.55, 0.45
NEAR_BEST = 0.6  # as a share of the best one
FAILURE_BONUS = 0.15  # in the order, for a failed action and an input that asks for one

ALREADY_SENT = "the message itself is sent to the model"
TOO_MANY = f"not among the best {MAX_CHOSEN} tool results"

_RESULT_CUES = re.compile(
    r"\b(?:errors?|exceptions?|traceback|stack|panic|crash\w*|fail\w*|broke\w*|break\w*|red|wrong|bugs?|fix\w*|warnings?"
    r"|build\w*|compil\w*|lint\w*|tests?|coverage|logs?|outputs?|results?|command|exit code|deploy\w*|migrat\w*|install\w*"
    r"|returned|return|printed|print|complain\w*|report\w*|conflict\w*|time[ds]? out|timeout|refused|denied|killed"
    r"|cannot|can't|could not|couldn't|does not|doesn't|did not|didn't|not work\w*|stop(?:s|ped)?|hangs?|again)\b",
    re.IGNORECASE,
)
_FAILURE_CUES = re.compile(
    r"\b(?:errors?|exceptions?|traceback|panic|crash\w*|fail\w*|broke\w*|break\w*|red|wrong|bugs?|fix\w*|complain\w*"
    r"|problems?|conflict\w*|refused|denied|killed|time[ds]? out|timeout|not work\w*|stop(?:s|ped)?|hangs?|again)\b"
    r"|\b(?:cannot|can't|could not|couldn't|does not|doesn't|did not|didn't)\b",
    re.IGNORECASE,
)


class ObservationVerdict(NamedTuple):
    """Whether an observation is chosen for the context, and why."""

    is_chosen: bool
    reason: str


class _Candidate(NamedTuple):
    """An observation with its evidence, and its rank within the choice."""

    found: FoundObservation
    evidence: float
    rank: float


def choose_observations(
    found: Sequence[FoundObservation],
    text: str,
    *,
    sent: SentMessages | None = None,
    time_ranges: Sequence[TimeRange] = (),
) -> dict[UUID, ObservationVerdict]:
    """Choose or reject each observation for an input, with a reason."""
    intent = classify_intent(text)
    verdicts = {one.memory.memory_id: ObservationVerdict(False, ALREADY_SENT) for one in found if _is_sent(one, sent)}
    free = [one for one in found if one.memory.memory_id not in verdicts]
    own = [one for one in free if one.is_own]
    others = [one for one in free if not one.is_own]
    verdicts |= _choose_own(own, text, intent, time_ranges)
    verdicts |= _choose_others(others, text, intent, time_ranges)
    return verdicts


def _is_sent(one: FoundObservation, sent: SentMessages | None) -> bool:
    position = one.hit.position
    if sent is None or position is None:
        return False
    return one.hit.session_id == sent.session_id and sent.covers(position, position)


def _choose_own(
    found: Sequence[FoundObservation], text: str, intent: InputIntent, time_ranges: Sequence[TimeRange]
) -> Mapping[UUID, ObservationVerdict]:
    asked = _asks_for_result(text, intent)
    least = MIN_OWN_ASKED if asked else MIN_OWN
    ranked = _rank(found, text, intent)
    passed = {c.found.memory.memory_id: _describe(c) for c in _keep_near_best(ranked, least)}
    passed |= _find_timely(found, text, time_ranges)
    if not passed and (last := _find_last(found, text, intent)):
        passed = {last.memory.memory_id: "the last one that the input can mean"}
    return _limit(ranked, passed, where="a tool result of this session", least=least)


def _choose_others(
    found: Sequence[FoundObservation], text: str, intent: InputIntent, time_ranges: Sequence[TimeRange]
) -> Mapping[UUID, ObservationVerdict]:
    least = MIN_OTHER_ASKED if _asks_for_result(text, intent) else MIN_OTHER
    ranked = _rank(found, text, intent)
    passed = {c.found.memory.memory_id: _describe(c) for c in _keep_near_best(ranked, least)}
    passed |= _find_timely(found, text, time_ranges)
    verdicts = _limit(ranked, passed, where="a tool result of another session", least=least)
    return {**verdicts, **_choose_repairs(found, verdicts)}


def _choose_repairs(
    found: Sequence[FoundObservation], verdicts: Mapping[UUID, ObservationVerdict]
) -> dict[UUID, ObservationVerdict]:
    """Choose what was done after the best chosen failure: up to the first success of the same action, if there is one."""
    causes = [one for one in found if one.memory.outcome == "failure" and verdicts[one.memory.memory_id].is_chosen]
    for cause in causes:
        key = _action(cause)
        after = [one for one in found if one.hit.cause_id == cause.memory.memory_id]
        after.sort(key=lambda one: one.memory.memory_id)
        ends = [n for n, one in enumerate(after) if one.memory.outcome == "success" and key and _action(one) == key]
        steps = after[: ends[0] + 1] if ends else []
        if steps:
            reason = "a tool result of another session: done after a failure that the input is about"
            return {one.memory.memory_id: ObservationVerdict(True, reason) for one in steps[:MAX_REPAIRS]}
    return {}


def _action(one: FoundObservation) -> str:
    """Return what an event did, without its time and its result, to find another try of the same action."""
    return one.memory.summary.partition("] ")[2].partition(" · ")[0]


def _asks_for_result(text: str, intent: InputIntent) -> bool:
    return intent == "fix" or _RESULT_CUES.search(text) is not None


def _rank(found: Sequence[FoundObservation], text: str, intent: InputIntent) -> list[_Candidate]:
    """Return the observations with their evidence, best first. Of equal ones, the latest comes first."""
    asks_failure = intent == "fix" or _FAILURE_CUES.search(text) is not None
    candidates: list[_Candidate] = []
    for one in found:
        evidence = one.memory.similarity + LEXICAL_WEIGHT * one.memory.lexical
        bonus = FAILURE_BONUS if asks_failure and one.memory.outcome == "failure" else 0.0
        candidates.append(_Candidate(one, evidence, evidence + bonus))
    return sorted(candidates, key=lambda c: (-c.rank, -c.found.memory.memory_id.int))


def _keep_near_best(ranked: Sequence[_Candidate], least: float) -> list[_Candidate]:
    best = ranked[0].rank if ranked else 0.0
    return [c for c in ranked if c.rank >= NEAR_BEST * best and c.rank >= least]


def _find_timely(
    found: Sequence[FoundObservation], text: str, time_ranges: Sequence[TimeRange]
) -> dict[UUID, str]:
    """Return the observations of the times that the input names, if it asks for what happened then."""
    if not time_ranges or is_small_talk(text):
        return {}
    timely = [one for one in found if any(span.contains(one.memory.occurred_at) for span in time_ranges)]
    return {one.memory.memory_id: "of the time that the input names" for one in timely}


def _find_last(found: Sequence[FoundObservation], text: str, intent: InputIntent) -> FoundObservation | None:
    """Return the observation that an input means which names none: the last failure, or what was done last."""
    latest = sorted(found, key=lambda one: one.hit.age or 0)
    if intent == "fix":
        failed = [one for one in latest if one.memory.outcome == "failure"]
        return failed[0] if failed else None
    says_nothing = not extract_content_words(text) and not is_small_talk(text)
    return latest[0] if latest and says_nothing else None


def _describe(candidate: _Candidate) -> str:
    memory = candidate.found.memory
    return f"cosine {memory.similarity:.2f}, shared words {memory.lexical:.2f}"


def _limit(
    ranked: Sequence[_Candidate], passed: Mapping[UUID, str], *, where: str, least: float
) -> dict[UUID, ObservationVerdict]:
    verdicts, texts = dict[UUID, ObservationVerdict](), set[str]()
    chosen = 0
    for candidate in ranked:
        memory = candidate.found.memory
        if (reason := passed.get(memory.memory_id)) is None:
            verdict = ObservationVerdict(False, f"{where}: {candidate.rank:.2f} is less than the input needs, {least:.2f}")
        elif memory.dedup_text in texts:
            verdict = ObservationVerdict(False, f"{where}: repeats a later one")
        elif chosen >= MAX_CHOSEN:
            verdict = ObservationVerdict(False, f"{where}: {TOO_MANY}")
        else:
            chosen += 1
            texts.add(memory.dedup_text)
            verdict = ObservationVerdict(True, f"{where}: {reason}")
        verdicts[memory.memory_id] = verdict
    return verdicts
