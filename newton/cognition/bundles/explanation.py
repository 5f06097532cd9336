"""Explanation of a stored context: why each candidate was considered, and included or left out. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Annotated, Any, NamedTuple
from uuid import UUID

from pydantic import Field

from newton.cognition.assembly.assembly_input import AssemblyInput
from newton.cognition.assembly.fill import NO_ROOM, DetailLevel
from newton.cognition.assembly.scored_candidate import LayerUsage, get_form
from newton.cognition.bundles.bundle import describe_task, find_source
from newton.cognition.bundles.replay import MemoryHistory, align_features, restore_memory
from newton.cognition.bundles.trace import StoredBundle, StoredCandidate
from newton.cognition.questions.question_rules import MemoryOrigin
from newton.cognition.scoring.score import FEATURE_NAMES, LAYER_BY_KIND, compute_contributions
from newton.cognition.sources.person import ABOUT_LAYER
from newton.content.profiles import Profile
from newton.errors import ConflictError, InputError
from newton.memory.lookup import MIN_ID_DIGITS, short_id
from newton.memory.memory import Kind, Trust
from newton.memory.ranking import ThreadPosition, evidence_score, find_named_speakers, neighbour_score
from newton.memory.search_types import RetrievedMemory

TEXTS: Mapping[MemoryOrigin, str] = {
    "injected": "a caller put it into this session",
    "standing": "it applies to every input",
    "triggered": "the input contains a trigger of this procedure",
    "named": "the input names it",
    "related": "it is related to something that the input names",
    "salient": "it is among the most important people and things",
    "recent": "it is among the last events of this session",
    "recent_elsewhere": "it is among the last events of another session",
    "contradicts": "it contradicts a fact that was found",
    "about": "the input concerns the person whom it is about",
    "artifact": "it belongs to this session and matches the input",
}
_SPEAKER = re.compile(r"\[[0-9-]+\] ([^:]+): ")


@dataclass(frozen=True, slots=True)
class FixedLine:
    """A line of a context that no search selects, and why it is there. `line_id` is None for a text without an id."""

    line_id: UUID | None
    kind: str
    text: str
    tokens: int
    found_by: str


def list_fixed_lines(assembly_input: AssemblyInput) -> list[FixedLine]:
    """Return the lines of the identity, the censors, the brief, the tasks and the caller."""
    identity, censors, tasks = assembly_input.identity, assembly_input.censors, assembly_input.tasks
    in_each = "which each context has"
    return [
        *(
            FixedLine(t.tenet_id, "identity", t.text, t.tokens, f"it is a line of the identity, {in_each}")
            for t in identity.shown
        ),
        *(
            FixedLine(c.memory_id, "censor", c.block.text, c.block.tokens, f"it is a censor in force, {in_each}")
            for c in censors.lines
        ),
        *(
            FixedLine(
                line.memory_id,
                "brief",
                line.block.text,
                line.block.tokens,
                "it is an open item of the brief of this session",
            )
            for line in assembly_input.brief.lines
        ),
        *(
            FixedLine(None, "task", block.text, block.tokens, "it is a task of this session")
            for blocks in tasks.to_layers().values()
            for block in blocks
        ),
        *(
            FixedLine(None, "text", block.text, block.tokens, "a caller put it into this session or into the request")
            for block in assembly_input.extra
        ),
    ]


class MessageEvidence(NamedTuple):
    """How well each message among the candidates matches the input, by its position in its session."""

    by_position: Mapping[ThreadPosition, float]

    @classmethod
    def of(cls, memories: Iterable[tuple[RetrievedMemory, float, float]]) -> "MessageEvidence":
        """Compute the evidence of messages from (memory, cosine similarity, share of the input's words)."""
        return cls({
            (found.thread_id, found.position): evidence_score(found.kind, cosine, lexical, found.word_count)
            for found, cosine, lexical in memories
            if found.kind == "exchange"
        })  # fmt: skip

    def from_neighbours(self, found: RetrievedMemory) -> float:
        """Return the evidence that the ranking adds to a message from its neighbours; 0 for other memories."""
        return neighbour_score((found.thread_id, found.position), self.by_position) if found.kind == "exchange" else 0.0


def describe_origin(
    found: RetrievedMemory, assembly_input: AssemblyInput, evidence: MessageEvidence, *, cosine: float, lexical: float
) -> str:
    """Return as text why a memory was considered for a context, such as the words by which the search found it."""
    origin = assembly_input.gathering.origins.get(found.memory_id)
    if origin == "standing":
        reason = assembly_input.gathering.reasons.get(found.memory_id, TEXTS[origin])
        return f"{reason}; it ranks with the best match, whatever its own similarity ({cosine:.2f})"
    if origin:
        return TEXTS[origin]
    own = evidence_score(found.kind, cosine, lexical, found.word_count)
    speaker = _SPEAKER.match(found.micro)
    reasons = [
        *(["it stands beside a message that matches the input"] if evidence.from_neighbours(found) > own else []),
        *(
            ["the input names its speaker"]
            if speaker and find_named_speakers(assembly_input.input, [speaker[1]])
            else []
        ),
        *([f"the search found it by {_describe_match(cosine, lexical)}"] if own > 0 else []),
    ]
    return "; ".join(reasons) or "its time or its task fits the input"


def _describe_match(cosine: float, lexical: float) -> str:
    by = [*([f"meaning (cosine {cosine:.2f})"] if cosine > 0 else []), *(["its words"] if lexical > 0 else [])]
    return " and ".join(by)


DIGITS = 6  # of scores and features
STORED_FIELDS = ("memory_id", "state", "quarantined", "detail", "reason", "tokens")
LOST_TEXT = "[the text at that time is gone]"
MAX_LISTED = 8  # matches listed for an ambiguous reference


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateExplanation:
    """A candidate of a context, as it was when the context was built.

    `number` is that of the item in the context, best first; None when left out. `text` is its form in the context, or
    the summary if it was left out, `title` the name and purpose of a procedure. `contributions` are the parts of the
    score by feature. `found_by` says what brought it into the context, `note` that it is from the requested time or of
    the current task. `contradicts` are memories that contradict it and were shown in the same item.
    """

    number: int | None
    memory_id: UUID
    kind: Kind
    layer: str
    state: str
    trust: Trust
    quarantined: bool
    source: str
    found_by: str
    ref: str | None
    sources: Sequence[UUID]
    detail: DetailLevel | None
    reason: str
    note: str | None
    contradicts: Sequence[UUID]
    contradiction_note: str | None
    tokens: int
    score: float
    features: Mapping[str, float]
    contributions: Mapping[str, float]
    title: str | None
    text: str

    @property
    def line(self) -> str:
        """The text in a list; of a procedure, its name and purpose."""
        return self.title or self.text

    @property
    def label(self) -> str:
        """Return number, short id and text as one line, for a list of matches."""
        return f"{self.number or '-'}  {short_id(self.memory_id)}  {self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NearMiss:
    """The best memory of a context section that was left out of the context."""

    score: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemExplanation(CandidateExplanation):
    """Why one memory is in a context or not, with the feature weights and the best memory left out of its section."""

    weights: Mapping[str, float]
    near_miss: NearMiss | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleExplanation:
    """A stored context (bundle) with all memories considered for it, best first, and why each is in it or not."""

    bundle_id: UUID
    created_at: datetime
    as_of: datetime | None
    session: str | None
    input: str
    text: str
    tokens: int
    budget: int
    frame: Mapping[str, Any]
    question: Mapping[str, Any]
    profile: Profile
    layers: Mapping[str, LayerUsage]
    task: Mapping[str, Any] | None
    missing: Mapping[str, str]
    hooks: Sequence[Mapping[str, Any]]
    candidates: Sequence[CandidateExplanation]
    fixed_lines: Annotated[Sequence[FixedLine], Field(exclude=True)] = ()

    @property
    def near_misses(self) -> Mapping[str, CandidateExplanation]:
        """Return, by layer (section), the best candidate that was left out for lack of room."""
        found: dict[str, CandidateExplanation] = {}
        for item in self.candidates:
            if item.reason == NO_ROOM:
                found.setdefault(item.layer, item)
        return found

    def explain_item(self, item_ref: str) -> FixedLine | ItemExplanation:
        """Return why a memory or a line is in the context or not. Raises InputError if none matches, ConflictError if
        several memories do.
        """
        if line := self._find_fixed_line(item_ref):
            return line
        item = self.find_item(item_ref)
        best = self.near_misses.get(item.layer)
        return ItemExplanation(
            **{one.name: getattr(item, one.name) for one in fields(item)},
            weights=self.profile.weights.nonzero,
            near_miss=NearMiss(score=best.score, text=best.line) if best else None,
        )

    def _find_fixed_line(self, item_ref: str) -> FixedLine | None:
        """Return the line of the identity, the brief or the like with this id or text; None if a candidate matches."""
        if any(is_match(item, item_ref) for item in self.candidates for is_match in (_has_ref, _has_id, _has_text)):
            return None
        digits = item_ref.lower().replace("-", "")
        by_id = (one for one in self.fixed_lines if len(digits) >= MIN_ID_DIGITS and _matches_id(one.line_id, digits))
        by_text = (one for one in self.fixed_lines if _matches_text(one.text, item_ref))
        return next(iter((*by_id, *by_text)), None)

    def find_item(self, item_ref: str) -> CandidateExplanation:
        """Return the candidate with this rank, external id, part of the text, id, or first or last digits of the id.

        At least `MIN_ID_DIGITS` digits are needed. Raises InputError if no candidate matches, ConflictError if several
        do.
        """
        if item_ref.isdecimal() and (numbered := [item for item in self.candidates if item.number == int(item_ref)]):
            return numbered[0]
        for is_match in (_has_ref, _has_id, _has_text):
            matches = [item for item in self.candidates if is_match(item, item_ref)]
            if len(matches) > 1:
                listed = [item.label for item in matches[:MAX_LISTED]] + ["…"] * (len(matches) > MAX_LISTED)
                raise ConflictError(
                    f"{len(matches)} memories of this context match {item_ref!r}.",
                    hint="\n  ".join(["Give the number or the id of one of these memories:", *listed]),
                )
            if matches:
                return matches[0]
        if not self.candidates:
            hint = "Ask about something that memory knows, or store it with `newton remember`."
            raise InputError("This context has no memories: nothing was found for its input.", hint=hint)
        last = max((item.number or 0 for item in self.candidates), default=0)
        if item_ref.isdecimal() and not last:
            hint = "Give the id or part of the text of a memory that was left out: `newton why latest` lists them."
            raise InputError(f"This context includes no memory, so none has the number {item_ref}.", hint=hint)
        numbers = f"a number from 1 to {last}, " if last else ""
        raise InputError(
            f"No memory of this context matches {item_ref!r}.",
            hint=f"Give {numbers}an id, its first or last {MIN_ID_DIGITS} digits, a ref, or part of the text.",
        )


def _has_ref(item: CandidateExplanation, item_ref: str) -> bool:
    return item_ref == item.ref


def _has_id(item: CandidateExplanation, item_ref: str) -> bool:
    digits = item_ref.lower().replace("-", "")
    return len(digits) >= MIN_ID_DIGITS and _matches_id(item.memory_id, digits)


def _matches_id(memory_id: UUID | None, digits: str) -> bool:
    return memory_id is not None and (memory_id.hex.startswith(digits) or memory_id.hex.endswith(digits))


def _has_text(item: CandidateExplanation, item_ref: str) -> bool:
    """Return True if the item's text contains the reference. A reference without letters never matches."""
    return _matches_text(item.text, item_ref)


def _matches_text(text: str, item_ref: str) -> bool:
    return any(c.isalpha() for c in item_ref) and item_ref.casefold() in text.casefold()


def explain_bundle(stored: StoredBundle, histories: Mapping[UUID, MemoryHistory]) -> BundleExplanation:
    """Explain for each candidate of a bundle why it was included or left out.

    Deleted memories are skipped. `LOST_TEXT` replaces a text that is no longer stored.
    """
    number, items, evidence = 0, list[CandidateExplanation](), _collect_evidence(stored, histories)
    for candidate in stored.candidates:
        number += candidate.detail is not None
        if history := histories.get(candidate.memory_id):
            others = [histories[other].found for other in _list_contradicted(candidate, stored) if other in histories]
            item = _explain_candidate(candidate, history, stored, evidence)
            item = replace(item, number=number if candidate.detail else None)
            items.append(_add_contradictions(item, others))
    trace = stored.trace
    shown = (one.features for one in items if one.detail)
    return BundleExplanation(
        **{name: getattr(stored, name) for name in ("bundle_id", "created_at", "as_of", "session", "input", "text")},
        tokens=stored.tokens,
        budget=stored.budget,
        frame=trace.frame_choice.as_json(),
        question=trace.assembly_input.gathering.as_json(),
        profile=trace.assembly_input.profile,
        layers=trace.layers,
        task=describe_task(trace.filters, trace.assembly_input, shown),
        missing=trace.missing,
        hooks=[result.as_json() for result in trace.hooks],
        candidates=items,
        fixed_lines=list_fixed_lines(trace.assembly_input),
    )


def _add_contradictions(item: CandidateExplanation, others: Sequence[RetrievedMemory]) -> CandidateExplanation:
    """Return the item with the facts that contradict it, and a text that lists them with short ids."""
    named = "; ".join(f"{short_id(one.memory_id)} ({one.occurred_at:%Y-%m-%d}): {one.micro}" for one in others)
    note = f"unsettled, contradicted by {named}" if named else None
    return replace(item, contradicts=[one.memory_id for one in others], contradiction_note=note)


def _list_contradicted(candidate: StoredCandidate, stored: StoredBundle) -> list[UUID]:
    label = stored.trace.assembly_input.fact_labels.get(candidate.memory_id)
    return [other for other in label.group if other != candidate.memory_id] if label else []


def _collect_evidence(stored: StoredBundle, histories: Mapping[UUID, MemoryHistory]) -> MessageEvidence:
    known = [
        (histories[one.memory_id].found, dict(zip(stored.trace.features, one.features, strict=True)))
        for one in stored.candidates
        if one.memory_id in histories
    ]
    return MessageEvidence.of((found, named.get("cosine", 0.0), named.get("lexical", 0.0)) for found, named in known)


def _explain_candidate(
    stored_candidate: StoredCandidate, history: MemoryHistory, stored: StoredBundle, evidence: MessageEvidence
) -> CandidateExplanation:
    features = align_features(stored_candidate, stored.trace.features)
    lost = history.found._replace(state=stored_candidate.state, micro=LOST_TEXT, summary=LOST_TEXT)
    found = restore_memory(stored_candidate, history) or lost
    inputs, named = stored.trace.assembly_input, dict[str, float](zip(FEATURE_NAMES, features, strict=True))
    contributions = compute_contributions(features, inputs.profile)
    return CandidateExplanation(
        number=None,
        **{name: getattr(stored_candidate, name) for name in STORED_FIELDS},
        kind=found.kind,
        layer=ABOUT_LAYER if stored_candidate.memory_id in inputs.gathering.about else LAYER_BY_KIND[found.kind],
        trust=found.trust,
        source=find_source(stored_candidate.memory_id, history.found.kind, inputs, stored.trace.recent_ids),
        found_by=describe_origin(history.found, inputs, evidence, cosine=named["cosine"], lexical=named["lexical"]),
        ref=found.ref,
        sources=history.sources,
        note=_describe_relation(stored_candidate.memory_id, named, inputs),
        contradicts=(),
        contradiction_note=None,
        score=round(stored_candidate.score, DIGITS),
        features={name: round(value, DIGITS) for name, value in named.items()},
        contributions={name: round(value, DIGITS) for name, value in contributions.items()},
        title=found.micro if found.kind == "procedure" else None,
        text=get_form(found, stored_candidate.detail),
    )


def _describe_relation(memory_id: UUID, features: Mapping[str, float], inputs: AssemblyInput) -> str | None:
    """Return that a memory is from above the project, from the requested time, or of the current task; else None."""
    scope = "stored above the project" if memory_id in inputs.gathering.inherited else None
    phrases = ", ".join(span.phrase for span in inputs.time_ranges)
    time = f"in the requested time: {phrases}" if features["timely"] else None
    task = "belongs to the current task" if features["task"] else None
    return "; ".join(filter(None, (scope, time, task))) or None
