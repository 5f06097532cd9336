"""Thresholds for state transitions, and the maximum numbers of memories."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleThresholds:
    """The counts, ages and rates (in [0, 1]) at which states change, and the maximum number of memories per kind.

    The settings have the default values.
    """

    core_fact_min_sources: int
    max_facts_per_attribute: int
    episode_summarize_after: timedelta
    episode_archive_after: timedelta
    procedure_min_uses: int
    procedure_effective_min_rate: float
    procedure_ineffective_max_rate: float
    censor_min_uses: int
    censor_max_false_positive_rate: float
    max_events: int
    max_entities: int
    max_relations: int
    max_procedures: int
    max_passages: int
