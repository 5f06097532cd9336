"""A bundle: one assembled context with the data to explain and replay it, and the hooks that packs run on it."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from newton.brain.pack_hooks import HookResult, HookRunner
from newton.cognition.assembly.assembly_input import AssemblyInput
from newton.cognition.assembly.exclusion_rules import REPEATS_STATED_FACT
from newton.cognition.assembly.fill import NO_ROOM
from newton.cognition.assembly.scored_candidate import STANDS, LayerUsage, ScoredCandidate
from newton.cognition.assembly.sections import IdentitySection, strip_approval_note
from newton.cognition.frames.selection import FrameChoice
from newton.cognition.request import NO_OVERRIDES, ContextBuildRequest, ContextFilters, ContextOverrides
from newton.content.profiles import Profile
from newton.memory.memory import UNTRUSTED_TIERS, Trust, lowest_known_trust
from newton.memory.search_types import RetrievedMemory
from newton.memory.source_marks import find_foreign
from newton.text.questions import contains_question

if TYPE_CHECKING:
    from newton.client.context import ContextItem, ContextResponse, DroppedCandidate

RefreshMethod = Literal["built", "updated", "evicted", "stood"]

# Sources other than search.
SOURCE_BY_KIND: Mapping[str, str] = {
    "entity": "entity",
    "relation": "relation",
    "procedure": "pattern",
    "artifact": "session",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextUpdate:
    """Changes of an updated context: the previous bundle, the memories added and evicted, and the reason."""

    previous_bundle_id: UUID
    reason: str
    added: tuple[UUID, ...]
    evicted: Mapping[UUID, str]

    @property
    def has_evictions(self) -> bool:
        return bool(self.evicted)

    def as_json(self) -> dict[str, Any]:
        return {
            "continues": str(self.previous_bundle_id),
            "because": self.reason,
            "entered": [str(memory_id) for memory_id in self.added],
            "gave_way": {str(memory_id): reason for memory_id, reason in self.evicted.items()},
            "truncated": self.has_evictions,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """One assembled context with all its candidates, as it is stored.

    `focus` are the memories in the section Current Focus, `recent_ids` the candidates from recent events. `as_of` is
    the past moment that the caller asked for, None for the present. `frame_edition` is the version hash of the frame.
    `missing` maps unavailable sources to reasons. `update` describes an incremental update, None if the context was
    built anew. `hooks` are the runs of the hooks of the pack.
    """

    bundle_id: UUID
    agent_id: UUID
    session_id: UUID | None
    created_at: datetime
    as_of: datetime | None
    input: str
    identity: IdentitySection
    text: str
    tokens: int
    budget: int
    frame_choice: FrameChoice
    frame_edition: str
    profile: Profile
    assembly_input: AssemblyInput
    layers: Mapping[str, LayerUsage]
    candidates: tuple[ScoredCandidate, ...]
    focus: tuple[RetrievedMemory, ...]
    recent_ids: frozenset[UUID]
    filters: ContextFilters
    missing: Mapping[str, str]
    timings_ms: Mapping[str, float]
    overrides: ContextOverrides = NO_OVERRIDES
    update: ContextUpdate | None = None
    hooks: tuple[HookResult, ...] = ()

    @property
    def items(self) -> tuple[ScoredCandidate, ...]:
        return tuple(c for c in self.candidates if c.detail)

    @property
    def rejected_candidates(self) -> tuple[ScoredCandidate, ...]:
        return tuple(c for c in self.candidates if not c.detail)

    @property
    def external_trusts(self) -> frozenset[Trust]:
        """Return the trust levels of the foreign memories in the context, and of foreign text quoted in its notes.

        Foreign memories are text of tools or the web that nobody has confirmed, and files that a model stored.
        """
        shown = (*(c.scored.found for c in self.items), *self.focus)
        quoted = UNTRUSTED_TIERS.intersection(one.trust for one in self.assembly_input.approvals)
        found: Sequence[Trust | None] = [
            find_foreign(one.trust, kind=one.kind, quarantined=one.quarantined) for one in shown
        ]
        foreign: list[Trust] = [trust for trust in found if trust]
        return quoted | frozenset(foreign)

    @property
    def min_external_trust(self) -> Trust | None:
        """Return the lowest trust of the unconfirmed text of tools or the web in the context; None if it has none."""
        return lowest_known_trust(self.external_trusts)

    @property
    def rule_ids(self) -> tuple[UUID, ...]:
        """Return the ids of the identity lines and the censors in the text."""
        tenets = (tenet.tenet_id for tenet in self.identity.shown)
        return (*tenets, *(line.memory_id for line in self.assembly_input.censors.lines))

    @property
    def stated_ids(self) -> tuple[UUID, ...]:
        """Return the ids of all that the text states: memories, rules, tasks, approvals and items of the brief."""
        inputs = self.assembly_input
        return (
            *(c.memory_id for c in self.items),
            *(found.memory_id for found in self.focus),
            *self.rule_ids,
            *(line.memory_id for line in inputs.brief.lines if line.memory_id),
            *inputs.tasks.task_ids,
            *(one.item_id for one in inputs.approvals),
        )

    @property
    def unmatched_filters(self) -> Mapping[str, list[str]]:
        """Return the filters of the request that no candidate matched, with their values."""
        return self.filters.find_unmatched({c.kind for c in self.candidates} | {found.kind for found in self.focus})

    @property
    def empty_time_ranges(self) -> tuple[str, ...]:
        """Return the phrases for times in the input, if nothing from those times is stored; else an empty tuple."""
        ranges = self.assembly_input.time_ranges if self.assembly_input.empty_range_note else ()
        return tuple(span.phrase for span in ranges)

    @property
    def has_nothing_relevant(self) -> bool:
        """Return True when every source was searched, and no memory was selected but names, which every context has."""
        is_asked = self.assembly_input.gathering.asks_person
        return not self.is_incomplete and all(
            c.reason == STANDS or (c.scored.section == "name" and not is_asked) for c in self.items
        )

    @property
    def is_incomplete(self) -> bool:
        """Return True if a source of the context was late or failed, so that something was not searched."""
        return self.assembly_input.incomplete_note is not None

    @property
    def incomplete_text(self) -> str | None:
        """Return the sentence that names what was not searched; None if all was."""
        note = self.assembly_input.incomplete_note
        return note.text.removeprefix("- ").rstrip() if note else None

    @property
    def pending_approvals(self) -> list[str]:
        """Return a line for each thing that the text says waits for the user's approval."""
        return [strip_approval_note(note) for note in self.assembly_input.approval_notes if note.text in self.text]

    @property
    def may_not_answer(self) -> bool:
        """Return True if the text says that the memories may not answer the input."""
        note = self.assembly_input.uncertain_note
        return note is not None and note.text in self.text

    @property
    def sufficiency(self) -> float | None:
        """Return the probability that the memories of the context hold all that the input needs.

        Return None if it is unknown: without a question, with another embedding model than the fitted one, and if the
        context was kept from an earlier input.
        """
        if not contains_question(self.input) or self.assembly_input.gathering.asks_person:
            return None
        found = [c.scored for c in self.candidates if c.reason != REPEATS_STATED_FACT]
        return self.assembly_input.relevance_floor.estimate_sufficiency([c.scored for c in self.items], found)

    @property
    def is_truncated(self) -> bool:
        """Return True when a candidate, an identity line or a censor was left out for lack of room."""
        return bool(self.omitted_ids) or any(c.reason == NO_ROOM for c in self.candidates)

    @property
    def omitted_ids(self) -> tuple[UUID, ...]:
        """Return the ids of the censors and the identity lines that were left out for lack of room."""
        tenets = (tenet.tenet_id for tenet in self.identity.omitted)
        return (*self.assembly_input.censors.omitted, *tenets)

    def find_source(self, c: ScoredCandidate) -> str:
        """Return how the candidate was found; see the function `find_source`."""
        return find_source(c.memory_id, c.kind, self.assembly_input, self.recent_ids)

    @property
    def task_json(self) -> dict[str, Any] | None:
        """Return how the search used a task: its number, whether its memories were `preferred` or the `only` ones, and
        how many of the items belong to it; None if no task was used.
        """
        return describe_task(self.filters, self.assembly_input, (c.features for c in self.items))

    def as_json(self) -> "ContextResponse":
        """Return the context in the form that all interfaces publish."""
        response: ContextResponse = {
            "bundle_id": str(self.bundle_id),
            "as_of": self.as_of.isoformat() if self.as_of else None,
            "input": self.input,
            "text": self.text,
            "tokens": self.tokens,
            "truncated": self.is_truncated,
            "nothing_relevant": self.has_nothing_relevant,
            "sufficiency": None if self.sufficiency is None else round(self.sufficiency, 4),
            "budget": self.budget,
            "frame": self.frame_choice.as_json(),
            "question": self.assembly_input.gathering.as_json(),
            "profile": self.profile.as_json(),
            "identity": self.identity.as_json(),
            "layers": {name: layer.as_json() for name, layer in self.layers.items()},
            "times": {
                "asked": [span.phrase for span in self.assembly_input.time_ranges],
                "blank": bool(self.empty_time_ranges),
            },
            "task": self.task_json,
            "missing": dict(self.missing),
            "pending_approvals": self.pending_approvals,
            "update": self.update.as_json() if self.update else None,
            "timings_ms": {name: round(ms, 3) for name, ms in self.timings_ms.items()},
            "hooks": [result.as_json() for result in self.hooks],
            "considered": dict(sorted(Counter(c.kind for c in self.candidates).items())),
            "items": [_item_json(c, source=self.find_source(c)) for c in self.items],
            "dropped": [
                *map(_omission_json, self.omitted_ids),
                *(_verdict_json(c) for c in self.rejected_candidates),
            ],
        }
        if overrides := self.overrides.as_json():
            response["overrides"] = overrides
        if filters := self.filters.as_json():
            response["filters"] = filters
            response["left_nothing"] = dict(self.unmatched_filters)
        return response


