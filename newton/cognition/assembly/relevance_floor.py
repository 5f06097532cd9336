"""The minimum probability of being relevant that a memory needs for a context. Pure."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from uuid import UUID

from newton.cognition.questions.needs import Need, read_need
from newton.cognition.questions.question_kinds import QuestionKind
from newton.cognition.questions.question_rules import ANSWERED_KINDS
from newton.cognition.relevance_model import NO_CORRECTION, AnswerCorrection, RelevanceModel
from newton.cognition.request import ContextBuildRequest
from newton.cognition.scoring.candidates import CandidateSet
from newton.cognition.scoring.relevance import MIN_QUESTION, AnswerEstimate, estimate_sufficiency
from newton.cognition.scoring.score import FEATURE_NAMES, ScoredMemory
from newton.cognition.sources.gathered_data import GatheredSources
from newton.content.frames import Frame
from newton.memory.memory import Kind
from newton.memory.search_types import RetrievedMemory

PROBABILITY_INDEX, ANSWER_INDEX = FEATURE_NAMES.index("probability"), FEATURE_NAMES.index("answers")

FACT_FLOOR_FACTOR = 0.5  # of `minimum`, for facts that also need a share of the best fact
FACT_ANSWER_SHARE = 1 / 3  # of `fact_share`, where facts are selected by the probability that they answer
MIN_WHOLE_ANSWER = 0.01  # of the probability that a fact or the summary of a session answers
TIMELINE_FACTOR = 0.25  # of `minimum`, for a timeline: most of its events say little of what is asked
MIN_TIMELINE_QUESTION = 0.03  # of the same for a timeline: no single event resembles a question about their order
POINT_SHARE, MAX_ANSWERS = 0.01, 12  # of the best probability of an answer, and of items, for a single question
LIST_SHARE, MAX_LISTED = 0.005, 25  # the same for a question that asks for all of a kind
MIN_KNOWN = 0.5  # of the probability that memory answers an input; above it, the input needs something
MIN_SUFFICIENCY = 0.5  # below it, the context says that it may not answer the input

# The kinds that are judged by the probability of an answer. Messages and passages are many, and each says little.
ANSWER_KINDS: frozenset[Kind] = frozenset({"exchange", "fact", "passage", "episode"})
WHOLE_KINDS: frozenset[Kind] = frozenset({"fact", "episode"})


@dataclass(frozen=True, slots=True)
class RelevanceFloor:
    """The minimum probabilities that a memory needs to enter a context with this frame; 0 means no minimum.

    `minimum` applies to the probability of being relevant. A fact also needs `fact_share` of the best fact's
    probability, since beside a clear answer weak facts are noise; with a `fact_share`, `minimum` is lower for facts,
    because a paraphrased question often finds its answer with little evidence.

    `question` is the probability that memory answers the input at all (None if unknown); below `subject`, the topic
    counts as hardly known. With an `answer` minimum and a known `question`, messages, facts and passages are selected
    by their probability of being an answer. `sufficiency` are the coefficients of the probability that a context has
    all that the input needs, None if no single memory answers such an input. `correction` is the agent's correction,
    which the probabilities of an answer already include. `need` is what the input needs from memory, None if unknown.
    """

    minimum: float = 0.0
    fact_share: float = 0.0
    answer: float = 0.0
    question: float | None = None
    subject: float = MIN_QUESTION
    sufficiency: tuple[float, float] | None = None
    correction: AnswerCorrection = NO_CORRECTION
    need: Need | None = None

    @property
    def judges_answers(self) -> bool:
        return self.answer > 0 and self.question is not None

    @property
    def compares_answers(self) -> bool:
        """Return True if memories are selected by their probability of an answer beside that of the best."""
        return self.need == "answer" and self.judges_answers and not self.is_hardly_known

    @property
    def is_hardly_known(self) -> bool:
        """Return True if memory hardly knows the subject of the input."""
        return self.question is not None and self.question < self.subject

    def find_minimum(self, kind: Kind, *, best_fact: float = 0.0) -> float:
        """Return the minimum probability of being relevant that a memory of a kind needs to enter a context.

        `best_fact` is the highest probability of a fact. For a fact, the minimum is `fact_share` of it, and at least
        `FACT_FLOOR_FACTOR` times the general minimum.

        >>> floor = RelevanceFloor(0.08, fact_share=0.3)
        >>> floor.find_minimum("exchange", best_fact=0.9), floor.find_minimum("fact", best_fact=0.9)
        (0.08, 0.27)
        >>> floor.find_minimum("fact", best_fact=0.1), RelevanceFloor(0.08).find_minimum("fact", best_fact=0.9)
        (0.04, 0.08)
        """
        if kind in ANSWER_KINDS and self.judges_answers:
            share = self.fact_share * FACT_ANSWER_SHARE * best_fact if kind == "fact" else 0.0
            return max(MIN_WHOLE_ANSWER, share) if kind in WHOLE_KINDS else self.answer
        if kind != "fact" or not self.fact_share:
            return self.minimum
        return max(self.minimum * FACT_FLOOR_FACTOR, self.fact_share * best_fact)

    def get_probability(self, scored: ScoredMemory) -> float:
        """Return the probability that is compared with the minimum: of being an answer, or of being relevant."""
        is_answer = scored.found.kind in ANSWER_KINDS and self.judges_answers
        return scored.features[ANSWER_INDEX if is_answer else PROBABILITY_INDEX]

    def find_reason(self, scored: ScoredMemory, *, best_fact: float = 0.0) -> str | None:
        """Return why a memory is below its minimum, or None. `best_fact` is the highest probability of a fact."""
        kind = scored.found.kind
        if self.compares_answers:
            return None
        if kind in ANSWER_KINDS and self.judges_answers and self.is_hardly_known:
            shares = f"{format_probability(self.question or 0.0)} < {format_probability(self.subject)}"
            return f"below the relevance floor: memory hardly answers this ({shares})"
        probability, minimum = self.get_probability(scored), self.find_minimum(kind, best_fact=best_fact)
        if probability >= minimum:
            return None
        return f"below the relevance floor ({format_probability(probability)} < {format_probability(minimum)})"

    def find_needless(self, selected: Sequence[ScoredMemory], kind: QuestionKind) -> Mapping[UUID, str]:
        """Return which of the selected memories the input does not need, with the reasons.

        Beside the best answer to a question, those far less probable are noise, whatever their kind.
        """
        if self.need == "none" and (self.question is None or self.question < MIN_KNOWN):
            return {s.found.memory_id: "the input needs nothing from memory" for s in selected}
        if not self.compares_answers:
            return {}
        share, most = (POINT_SHARE, MAX_ANSWERS) if kind == "point" else (LIST_SHARE, MAX_LISTED)
        ranked = sorted(selected, key=lambda s: (-s.features[ANSWER_INDEX], s.found.memory_id))
        best = max((s.features[ANSWER_INDEX] for s in ranked), default=0.0)
        weak = [s for s in ranked if s.features[ANSWER_INDEX] < share * best]
        reasons = {
            s.found.memory_id: f"far less probable than the best answer ({format_probability(best)})" for s in weak
        }
        return dict.fromkeys((s.found.memory_id for s in ranked[most:]), f"not among the best {most} answers") | reasons

    def find_best_fact(self, candidates: Sequence[ScoredMemory]) -> float:
        """Return the highest probability of a fact among the candidates, 0 without facts."""
        return max((self.get_probability(s) for s in candidates if s.found.kind == "fact"), default=0.0)

    def estimate_sufficiency(self, shown: Iterable[ScoredMemory], found: Iterable[ScoredMemory]) -> float | None:
        """Return the probability that a context has all that the input needs; None if unknown.

        `shown` are the items of the context, `found` all candidates.
        """
        if self.question is None or self.sufficiency is None:
            return None
        probabilities = ([scored.features[ANSWER_INDEX] for scored in some] for some in (shown, found))
        return estimate_sufficiency(
            self.sufficiency, self.question, shown=next(probabilities), found=next(probabilities)
        )


NO_FLOOR = RelevanceFloor()
RECALL_FLOOR = RelevanceFloor(fact_share=0.3, answer=0.0015)  # as the frames of questions have it


def find_least_question(answers: AnswerEstimate, kind: QuestionKind = "point") -> float:
    """Return the least probability of an answer in memory at which memory counts as knowing the topic of a question.

    Return 0 if one memory contains all names of the question, because memory then knows the topic.
    """
    if answers.knows_names:
        return 0.0
    return MIN_TIMELINE_QUESTION if kind == "timeline" else MIN_QUESTION


def select_answers(
    answers: AnswerEstimate, memories: Sequence[RetrievedMemory], min_relevance: float | None
) -> Sequence[RetrievedMemory]:
    """Return the memories of a search that answer it with a probability of at least `min_relevance`.

    Without `min_relevance` they need what a context requires. Only messages, facts and passages are judged; if the
    probabilities are unknown, all memories are returned.
    """
    if answers.question is None or min_relevance == 0:
        return memories
    best_fact = max((answers.find(found) for found in memories if found.kind == "fact"), default=0.0)
    floor = replace(RECALL_FLOOR, question=answers.question, subject=find_least_question(answers))
    is_left_out = min_relevance is None and floor.is_hardly_known

    def is_selected(found: RetrievedMemory) -> bool:
        least = floor.find_minimum(found.kind, best_fact=best_fact) if min_relevance is None else min_relevance
        return found.kind not in ANSWER_KINDS or (not is_left_out and answers.find(found) >= least)

    return [found for found in memories if is_selected(found)]


@lru_cache(maxsize=4_096)  # hundreds of candidates have the same reason
def format_probability(probability: float) -> str:
    """Format a probability with two decimals, as `.08`, or with four if it is below .01.

    It is rounded down: one that is below a minimum never looks equal to it.

    >>> format_probability(0.087), format_probability(0.00129)
    ('.08', '.0012')
    """
    digits = 2 if probability >= 0.01 or probability == 0 else 4
    return f"{math.floor(probability * 10**digits) / 10**digits:.{digits}f}".removeprefix("0")


def create_floor(
    request: ContextBuildRequest, frame: Frame, found: CandidateSet, gathered: GatheredSources, model: RelevanceModel
) -> RelevanceFloor:
    """Return the minimums of the frame; none if the request asks to fill the whole budget.

    Only for a question for a fact or a list are memories judged as answers; for other inputs they are judged by topic.
    What the input needs decides which it is, or the frame if that is unknown.
    """
    kind, is_known = gathered.gathering.reading.kind, bool(gathered.person.memories)
    need = None if request.fill else read_need(gathered.recall_result.query, is_asked=frame.answer_floor > 0)
    is_answered = kind in ANSWERED_KINDS and not (is_known and gathered.person.question.is_complete)
    is_answered = is_answered and (need == "answer" if need in ("answer", "gather") else frame.answer_floor > 0)
    minimum = frame.relevance_floor * (TIMELINE_FACTOR if kind == "timeline" else 1.0)
    answer = (frame.answer_floor or RECALL_FLOOR.answer) if is_answered else 0.0
    fact_share = 0.0 if need == "gather" else frame.fact_share
    fact_share = (fact_share or RECALL_FLOOR.fact_share) if is_answered else fact_share
    minimums = (0.0, 0.0, 0.0) if request.fill else (minimum, fact_share, answer)
    return RelevanceFloor(
        *minimums,
        question=found.answers.question,
        subject=find_least_question(found.answers, kind),
        sufficiency=model.answers.sufficiency if is_answered else None,
        correction=gathered.session_state.answer_correction,
        need=need,
    )
