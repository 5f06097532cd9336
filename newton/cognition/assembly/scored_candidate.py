"""Candidates of a context with score and placement."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from newton.cognition.assembly.artifact_selection import ALREADY_SENT
from newton.cognition.assembly.fact_labels import FactLabel, render_fact
from newton.cognition.assembly.fill import DetailLevel, FillCandidate, FillPlacement
from newton.cognition.assembly.render import LAYERS_BY_DAY
from newton.cognition.scoring.score import FEATURE_NAMES, ScoredMemory
from newton.cognition.sources.session_artifacts import ArtifactPolicy
from newton.memory.representations import split_date_prefix
from newton.memory.search_types import RetrievedMemory

if TYPE_CHECKING:
    from newton.client.context import LayerTokens

STANDS = "stands since an earlier input"
SHOWN_TOGETHER = "shown in one item with a fact that it contradicts"
NO_PASSAGE_ROOM = "no room for another passage of a document"
REPEATS_FACT = "repeats a fact of the context"


class ScoredCandidate(NamedTuple):
    """A memory that was considered for a context, with score, placement and, for a fact, its label."""

    scored: ScoredMemory
    placement: FillPlacement
    label: FactLabel | None = None

    @property
    def memory_id(self) -> UUID:
        return self.placement.memory_id

    @property
    def kind(self) -> str:
        return self.scored.found.kind

    @property
    def layer(self) -> str:
        return self.scored.layer

    @property
    def detail(self) -> DetailLevel | None:
        """Return the level of detail in the context; None if left out."""
        return self.placement.detail

    @property
    def tokens(self) -> int:
        return self.placement.tokens

    @property
    def score(self) -> float:
        return self.scored.score

    @property
    def features(self) -> Mapping[str, float]:
        return dict(zip(FEATURE_NAMES, self.scored.features, strict=True))

    @property
    def refs(self) -> tuple[str, ...]:
        """Return the external id that the caller gave to the memory's source, as a tuple of one or none."""
        return (self.scored.found.ref,) if self.scored.found.ref else ()

    @property
    def reason(self) -> str:
        return self.placement.reason

    @property
    def text(self) -> str:
        """Return the text in its form in the context, with a date prefix; the summary if it is left out."""
        return get_form(self.scored.found, self.detail)

    @property
    def is_cut(self) -> bool:
        """Return True if the context shows only a part of a long text."""
        return is_cut(self.scored.found, self.detail)

    @property
    def contradicted_ids(self) -> tuple[UUID, ...]:
        """Return the ids of the facts that contradict this one and are shown in the same item."""
        return tuple(other for other in self.label.group if other != self.memory_id) if self.label else ()

    @property
    def list_line(self) -> str:
        return format_list_line(self.scored.found, self.text)

    @property
    def day(self) -> str | None:
        """Return the day heading above the candidate; None in layers without day headings."""
        return self.scored.found.day if self.layer in LAYERS_BY_DAY else None

    @property
    def context_line(self) -> str:
        """Return the line in the context: with the label, and without a date prefix below a day heading."""
        text = split_date_prefix(self.text)[1] if self.day else self.text
        return render_fact(self.label, text) if self.label else text


def get_form(found: RetrievedMemory, detail: DetailLevel | None) -> str:
    """Return the text of a memory at a level of detail; the summary for None and for a form that is not stored."""
    match detail:
        case "micro":
            return found.micro
        case "part":
            return found.window_line or found.summary
        case "full":
            return found.full_line or found.summary
        case _:
            return found.summary


def is_cut(found: RetrievedMemory, detail: DetailLevel | None) -> bool:
    """Return True if this level of detail shows only a part of a long text."""
    if found.full_tokens is None or detail == "full":
        return False
    return detail != "summary" or found.summary_tokens < found.full_tokens


def format_list_line(found: RetrievedMemory, text: str) -> str:
    """Return the line of a memory in a list: its text, or for a procedure its name and purpose."""
    return found.micro if found.kind == "procedure" else text