def find_source(memory_id: UUID, kind: str, assembly_input: AssemblyInput, recent_ids: Collection[UUID]) -> str:
    """Return how a candidate was found: injected (put into the session by a caller), recent, standing (an instruction
    or a preference that applies), session, entity, relation, pattern, or semantic (the search).
    """
    if memory_id in assembly_input.injected:
        return "injected"
    if memory_id in recent_ids:
        return "recent"
    return "standing" if memory_id in assembly_input.gathering.standing else SOURCE_BY_KIND.get(kind, "semantic")


def describe_task(
    filters: ContextFilters, assembly_input: AssemblyInput, items: Iterable[Mapping[str, float]]
) -> dict[str, Any] | None:
    """Return as JSON which task a context used, whether its memories are `preferred` or the `only` ones, and how many
    items belong to it; None if it used none."""
    if filters.task:
        return {"number": filters.task.number, "memories": "only", "items": len(list(items))}
    number = assembly_input.tasks.current_number
    if number is None:
        return None
    count = sum(features["task"] > 0 for features in items)
    return {"number": number, "memories": "preferred", "items": count}


def _verdict_json(c: ScoredCandidate) -> "DroppedCandidate":
    return {
        "memory_id": str(c.memory_id),
        "refs": list(c.refs),
        "score": round(c.score, 6),
        "evidence": round(c.scored.found.evidence_score, 4),
        "probability": round(c.features["probability"], 4),
        "reason": c.reason,
    }


