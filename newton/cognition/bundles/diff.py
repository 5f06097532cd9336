"""Comparison of two contexts. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple
from uuid import UUID

from newton.cognition.bundles.explanation import BundleExplanation, CandidateExplanation
from newton.cognition.bundles.replay import diff_profiles, format_verdict
from newton.cognition.bundles.trace import StoredBundle

NOT_FOUND = "not found there"
TOLERANCE = 0.0005  # smaller differences of scores and features are ignored


class FieldChange(NamedTuple):
    """A setting that differs between two contexts."""

    name: str
    one: str
    other: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OnlyInOne:
    """A memory in one context only, with the verdicts of both contexts."""

    memory_id: UUID
    kind: str
    text: str
    here: str
    there: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedItemChange:
    """A memory in both contexts, and its differing attributes."""

    memory_id: UUID
    kind: str
    text: str
    differs: Mapping[str, tuple[object, object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleDiff:
    """The differences of two contexts. `only_one` and `only_other` are the memories in one of them."""

    one: UUID
    other: UUID
    settings: Sequence[FieldChange]
    only_one: Sequence[OnlyInOne]
    only_other: Sequence[OnlyInOne]
    moved: Sequence[SharedItemChange]

    @property
    def is_identical(self) -> bool:
        return not (self.settings or self.only_one or self.only_other or self.moved)

    def as_json(self) -> dict[str, Any]:
        plain = asdict(self)
        plain["settings"] = [setting._asdict() for setting in self.settings]
        return (
            plain
            | {"one": str(self.one), "other": str(self.other)}
            | {
                part: [entry | {"memory_id": str(entry["memory_id"])} for entry in plain[part]]
                for part in ("only_one", "only_other", "moved")
            }
        )


def diff_bundles(first: BundleExplanation, second: BundleExplanation) -> BundleDiff:
    """Compare settings and items of two contexts."""
    here, there = _index_shown(first), _index_shown(second)
    both = [(item, there[memory_id]) for memory_id, item in here.items() if memory_id in there]
    moved = [
        SharedItemChange(memory_id=a.stored_candidate.memory_id, kind=a.found.kind, text=a.list_line, differs=d)
        for a, b in both
        if (d := _compare_items(a, b))
    ]
    return BundleDiff(
        one=first.stored.bundle_id,
        other=second.stored.bundle_id,
        settings=list(_compare_fields(first.stored, second.stored)),
        only_one=_find_missing(first, second),
        only_other=_find_missing(second, first),
        moved=moved,
    )


def _index_shown(explanation: BundleExplanation) -> dict[UUID, CandidateExplanation]:
    return {item.stored_candidate.memory_id: item for item in explanation.items if item.stored_candidate.detail}


def _find_missing(here: BundleExplanation, there: BundleExplanation) -> list[OnlyInOne]:
    verdicts = {
        i.stored_candidate.memory_id: format_verdict(i.stored_candidate.detail, i.stored_candidate.reason)
        for i in there.items
    }
    focus = {kept.memory_id: "in focus" for kept in there.stored.focus}
    told = {**verdicts, **focus}
    return [
        OnlyInOne(
            memory_id=memory_id,
            kind=item.found.kind,
            text=item.list_line,
            here=format_verdict(item.stored_candidate.detail, item.stored_candidate.reason),
            there=told.get(memory_id, NOT_FOUND),
        )
        for memory_id, item in _index_shown(here).items()
        if memory_id not in _index_shown(there)
    ]


def _compare_items(first: CandidateExplanation, second: CandidateExplanation) -> dict[str, tuple[object, object]]:
    pairs: dict[str, tuple[object, object]] = {
        "shown as": (first.stored_candidate.detail, second.stored_candidate.detail),
        "words": (first.text, second.text),
        "state": (first.stored_candidate.state, second.stored_candidate.state),
        "place": (first.rank, second.rank),
        "score": (round(first.stored_candidate.score, 4), round(second.stored_candidate.score, 4)),
        **{name: (round(value, 4), round(second.features[name], 4)) for name, value in first.features.items()},
    }
    return {name: pair for name, pair in pairs.items() if not _is_same_value(*pair)}


def _is_same_value(first: object, second: object) -> bool:
    if isinstance(first, float) and isinstance(second, float):
        return abs(first - second) < TOLERANCE
    return first == second


def _compare_fields(first: StoredBundle, second: StoredBundle) -> Iterator[FieldChange]:
    a, b = first.trace, second.trace
    pairs = [
        ("input", first.input, second.input),
        ("as of", first.as_of, second.as_of),
        ("frame", first.frame, second.frame),
        ("frame's edition", a.frame_edition, b.frame_edition),
        ("profile", first.profile, second.profile),
        ("budget", first.budget, second.budget),
        ("tokens", first.tokens, second.tokens),
        ("code", a.rules_hash, b.rules_hash),
        *(
            (f"layer {name}", layer.budget, b.layers[name].budget)
            for name, layer in a.layers.items()
            if name in b.layers
        ),
        *((f"source {name}", a.missing.get(name), b.missing.get(name)) for name in sorted({*a.missing, *b.missing})),
    ]
    yield from (FieldChange(name, _format_value(x), _format_value(y)) for name, x, y in pairs if x != y)
    if first.profile == second.profile and (
        changed := diff_profiles(a.assembly_input.profile, b.assembly_input.profile)
    ):
        yield FieldChange("profile", first.profile, "; ".join(changed))


def _format_value(value: object) -> str:
    return "-" if value is None else str(value)
