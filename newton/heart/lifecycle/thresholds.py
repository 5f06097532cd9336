"""Thresholds for state transitions, and the maximum numbers of memories."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleThresholds:
    """The counts, ages and rates (in [0, 1]) at which states change, and the maximum number of memories per kind."""

    core_fact_min_sources: int = 3
    max_facts_per_attribute: int = 10
    episode_summarize_after: timedelta = timedelta(days=30)
    episode_archive_after: timedelta = timedelta(days=90)
    procedure_min_uses: int = 5
    procedure_effective_min_rate: float = 0.6
    procedure_ineffective_max_rate: float = 0.4
    censor_min_uses: int = 5
    censor_max_false_positive_rate: float = 0.5
    max_events: int = 100_000
    max_entities: int = 10_000
    max_relations: int = 50_000
    max_procedures: int = 1_000
    max_passages: int = 100_000
