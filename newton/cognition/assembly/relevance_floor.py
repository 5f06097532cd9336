"""The minimum probability of being relevant that a memory needs for a context. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from newton.cognition.scoring.score import FEATURE_NAMES, ScoredMemory
from newton.memory.memory import Kind

PROBABILITY_INDEX = FEATURE_NAMES.index("probability")

FACT_FLOOR_FACTOR = 0.5  # of `minimum`, for facts that also need a share of the best fact


@dataclass(frozen=True, slots=True)
class RelevanceFloor:
    """The minimums of a frame: of the probability of a memory, and of a fact's share of the best fact's probability.

    One statement usually answers a question; where a fact clearly answers, weak ones beside it are noise. With a
    `fact_share` the `minimum` is lower for facts, because a question in other words often reaches its answer with
    little evidence. 0 stands for no minimum.
    """

    minimum: float = 0.0
    fact_share: float = 0.0

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
        if kind != "fact" or not self.fact_share:
            return self.minimum
        return max(self.minimum * FACT_FLOOR_FACTOR, self.fact_share * best_fact)


NO_FLOOR = RelevanceFloor()


def get_probability(scored: ScoredMemory) -> float:
    return scored.features[PROBABILITY_INDEX]


def find_best_fact(candidates: Sequence[ScoredMemory]) -> float:
    """Return the highest probability of a fact among the candidates, 0 without facts."""
    return max((get_probability(scored) for scored in candidates if scored.found.kind == "fact"), default=0.0)
