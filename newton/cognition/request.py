"""Requests for contexts: filters, messages already sent, options, and values in place of those of frame and profile."""

import json
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple, cast
from uuid import UUID

from pydantic import Field, ValidationError, model_validator

from newton.content.frames import BudgetSplit, LayerShares
from newton.content.profiles import FeatureWeights, GatherOptions, ItemOrder, Profile, Weight
from newton.content.yaml_files import StrictModel
from newton.deadline import RequestDeadline
from newton.errors import InputError
from newton.memory.memory import Kind
from newton.memory.search_types import RetrievedMemory, shorten_query
from newton.text.time_expressions import TimeRange


class WeightOverrides(StrictModel):
    """Weights of features in the score of a memory; a feature that is left out keeps its weight."""

    similarity: Weight | None = None
    lexical: Weight | None = None
    type_priority: Weight | None = None
    recency: Weight | None = None
    importance: Weight | None = None
    salience: Weight | None = None
    outcome: Weight | None = None
    usage: Weight | None = None
    confidence: Weight | None = None
    success_rate: Weight | None = None
    depth: Weight | None = None


class ReachOverrides(StrictModel):
    """Limits of the memories to consider besides search results; a limit that is left out stays unchanged."""

    depth: int | None = Field(None, ge=0, le=5, description="Relation steps from the entities in the input.")
    salient: int | None = Field(None, ge=0, le=100, description="Most salient entities to add.")
    events: int | None = Field(None, ge=0, le=200, description="Last events of the session to add.")
    sessions: int | None = Field(None, ge=0, le=50, description="Other sessions of which to add recent events.")
    failures: bool | None = Field(None, description="Whether memories of failures may be in the context.")


class ContextOverrides(StrictModel):
    """Values that replace those of the profile and, for `budget`, of the frame, for one context."""

    weights: WeightOverrides | None = Field(None, description="Weights of features in the score of a memory.")
    reach: ReachOverrides | None = Field(
        None, description="Limits of the memories to consider in addition to the results of the search."
    )
    decay_hours: float | None = Field(None, gt=0, description="The time constant of the recency decay, in hours.")
    order: ItemOrder | None = Field(None, description="The order of the memories in a layer.")
    budget: BudgetSplit | None = Field(
        None,
        description="Percent of the flexible tokens for `recent`, `semantic`, `entity` and `patterns`, 100 in total.",
    )

    @model_validator(mode="before")
    @classmethod
    def _read_assignments(cls, value: object) -> object:
        """Read a list of assignments such as `reach.depth=3`, as a command has them."""
        return _group_assignments(cast("Sequence[str]", value)) if isinstance(value, list | tuple) else value

    def apply_to_profile(self, profile: Profile) -> Profile:
        """Return the profile with the values of the overrides.

        Raises InputError if weights are given for a profile that has an expression, if all weights become 0, or if
        `decay_hours` is given for a profile without decay.
        """
        weights = self.weights.model_dump(exclude_none=True) if self.weights else {}
        reach = self.override_reach(profile.reach)
        if weights and profile.expression is not None:
            what = f"The profile {profile.name!r} scores by an expression, so it has no weights to override."
            raise InputError(what, hint="Choose a profile with weights, such as coding.")
        try:
            weighted = FeatureWeights.model_validate(profile.weights.model_dump() | weights) if weights else None
        except ValidationError:
            raise InputError("All weights are 0.", hint="Give a weight above 0 to one feature.") from None
        changed = {"reach": reach, "weights": weighted, "order": self.order}
        profile = profile.model_copy(update={name: value for name, value in changed.items() if value is not None})
        return profile if self.decay_hours is None else profile.with_time_constant(self.decay_hours)

    def override_reach(self, reach: GatherOptions) -> GatherOptions:
        """Return the limits with the values of the overrides."""
        return reach.model_copy(update=self.reach.model_dump(exclude_none=True)) if self.reach else reach

    def select_shares(self, own: LayerShares) -> LayerShares:
        """Return the shares of the layers: those of `budget` if it is given, else the frame's `own`."""
        return self.budget.to_layer_shares(own) if self.budget else own

    def as_json(self) -> dict[str, dict[str, float]]:
        """Return the values that are set, as JSON."""
        return self.model_dump(exclude_none=True)


def _group_assignments(assignments: Iterable[str]) -> dict[str, dict[str, object]]:
    """Return the values of assignments by group and field.

    >>> _group_assignments(["reach.depth=3", "weights.recency=0.4", "reach.failures=false"])
    {'reach': {'depth': 3, 'failures': False}, 'weights': {'recency': 0.4}}
    """
    groups: dict[str, dict[str, object]] = {}
    for assignment in assignments:
        name, _, value = str(assignment).partition("=")
        group, _, field = name.strip().partition(".")
        groups.setdefault(group, {})[field] = _parse_value(value.strip())
    return groups


