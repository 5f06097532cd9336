"""Comparison of two stored contexts. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from newton.cognition.assembly.fill import format_verdict
from newton.cognition.bundles.explanation import BundleExplanation, CandidateExplanation
from newton.cognition.bundles.replay import diff_profiles
from newton.cognition.bundles.trace import StoredBundle

NOT_FOUND = "not a candidate"
TOLERANCE = 0.0005  # smaller differences of scores and features are ignored


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A setting (such as the frame or the budget) that differs between two contexts."""

    name: str
    one: str
    other: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OnlyInOne:
    """A memory that only one of two contexts shows.

    `here` is the reason why that context shows it, `there` the reason why the other context does not.
    """

    memory_id: UUID
    kind: str
    text: str
    here: str
    there: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedItemChange:
    """A memory that both contexts show; `differs` maps attributes to the values in the first and the second one."""

    memory_id: UUID
    kind: str
    text: str
    differs: Mapping[str, tuple[object, object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleDiff:
    """The differences between two contexts.

    `only_one` and `only_other` are the memories shown only in the first or the second, `moved` those shown in both, but
    with another rank, text or score.
    """

    one: UUID
    other: UUID
    settings: Sequence[FieldChange]
    only_one: Sequence[OnlyInOne]
    only_other: Sequence[OnlyInOne]
    moved: Sequence[SharedItemChange]

    @property
    def is_identical(self) -> bool:
        return not (self.settings or self.only_one or self.only_other or self.moved)


class ExplainedBundle(NamedTuple):
    """A stored context and its explanation."""

    stored: StoredBundle
    explanation: BundleExplanation


def diff_bundles(first: ExplainedBundle, second: ExplainedBundle) -> BundleDiff:
    """Compare the settings and the items of two contexts."""
    here, there = _index_shown(first), _index_shown(second)
    moved = [
        SharedItemChange(memory_id=memory_id, kind=item.kind, text=item.line, differs=differences)
        for memory_id, item in here.items()
        if memory_id in there and (differences := _compare_items(item, there[memory_id]))
    ]
    return BundleDiff(
        one=first.stored.bundle_id,
        other=second.stored.bundle_id,
        settings=list(_compare_fields(first.stored, second.stored)),
        only_one=_find_missing(first, second),
        only_other=_find_missing(second, first),
        moved=moved,
    )


def _index_shown(bundle: ExplainedBundle) -> dict[UUID, CandidateExplanation]:
    return {item.memory_id: item for item in bundle.explanation.candidates if item.detail}


def _find_missing(here: ExplainedBundle, there: ExplainedBundle) -> list[OnlyInOne]:
    """Return the memories that the first context shows and the second does not, each with both reasons."""
    verdicts = {item.memory_id: _describe_verdict(item) for item in there.explanation.candidates}
    verdicts |= {focus.memory_id: "shown in Current Focus" for focus in there.stored.focus}
    return [
        OnlyInOne(
            memory_id=memory_id,
            kind=item.kind,
            text=item.line,
            here=_describe_verdict(item),
            there=verdicts.get(memory_id, NOT_FOUND),
        )
        for memory_id, item in _index_shown(here).items()
        if memory_id not in _index_shown(there)
    ]


def _describe_verdict(item: CandidateExplanation) -> str:
    return format_verdict(item.detail, item.reason)


def _compare_items(one: CandidateExplanation, other: CandidateExplanation) -> dict[str, tuple[object, object]]:
    pairs: dict[str, tuple[object, object]] = {
        "shown as": (one.detail, other.detail),
        "text": (one.text, other.text),
        "state": (one.state, other.state),
        "rank": (one.number, other.number),
        "score": (round(one.score, 4), round(other.score, 4)),
        **{name: (round(value, 4), round(other.features[name], 4)) for name, value in one.features.items()},
    }
    return {name: pair for name, pair in pairs.items() if not _is_same_value(*pair)}


def _is_same_value(first: object, second: object) -> bool:
    if isinstance(first, float) and isinstance(second, float):
        return abs(first - second) < TOLERANCE
    return first == second


def _compare_fields(first: StoredBundle, second: StoredBundle) -> Iterator[FieldChange]:
    """Yield the settings and the numbers that differ between two bundles."""
    a, b = first.trace, second.trace
    pairs = [
        ("input", first.input, second.input),
        ("as of", first.as_of, second.as_of),
        ("frame", first.frame, second.frame),
        ("frame version", a.frame_edition, b.frame_edition),
        ("profile", first.profile, second.profile),
        ("budget", first.budget, second.budget),
        ("tokens", first.tokens, second.tokens),
        ("code", a.rules_hash, b.rules_hash),
        *((f"layer {name}", a.layers[name].share, b.layers[name].share) for name in a.layers if name in b.layers),
        *((f"source {name}", a.missing.get(name), b.missing.get(name)) for name in sorted({*a.missing, *b.missing})),
    ]
    yield from (FieldChange(name, _format_value(x), _format_value(y)) for name, x, y in pairs if x != y)
    changes = diff_profiles(a.assembly_input.profile, b.assembly_input.profile)
    if first.profile == second.profile and changes:
        yield FieldChange("profile", first.profile, "; ".join(changes))


def _format_value(value: object) -> str:
    return "-" if value is None else str(value)
