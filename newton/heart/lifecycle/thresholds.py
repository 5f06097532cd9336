"""The thresholds at which memories change their state."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Shares are in [0, 1]."""

    core_sources: int = 3
    facts_per_attribute: int = 10
    summarized_after: timedelta = timedelta(days=30)
    archived_after: timedelta = timedelta(days=90)
    procedure_trials: int = 5
    effective_above: float = 0.6
    ineffective_below: float = 0.4
    censor_trials: int = 5
    false_positives_above: float = 0.5
    most_events: int = 100_000
    most_entities: int = 10_000
    most_relations: int = 50_000
    most_procedures: int = 1_000
    most_passages: int = 100_000
