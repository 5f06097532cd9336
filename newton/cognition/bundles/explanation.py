"""Explanation of a stored context: why each candidate was included or left out. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from newton.cognition.assembly.fill import NO_ROOM
from newton.cognition.assembly.scored_candidate import format_list_line, get_form
from newton.cognition.bundles.bundle import describe_task, find_source
from newton.cognition.bundles.origin_texts import FixedLine, MessageEvidence, describe_origin, list_fixed_lines
from newton.cognition.bundles.replay import MemoryHistory, align_features, restore_memory
from newton.cognition.bundles.trace import StoredBundle, StoredCandidate
from newton.cognition.scoring.score import FEATURE_NAMES, LAYER_BY_KIND, compute_contributions
from newton.errors import ConflictError, InputError
from newton.memory.lookup import MIN_ID_DIGITS, short_id
from newton.memory.search_types import RetrievedMemory

LOST_TEXT = "[the text at that time is gone]"
MAX_LISTED = 8  # matches listed for an ambiguous reference


class CandidateExplanation(NamedTuple):
    """A candidate of a context, as it was when the context was built.

    `rank` numbers the items of the context, best first; None when left out. `contributions` are the parts of the score
    by feature. `found_by` says what brought it into the context. `contradictions` are memories that contradict it and
    were shown in the same item.
    """

    rank: int | None
    stored_candidate: StoredCandidate
    found: RetrievedMemory
    source: str
    sources: tuple[UUID, ...]
    features: Mapping[str, float]
    contributions: Mapping[str, float]
    found_by: str
    time_range_text: str = ""
    contradictions: tuple[RetrievedMemory, ...] = ()

    @property
    def contradiction_text(self) -> str | None:
        """Return a text that lists the facts that contradict this one, with short ids; None without any."""
        named = "; ".join(f"{short_id(f.memory_id)} ({f.occurred_at:%Y-%m-%d}): {f.micro}" for f in self.contradictions)
        return f"unsettled, contradicted by {named}" if named else None

    @property
    def timely_reason(self) -> str | None:
        """Return a note for a memory from the time that the input asks for; None for other memories."""
        return f"in the requested time: {self.time_range_text}" if self.features["timely"] else None

    @property
    def note(self) -> str | None:
        """Return that a memory is from the requested time or belongs to the current task; None if neither is true."""
        task = "belongs to the current task" if self.features["task"] else None
        return "; ".join(filter(None, (self.timely_reason, task))) or None

    @property
    def layer(self) -> str:
        return LAYER_BY_KIND[self.found.kind]

    @property
    def text(self) -> str:
        """Return the text in its form in the context; the summary if it was left out."""
        return get_form(self.found, self.stored_candidate.detail)

    @property
    def list_line(self) -> str:
        return format_list_line(self.found, self.text)

    @property
    def label(self) -> str:
        """Return rank, short id and micro form as one line, for a list of matches."""
        return f"{self.rank or '-'}  {short_id(self.stored_candidate.memory_id)}  {self.found.micro}"

    def as_json(self) -> dict[str, Any]:
        stored, found = self.stored_candidate, self.found
        return {
            "number": self.rank,
            "memory_id": str(stored.memory_id),
            "kind": found.kind,
            "layer": self.layer,
            "state": stored.state,
            "trust": found.trust,
            "quarantined": stored.quarantined,
            "source": self.source,
            "found_by": self.found_by,
            "refs": [found.ref] if found.ref else [],
            "sources": [str(source) for source in self.sources],
            "detail": stored.detail,
            "reason": stored.reason,
            "contradicts": [str(other.memory_id) for other in self.contradictions],
            "of_the_time": self.time_range_text if self.features["timely"] else None,
            "of_the_task": bool(self.features["task"]),
            "tokens": stored.tokens,
            "score": round(stored.score, 6),
            "features": {name: round(value, 6) for name, value in self.features.items()},
            "contributions": {name: round(value, 6) for name, value in self.contributions.items()},
            "text": self.text,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleExplanation:
    """A stored bundle with explanations of all its candidates, best first."""

    stored: StoredBundle
    items: Sequence[CandidateExplanation]

    @property
    def near_misses(self) -> Mapping[str, CandidateExplanation]:
        """Return, by layer (section), the best candidate that was left out for lack of room."""
        found: dict[str, CandidateExplanation] = {}
        for item in self.items:
            if item.stored_candidate.reason == NO_ROOM:
                found.setdefault(item.layer, item)
        return found

    def find_fixed_line(self, item_ref: str) -> FixedLine | None:
        """Return the line of the identity, the brief or the like with this id or text; None if a candidate matches."""
        if any(is_match(item, item_ref) for item in self.items for is_match in (_has_ref, _has_id, _has_text)):
            return None
        lines, digits = list_fixed_lines(self.stored.trace.assembly_input), item_ref.lower().replace("-", "")
        by_id = (one for one in lines if len(digits) >= MIN_ID_DIGITS and _matches_id(one.line_id, digits))
        by_text = (one for one in lines if _matches_text(one.text, item_ref))
        return next(iter((*by_id, *by_text)), None)

    def find_item(self, item_ref: str) -> CandidateExplanation:
        """Return the candidate with this rank, external id, part of the text, id, or first or last digits of the id.

        At least `MIN_ID_DIGITS` digits are needed. Raises InputError if no candidate matches, ConflictError if several
        do.
        """
        if item_ref.isdecimal() and (numbered := [item for item in self.items if item.rank == int(item_ref)]):
            return numbered[0]
        for is_match in (_has_ref, _has_id, _has_text):
            matches = [item for item in self.items if is_match(item, item_ref)]
            if len(matches) > 1:
                listed = [item.label for item in matches[:MAX_LISTED]] + ["…"] * (len(matches) > MAX_LISTED)
                raise ConflictError(
                    f"{len(matches)} memories of this context match {item_ref!r}.",
                    hint="\n  ".join(["Give the number or the id of one of these memories:", *listed]),
                )
            if matches:
                return matches[0]
        if not self.items:
            hint = "Ask about something that memory knows, or store it with `newton remember`."
            raise InputError("This context has no memories: nothing was found for its input.", hint=hint)
        last = max((item.rank or 0 for item in self.items), default=0)
        if item_ref.isdecimal() and not last:
            hint = "Give the id or part of the text of a memory that was left out: `newton why latest` lists them."
            raise InputError(f"This context includes no memory, so none has the number {item_ref}.", hint=hint)
        numbers = f"a number from 1 to {last}, " if last else ""
        raise InputError(
            f"No memory of this context matches {item_ref!r}.",
            hint=f"Give {numbers}an id, its first or last {MIN_ID_DIGITS} digits, a ref, or part of the text.",
        )

    def as_json(self) -> dict[str, Any]:
        stored, trace = self.stored, self.stored.trace
        return {
            "bundle_id": str(stored.bundle_id),
            "created_at": stored.created_at.isoformat(),
            "as_of": stored.as_of and stored.as_of.isoformat(),
            "session": stored.session,
            "input": stored.input,
            "text": stored.text,
            "tokens": stored.tokens,
            "budget": stored.budget,
            "frame": trace.frame_choice.as_json(),
            "question": trace.assembly_input.gathering.as_json(),
            "profile": trace.assembly_input.profile.model_dump(mode="json"),
            "layers": {name: layer.as_json() for name, layer in trace.layers.items()},
            "task": describe_task(
                trace.filters, trace.assembly_input, (one.features for one in self.items if one.stored_candidate.detail)
            ),
            "missing": dict(trace.missing),
            "hooks": [result.as_json() for result in trace.hooks],
            "candidates": [item.as_json() for item in self.items],
            "missed": {layer: str(item.stored_candidate.memory_id) for layer, item in self.near_misses.items()},
        }


def _has_ref(item: CandidateExplanation, item_ref: str) -> bool:
    return item_ref == item.found.ref


def _has_id(item: CandidateExplanation, item_ref: str) -> bool:
    digits = item_ref.lower().replace("-", "")
    return len(digits) >= MIN_ID_DIGITS and _matches_id(item.stored_candidate.memory_id, digits)


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
    rank, items, evidence = 0, list[CandidateExplanation](), _collect_evidence(stored, histories)
    for candidate in stored.candidates:
        rank += candidate.detail is not None
        if history := histories.get(candidate.memory_id):
            others = tuple(
                histories[other].found for other in _list_contradicted(candidate, stored) if other in histories
            )
            explained = _explain_candidate(candidate, history, stored, evidence)
            items.append(explained._replace(rank=rank if candidate.detail else None, contradictions=others))
    return BundleExplanation(stored=stored, items=items)


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
    inputs, named = stored.trace.assembly_input, dict[str, float](zip(FEATURE_NAMES, features, strict=True))
    return CandidateExplanation(
        None,
        stored_candidate,
        restore_memory(stored_candidate, history) or lost,
        find_source(stored_candidate.memory_id, history.found.kind, inputs, stored.trace.recent_ids),
        history.sources,
        named,
        compute_contributions(features, inputs.profile),
        describe_origin(history.found, inputs, evidence, cosine=named["cosine"], lexical=named["lexical"]),
        ", ".join(span.phrase for span in stored.trace.assembly_input.time_ranges),
    )