def _parse_value(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


NO_OVERRIDES = ContextOverrides.model_validate({})


MAX_CONTEXT_TOKENS = 10_000_000  # larger than any model's context window


class ActiveSpan(NamedTuple):
    """A time in which a task was active: its messages `first` to `last`, and its start and end; None if it lasts."""

    first: int
    last: int
    since: datetime
    until: datetime | None


class TaskScope(NamedTuple):
    """A task of a session, to tell which memories belong to it.

    These are the messages of its `spans`, and what was made from them or recorded in its session during them.
    `subtask_ids` are all tasks below it. While the task is blocked, nothing belongs to it.
    """

    session_id: UUID
    task_id: UUID
    number: int
    spans: tuple[ActiveSpan, ...]
    subtask_ids: tuple[UUID, ...] = ()

    @property
    def message_ranges(self) -> list[tuple[UUID, int, int]]:
        """Return the session with the first and last position of each range of the task's messages."""
        return [(self.session_id, span.first, span.last) for span in self.spans]

    def contains_message(self, found: RetrievedMemory) -> bool:
        """Return True for a message of the task."""
        position = found.position
        if found.kind != "exchange" or found.thread_id != self.session_id or position is None:
            return False
        return any(span.first <= position <= span.last for span in self.spans)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextFilters:
    """Filters for the memories of a context; an empty filter allows all. Identity, censors and frame are not filtered.

    `since` (inclusive) and `until` (exclusive) apply to the time of events and messages. Entities, relations and
    procedures have no time, but `until` excludes a relation that is known only from later facts. `event_types` applies
    to events only, `entity_types` to entities only. `task` allows only memories of one task; entities, relations and
    procedures belong to none and are allowed.
    """

    since: datetime | None = None
    until: datetime | None = None
    kinds: frozenset[Kind] = frozenset()
    event_types: frozenset[str] = frozenset()
    entity_types: frozenset[str] = frozenset()
    exclude: frozenset[UUID] = frozenset()
    task: TaskScope | None = None

    @property
    def time_ranges(self) -> tuple[TimeRange, ...]:
        """Return the time range from `since` to `until`, used for an input that names no time; empty without either."""
        ends = {"since": self.since, "until": self.until}
        phrase = " ".join(f"{name} {at:%Y-%m-%d}" for name, at in ends.items() if at)
        return (TimeRange(phrase, self.since, self.until),) if phrase else ()

    def allows_kind(self, kind: Kind) -> bool:
        return not self.kinds or kind in self.kinds

    def allows(self, found: RetrievedMemory) -> bool:
        """Return True if a message or a decision passes the filters. Type filters do not apply to these kinds."""
        is_from_since = self.since is None or found.occurred_at >= self.since
        is_before_until = self.until is None or found.occurred_at < self.until
        is_allowed = self.allows_kind(found.kind) and found.memory_id not in self.exclude
        is_of_task = self.task is None or self.task.contains_message(found)
        return is_from_since and is_before_until and is_allowed and is_of_task

    def find_unmatched(self, kinds: Set[str]) -> dict[str, list[str]]:
        """Return the filters that no candidate matched, with their values. `kinds` are the kinds of the candidates."""
        values = {name: [value] if isinstance(value, str) else value for name, value in self.as_json().items()}
        if not kinds:
            return values
        unmatched = {"kinds": [kind for kind in values.pop("kinds", ()) if kind not in kinds]}
        unmatched |= {name: values.get(name, []) for name, kind in KIND_BY_TYPE_FILTER.items() if kind not in kinds}
        if kinds <= TIMELESS_KINDS:
            unmatched |= {name: values.get(name, []) for name in ("since", "until")}
        return {name: listed for name, listed in unmatched.items() if listed}

    def as_json(self) -> dict[str, Any]:
        """Return the filters that are set, as JSON."""
        filters = {
            "since": self.since and self.since.isoformat(),
            "until": self.until and self.until.isoformat(),
            "kinds": sorted(self.kinds),
            "event_types": sorted(self.event_types),
            "entity_types": sorted(self.entity_types),
            "exclude": sorted(map(str, self.exclude)),
            "task": self.task and str(self.task.number),
        }
        return {name: value for name, value in filters.items() if value}


NO_FILTERS = ContextFilters()


@dataclass(frozen=True, slots=True, kw_only=True)
class SentMessages:
    """The messages of a session that the model is sent: from `first_position` on, except `unsent_positions`.

    For a branch, `inherited_ranges` are the messages of its parent sessions that it includes, as (session, first,
    last). `has_events` means that the model also has the events of the session, as a program's own model does.
    `quoted_tokens` counts the messages of other sessions that were sent with earlier inputs; None if they are not sent
    again.
    """

    session_id: UUID
    first_position: int
    unsent_positions: Set[int] = frozenset()
    inherited_ranges: Sequence[tuple[UUID, int, int]] = ()
    has_events: bool = False
    quoted_tokens: int | None = None

    def contains(self, found: RetrievedMemory) -> bool:
        """Return True if a memory is one of the messages, or a fact that one of them states."""
        is_stated = found.stated_position is not None
        thread_id = found.stated_thread_id if is_stated else found.thread_id
        position = found.stated_position if is_stated else found.position
        if position is None:
            return False
        ranges = (range(first, last + 1) for session, first, last in self.inherited_ranges if thread_id == session)
        is_in_session = thread_id == self.session_id or any(position in inherited for inherited in ranges)
        return is_in_session and self.covers(position, position)

    def covers(self, first: int, last: int) -> bool:
        """Return True if all messages from `first` to `last` are sent."""
        return first >= self.first_position and self.unsent_positions.isdisjoint(range(first, last + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextBuildRequest:
    """A request for a context of at most `tokens` tokens for one input.

    `frame` and `profile` replace automatic selection, `overrides` single values of both. `adaptive_budget` gives a
    simple input fewer tokens. `fill` uses the whole budget, also for memories below the relevance floor. `as_of` builds
    the context as of a past moment. `additional` are lines of the caller, for which at most half of the budget is used.
    `input_memory_id` is the memory of the input itself, which the search excludes. `item_ids` adds its id to the line
    of each memory, for a caller that can call `expand`. Nothing of a request that `is_private` is stored. Messages and
    events of `related_sessions` rank higher than others. `whole_input` is the input, if `input` is an excerpt of it;
    censors are matched against it. `deadline` limits the wait for memory; with None, the builder of the context sets
    one and uses what was found by then.
    """

    agent_id: UUID
    input: str
    tokens: int
    adaptive_budget: bool = False
    fill: bool = False
    frame: str | None = None
    profile: str | None = None
    overrides: ContextOverrides = NO_OVERRIDES
    session_id: UUID | None = None
    related_sessions: Sequence[UUID] = ()
    sent_messages: SentMessages | None = None
    input_memory_id: UUID | None = None
    as_of: datetime | None = None
    filters: ContextFilters = NO_FILTERS
    additional: str | None = None
    item_ids: bool = False
    is_private: bool = False
    whole_input: str | None = None
    deadline: RequestDeadline | None = field(default=None, compare=False)

    @property
    def censored_text(self) -> str:
        """Return the text that censors are matched against: the whole input."""
        return self.whole_input or self.input

    def find_deadline(self, seconds: float) -> RequestDeadline:
        """Return the request's deadline, else one in `seconds` that accepts a partial result."""
        return self.deadline or RequestDeadline.after(seconds, accepts_partial=True)

    def start_deadline(self, seconds: float) -> "ContextBuildRequest":
        """Return the request with the deadline from `find_deadline` set."""
        return self if self.deadline else replace(self, deadline=self.find_deadline(seconds))

    def shorten_input(self) -> "ContextBuildRequest":
        """Return the request with an excerpt of its input if that is long, so that its length cannot delay others."""
        excerpt = shorten_query(self.input)
        return self if excerpt == self.input else replace(self, input=excerpt, whole_input=self.input)


TIMELESS_KINDS: frozenset[Kind] = frozenset({"entity", "relation", "procedure", "censor"})
# Filters that apply to one kind only.
KIND_BY_TYPE_FILTER: Mapping[str, Kind] = {"event_types": "event", "entity_types": "entity"}


def validate_request(request: ContextBuildRequest) -> ContextBuildRequest:
    """Return the request, with an excerpt of a long input.

    Raises InputError if the token budget is out of range, or `since` is not before `until`.
    """
    if not 1 <= request.tokens <= MAX_CONTEXT_TOKENS:
        raise InputError(
            f"A context of {request.tokens:,} tokens is not possible.",
            hint=f"Give a budget from 1 to {MAX_CONTEXT_TOKENS:,} tokens.",
        )
    since, until = request.filters.since, request.filters.until
    if since and until and since >= until:
        raise InputError(
            f"The time range from {since:%Y-%m-%d %H:%M} to {until:%Y-%m-%d %H:%M} is empty.",
            hint="Give a `since` that is earlier than `until`.",
        )
    return request.shorten_input()
