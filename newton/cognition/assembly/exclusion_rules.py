"""Rules that exclude a candidate from a context even if it fits: its state, weak evidence, repetition. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import lru_cache
from uuid import UUID

from newton.cognition.assembly.artifact_selection import ALREADY_SENT
from newton.cognition.assembly.assembly_input import AssemblyInput
from newton.cognition.assembly.sections import IdentitySection
from newton.cognition.assembly.working_context import find_state_reason
from newton.cognition.scoring.reply_usage import echoes, restates
from newton.cognition.scoring.score import FEATURE_NAMES, ScoredMemory
from newton.cognition.sources.observations import ObservationVerdict
from newton.cognition.sources.signals import asks_for_whole_range
from newton.dialogue.task_tree import is_in_ranges
from newton.heart.identity.tenets import reduce_wish
from newton.memory.memory import past_reason
from newton.memory.memory_reader import DATED_KINDS
from newton.memory.search_types import ASSISTANT, RetrievedMemory
from newton.text.questions import remove_questions
from newton.text.stems import TERM
from newton.text.time_expressions import TimeRange, is_of_times, remove_times
from newton.text.words import extract_content_words, is_empty_remark

REPEATS_STATED_FACT = "its fact says the same"
TIMELY_INDEX = FEATURE_NAMES.index("timely")
IS_FACT_SOURCE = "a fact that was made of it is in the context"

_PERSON = "User"  # the speaker of a message of the person, if no name is known
# A fact has no date by which "yesterday" is understood, so the message is needed too.
_RELATIVE_TIME = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|now|just|recently|lately|ago|last|next"
    r"|this (?:morning|evening|week|month|year|weekend)|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b",
    re.IGNORECASE,
)
_OPENING = re.compile(
    r"^(?:(?:ok|okay|hi|hello|hey|oh|also|and|so|well|btw|by the way|fyi|please|remember|note|just so you know"
    r"|yes|yeah|no)\b(?: that\b)?[\s,:;!.–—-]+)+",
    re.IGNORECASE,
)


class MemoryDeduplicator:
    """Rejects memories that repeat an identity line or a memory that was checked earlier."""

    def __init__(self, identity: IdentitySection, shown: Iterable[RetrievedMemory]) -> None:
        self._identity_reasons = {reduce_wish(tenet.text): "already in the identity" for tenet in identity.shown}
        removed = map(reduce_wish, identity.removed_texts)
        self._identity_reasons |= dict.fromkeys(removed, "repeats a removed line of the identity")
        self._shown_texts = {found.dedup_text for found in shown}

    def find_duplicate_reason(self, found: RetrievedMemory, *, other_reason: str | None = None) -> str | None:
        """Return why the memory is a duplicate, else `other_reason` (another reason to reject it, or None).

        If there is no reason at all, its text is recorded, so that later memories with the same text are rejected.
        """
        if self._identity_reasons and (reason := self._identity_reasons.get(reduce_wish(found.spoken_text))):
            return reason
        if found.kind == "relation":  # where its fact is shown, the relation is left out later, not the fact
            return other_reason
        if found.dedup_text in self._shown_texts:
            return "repeats a better candidate"
        if other_reason is None:
            self._shown_texts.add(found.dedup_text)
        return other_reason


def find_repeated_messages(memories: Iterable[RetrievedMemory]) -> Set[UUID]:
    """Return the ids of the messages that say no more than a fact among the memories that was extracted from them.

    A message with a relative time, such as "yesterday", is not among them, because it needs its own date. Of the
    assistant, they are those that say no more than the facts and the person's messages among the memories, or only take
    up the message before them.
    """
    found = list(memories)
    messages = [one for one in found if one.kind == "exchange"]
    facts = [one for one in found if one.kind == "fact"]
    if not messages:
        return frozenset()
    stating = {(f.stated_thread_id, f.stated_position, _reduce(f.spoken_text)) for f in facts if f.stated_thread_id}
    texts = {_reduce(fact.spoken_text) for fact in facts}
    replies = [one for one in messages if _find_speaker(one) == ASSISTANT]
    told = [one.spoken_text for one in found if one.kind in ("fact", "exchange") and one not in replies]
    restating = {one.memory_id for one in replies if restates(one.spoken_text, map(remove_questions, told))}
    said = {(one.thread_id, one.position): one.spoken_text for one in messages}
    before = [(one, said.get((one.thread_id, (one.position or 0) - 1), "")) for one in replies]
    restating |= {one.memory_id for one, answered in before if answered and echoes(one.spoken_text, answered)}
    return {one.memory_id for one in messages if _is_stated(one, stating, texts)} | restating


def _find_speaker(message: RetrievedMemory) -> str:
    return message.summary.partition("] ")[2].partition(": ")[0]


def find_fact_sources(memories: Sequence[RetrievedMemory]) -> Set[UUID]:
    """Return the ids of the messages from which facts among the memories were extracted, even if they say more."""
    sources = {(f.stated_thread_id, f.stated_position) for f in memories if f.kind == "fact" and f.stated_thread_id}
    return {one.memory_id for one in memories if one.kind == "exchange" and (one.thread_id, one.position) in sources}


def _is_stated(message: RetrievedMemory, stating: Set[tuple[UUID | None, int | None, str]], texts: Set[str]) -> bool:
    text = _reduce(message.spoken_text)
    if text not in texts or _RELATIVE_TIME.search(message.spoken_text):
        return False
    speaker = _find_speaker(message)
    if speaker == ASSISTANT:
        return False
    # two people may say the same of themselves
    return speaker == _PERSON or (message.thread_id, message.position, text) in stating


@lru_cache(maxsize=4_096)
def _reduce(text: str) -> str:
    return " ".join(TERM.findall(_OPENING.sub("", text).casefold()))


# Minimum cosine or lexical evidence of a procedure; without it, procedures would be in every context.
MIN_PROCEDURE_EVIDENCE = 0.35
# A procedure found by words needs this cosine too, if it is known: a long one has the words of many inputs.
MIN_PROCEDURE_COSINE = 0.3

LIKE_QUESTION_MIN_COSINE = 0.6
MAX_LIKE_QUESTION_WORDS = 14  # a longer message that ends with a question mostly says something too

# Maximum of the best evidence. More means that a memory repeats the words of the input, as a summary of an earlier
# conversation does; it must not raise the minimum evidence of the others.
FULL_EVIDENCE = 1.0

# Kinds of verbatim text: they need no minimum evidence unless the context is adaptive.
VERBATIM_KINDS = frozenset({"exchange", "passage"})


def find_exclusion_reason(found: RetrievedMemory, assembly_input: AssemblyInput, *, focus_ids: Set[UUID]) -> str | None:
    """Return why the memory is excluded from this context, or None. `focus_ids` are shown in Current Focus already."""
    if assembly_input.gathering.asks_changes:
        return None if found.memory_id in assembly_input.gathering.about else "did not change in the requested time"
    is_asked = assembly_input.gathering.asks_person and found.memory_id in assembly_input.gathering.about
    reason = _find_state_reason(found, assembly_input.observations.get(found.memory_id))
    if reason and not is_asked:
        return reason
    if found.memory_id in focus_ids:
        return "already in Current Focus"
    if found.memory_id in assembly_input.tasks.task_ids:
        return "already in Tasks"
    if assembly_input.sent_messages and assembly_input.sent_messages.contains(found) and not is_asked:
        return ALREADY_SENT
    is_injected = found.memory_id in assembly_input.injected
    return None if is_injected else _find_unwanted_reason(found, assembly_input)


def _find_state_reason(found: RetrievedMemory, verdict: ObservationVerdict | None) -> str | None:
    """Return why the state of the memory excludes it, or None.

    A chosen observation (event with tool output) and a message are shown although they are quarantined: of the
    quarantined messages, the search finds only replies of the session itself.
    """
    if verdict and not verdict.is_chosen:
        return verdict.reason
    is_shown = verdict is not None or found.kind == "exchange"
    return past_reason(found.kind, found.state) if is_shown else find_state_reason(found)


def _find_unwanted_reason(found: RetrievedMemory, assembly_input: AssemblyInput) -> str | None:
    if found.repeats_query(assembly_input.input):
        return "repeats the input"
    if found.outcome == "failure" and not assembly_input.profile.reach.failures:
        return "its outcome is failure, which the profile excludes"
    fills = not assembly_input.relevance_floor.minimum  # any memory that fits is asked for
    if found.is_only_question and (
        assembly_input.is_adaptive or (not fills and _is_like_question(found, assembly_input.input))
    ):
        return "only a question"
    if found.kind == "exchange" and not fills and is_empty_remark(found.spoken_text):
        return "only greets, thanks or agrees"
    is_triggered = found.memory_id in assembly_input.triggered
    if found.kind == "procedure" and not is_triggered and not is_near_procedure(found):
        return "neither triggered by the input nor similar to it"
    return None


def _is_like_question(found: RetrievedMemory, text: str) -> bool:
    """Return True if a stored question is nearly the same as the input, so that it cannot answer it."""
    words = extract_content_words(found.spoken_text)
    is_close = found.similarity >= LIKE_QUESTION_MIN_COSINE and found.word_count <= MAX_LIKE_QUESTION_WORDS
    return is_close or bool(words and words <= extract_content_words(text))


def is_too_far(found: RetrievedMemory, assembly_input: AssemblyInput, best_evidence: float) -> bool:
    """Return True if a memory has too little search evidence; a derived one needs a share of `best_evidence`."""
    if found.memory_id in assembly_input.unranked or assembly_input.relevance_floor.compares_answers:
        return False
    profile, min_evidence = assembly_input.profile, assembly_input.min_evidence
    if found.kind in VERBATIM_KINDS:
        is_weak = found.relevance < profile.near or found.evidence_score < min_evidence
        return assembly_input.is_adaptive and is_weak
    return found.evidence_score < max(profile.floor * min(best_evidence, FULL_EVIDENCE), min_evidence)


def find_floor_reason(scored: ScoredMemory, assembly_input: AssemblyInput, best_fact: float) -> str | None:
    """Return why the memory's probability of being relevant is too low, or None. `best_fact` is that of the best fact.

    The minimum does not apply to memories found by name, time or trigger, or to messages of the session, except those
    of ended tasks, because the context shows the results of these tasks.
    """
    found = scored.found
    is_of_session = assembly_input.session_id is not None and found.thread_id == assembly_input.session_id
    is_of_session = is_of_session and not is_in_ranges(found.position, assembly_input.ended_ranges)
    if is_of_session or found.memory_id in assembly_input.unranked or found.memory_id in assembly_input.triggered:
        return None
    return assembly_input.relevance_floor.find_reason(scored, best_fact=best_fact)


def find_needless(
    ordered: Sequence[ScoredMemory], rejected: Set[UUID], assembly_input: AssemblyInput
) -> Mapping[UUID, str]:
    """Return the candidates, of those that are not `rejected`, that the need of the input leaves out, with the reasons.

    The need decides on what a search found; what was put into the session, triggered or asked for by name stays.
    """
    gathering = assembly_input.gathering
    kept = {*assembly_input.injected, *assembly_input.triggered, *assembly_input.observations, *gathering.standing}
    kept |= {*gathering.about, *rejected}
    free = [s for s in ordered if s.found.memory_id not in kept and not s.features[TIMELY_INDEX]]
    searched = [s for s in free if assembly_input.session_id is None or s.found.thread_id != assembly_input.session_id]
    return assembly_input.relevance_floor.find_needless(searched, gathering.reading.kind)


def is_near_procedure(found: RetrievedMemory) -> bool:
    """Return whether a procedure is similar to the input by vector, or by words without a low cosine similarity."""
    if found.similarity >= MIN_PROCEDURE_EVIDENCE:
        return True
    has_words = found.lexical >= MIN_PROCEDURE_EVIDENCE
    return has_words and (not found.similarity or found.similarity >= MIN_PROCEDURE_COSINE)


def find_out_of_range(ordered: Sequence[ScoredMemory], assembly_input: AssemblyInput) -> Set[UUID]:
    """Return the ids of dated memories and facts outside of the input's time ranges.

    Return none unless weak matches are left out (the context is adaptive), the input asks for a whole range, and at
    least one memory is within it.
    """
    if (
        not assembly_input.is_adaptive
        or assembly_input.gathering.asks_changes
        or not asks_for_whole_range(assembly_input.input, assembly_input.time_ranges)
    ):
        return frozenset()
    ranges, kinds = assembly_input.time_ranges, (*DATED_KINDS, "fact")
    dated = [s for s in ordered if s.found.kind in kinds and s.found.memory_id not in assembly_input.injected]
    by_mention = not extract_content_words(remove_times(assembly_input.input, ranges))
    outside = {s.found.memory_id for s in dated if not _is_within(s, ranges, by_mention=by_mention)}
    return outside if len(outside) < len(dated) else frozenset()


def _is_within(scored: ScoredMemory, ranges: Sequence[TimeRange], *, by_mention: bool) -> bool:
    """Return whether a memory is of one of the ranges; `by_mention`, a statement by what it mentions, not its own time.

    "What did we decide in October" asks for what was said then, "What happened in October" for what was then.
    """
    found = scored.found
    if found.kind == "fact" or (by_mention and found.kind == "exchange"):
        is_told_then = not by_mention and any(span.contains(found.told_at) for span in ranges)
        return is_told_then or is_of_times(found.spoken_text, ranges, moment=found.told_at)
    return bool(scored.features[TIMELY_INDEX])
