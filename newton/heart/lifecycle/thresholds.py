"""Thresholds for state transitions, and the maximum numbers of memories."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleThresholds:
    """The counts, ages and rates (in [0, 1]) at which states change, and the maximum number of memories per kind.

    The maximum numbers are settings.
    """

    core_fact_min_sources: int = 3
    max_facts_per_attribute: int = 10
    episode_summarize_after: timedelta = timedelta(days=30)
    episode_archive_after: timedelta = timedelta(days=90)
    procedure_min_uses: int = 5
    procedure_effective_min_rate: float = 0.6
    procedure_ineffective_max_rate: float = 0.4
    censor_min_uses: int = 5
    censor_max_false_positive_rate: float = 0.5
    max_events: int
    max_entities: int
    max_relations: int
    max_procedures: int
    max_passages: int