def _omission_json(memory_id: UUID) -> "DroppedCandidate":
    """Return the JSON of a censor or an identity line that was left out. Neither is scored, so the score is 0."""
    return {
        "memory_id": str(memory_id),
        "refs": [],
        "score": 0.0,
        "evidence": 0.0,
        "probability": 0.0,
        "reason": NO_ROOM,
    }


def _item_json(c: ScoredCandidate, *, source: str) -> "ContextItem":
    return {
        **_verdict_json(c),
        "kind": c.kind,
        "layer": c.layer,
        "detail": c.detail,
        "tokens": c.tokens,
        "text": c.text,
        "source": source,
        "trust": c.scored.found.trust,
        "told_at": c.scored.found.told_at.isoformat(),
        "valid_to": c.scored.found.valid_to.isoformat() if c.scored.found.valid_to else None,
        "contradicts": [str(memory_id) for memory_id in c.contradicted_ids],
        "inherited": c.scored.found.is_inherited,
        "features": {name: round(value, 4) for name, value in c.features.items()},
    }


async def run_before_assembly(hooks: HookRunner, request: ContextBuildRequest) -> tuple[HookResult, ...]:
    """Run a pack's hooks that see the input, and the frame if the caller names one; return their results."""
    if not hooks.hooks:
        return ()
    return await hooks.run("before_assembly", {"input": request.input, "frame": request.frame or ""})


def apply_hook_effects(
    request: ContextBuildRequest, results: Sequence[HookResult], frames: Collection[str]
) -> ContextBuildRequest:
    """Return the request with the lines that hooks add, and with the frame of the first hook that names a known one.

    The caller's own frame stays.
    """
    lines = [line for result in results for line in result.effect.lines]
    named = [result.effect.frame for result in results if result.effect.frame in frames]
    additional = "\n".join(filter(None, (request.additional, *lines)))
    return replace(
        request,
        additional=additional or None,
        frame=request.frame or (named[0] if named else None),
    )


async def run_after_assembly(hooks: HookRunner, bundle: Bundle) -> tuple[HookResult, ...]:
    """Run a pack's hooks that see the finished context; return their results."""
    if not hooks.hooks:
        return ()
    values = {
        "input": bundle.input,
        "frame": bundle.frame_choice.frame,
        "context": bundle.text,
        "tokens": bundle.tokens,
        "items": len(bundle.items),
    }
    return await hooks.run("after_assembly", values)