def reject_repeated_facts(
    ordered: Sequence[ScoredMemory],
    rejected: Mapping[UUID, FillPlacement],
    labels: Mapping[UUID, FactLabel],
    relation_evidence: Mapping[UUID, Sequence[UUID]],
) -> dict[UUID, FillPlacement]:
    """Return the rejected candidates and, in addition, those that another candidate states or shows.

    These are relations stated by a fact that is placed, or left out because its message is sent. Of facts that
    contradict each other, they are all but the best one, whose item shows all of them.
    """
    followers = dict[UUID, FillPlacement]()
    for memory_id in (s.found.memory_id for s in ordered):
        if memory_id not in rejected and memory_id not in followers and (label := labels.get(memory_id)):
            others = (other for other in label.group if other != memory_id)
            followers |= {other: FillPlacement(other, None, 0, SHOWN_TOGETHER) for other in others}
    accepted = {s.found.memory_id for s in ordered} - (rejected.keys() - followers.keys())
    stated = accepted | {placed.memory_id for placed in rejected.values() if placed.reason == ALREADY_SENT}
    repeated = {
        relation_id: FillPlacement(relation_id, None, 0, REPEATS_FACT)
        for relation_id, fact_ids in relation_evidence.items()
        if relation_id in accepted and not stated.isdisjoint(fact_ids)
    }
    return {**rejected, **followers, **repeated}


def reject_surplus_passages(
    ordered: Sequence[ScoredMemory], rejected: Mapping[UUID, FillPlacement], max_passages: int
) -> dict[UUID, FillPlacement]:
    """Return the passages of documents beyond the best `max_passages`."""
    ids = [s.found.memory_id for s in ordered if s.found.kind == "passage" and s.found.memory_id not in rejected]
    reason = f"not among the best {max_passages} passages of documents"
    return {memory_id: FillPlacement(memory_id, None, 0, reason) for memory_id in ids[max_passages:]}


def limit_new_passages(
    new: Sequence[ScoredCandidate], known: Sequence[ScoredCandidate], policy: ArtifactPolicy
) -> list[ScoredCandidate]:
    """Return the new candidates without the passages that, with those of the `known` ones, exceed the limits."""
    shown = [c for c in known if c.kind == "passage" and c.detail]
    count, tokens, limited = len(shown), sum(c.tokens for c in shown), list[ScoredCandidate]()
    for c in new:
        is_passage = c.kind == "passage" and c.detail is not None
        is_surplus = count >= policy.max_selected or tokens + c.tokens > policy.max_passage_tokens
        placement = FillPlacement(c.memory_id, None, 0, NO_PASSAGE_ROOM) if is_passage and is_surplus else c.placement
        limited.append(c._replace(placement=placement))
        if is_passage and not is_surplus:
            count, tokens = count + 1, tokens + c.tokens
    return limited


def resize_long_candidate(
    candidate: FillCandidate, found: RetrievedMemory, whole_extra: int, cut_extra: int
) -> FillCandidate:
    """Return the candidate with the sizes of a long text. `whole_extra` tokens are added to a whole text, for its label
    and id, and `cut_extra` to a form that is cut.
    """
    return candidate._replace(
        summary_tokens=found.summary_tokens + (cut_extra if is_cut(found, "summary") else whole_extra),
        micro_tokens=found.micro_tokens + cut_extra,
        part_tokens=found.window.tokens + cut_extra if found.window else None,
        full_tokens=None if found.full_text is None or found.full_tokens is None else found.full_tokens + whole_extra,
    )


def label_candidates(
    candidates: Sequence[ScoredCandidate], labels: Mapping[UUID, FactLabel]
) -> Sequence[ScoredCandidate]:
    """Add the labels to facts. Facts in one item get the form (summary or micro) of the fact that was placed."""
    if not labels:
        return candidates
    labelled = [c._replace(label=labels.get(c.memory_id)) for c in candidates]
    leaders = [c for c in labelled if c.label and c.label.group and c.reason != SHOWN_TOGETHER and c.detail]
    details = {memory_id: c.detail for c in leaders if c.label for memory_id in c.label.group}
    return [
        c._replace(placement=c.placement._replace(detail=details.get(c.memory_id))) if c.reason == SHOWN_TOGETHER else c
        for c in labelled
    ]


@dataclass(frozen=True, slots=True)
class LayerUsage:
    """The tokens of a layer, header included.

    `share` is allocated to it first, `ceiling` is its maximum. `used` exceeds `share` only if other layers leave tokens
    unused.
    """

    share: int
    ceiling: int
    used: int

    def as_json(self) -> "LayerTokens":
        return {"share": self.share, "ceiling": self.ceiling, "used": self.used}
