"""Stored contexts as text for people: lists, explanations, replays and differences."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from newton.cognition.assembly.fill import format_verdict
from newton.cognition.bundles.bundle_store import BundleSummary
from newton.cognition.bundles.diff import BundleDiff, OnlyInOne
from newton.cognition.bundles.explanation import BundleExplanation, FixedLine, ItemExplanation
from newton.cognition.bundles.replay import ReplayResult
from newton.content.profiles import Profile
from newton.memory.lookup import short_id
from newton.memory.source_marks import format_trust
from newton.operations.contexts.context_text import (
    format_frame,
    format_frame_features,
    format_layer_tokens,
    format_question,
)
from newton.operations.text_format import pluralize, truncate

if TYPE_CHECKING:  # the client loads slowly
    from newton.client.context import FrameSelection, QuestionReport

MAX_INPUT_CHARS, MAX_EXPLAINED_CHARS = 60, 200


def format_summary(one: BundleSummary) -> str:
    """Format a stored context as one line."""
    as_of = f" as of {one.as_of:%Y-%m-%d %H:%M}" if one.as_of else ""
    return (
        f"{short_id(one.bundle_id)}  {one.created_at:%Y-%m-%d %H:%M}{as_of}  {one.session or '-'}  {one.frame}"
        f"  {one.tokens}/{one.budget}  {truncate(one.input, MAX_INPUT_CHARS)}"
    )


def format_explanation(explained: BundleExplanation | ItemExplanation | FixedLine) -> str:
    """Format why the memories of a context, or one memory or line, are in it or not."""
    if isinstance(explained, BundleExplanation):
        return _format_bundle(explained)
    if isinstance(explained, FixedLine):
        place = f"{explained.kind} {explained.line_id or ''}"
        return f"{explained.text.strip()}\n{place}\nwhy: {explained.found_by} · {explained.tokens} tokens"
    return _format_item(explained)


def _format_bundle(bundle: BundleExplanation) -> str:
    """Format the explanation of a context: frame, profile and, by layer (section), the items and the best left out."""
    as_of = f" · as of {bundle.as_of:%Y-%m-%d %H:%M}" if bundle.as_of else ""
    session = f" · session {bundle.session}" if bundle.session else ""
    lines = [
        f"bundle {bundle.bundle_id}",
        f"{bundle.created_at:%Y-%m-%d %H:%M}{as_of}{session} · {bundle.tokens} of {bundle.budget} tokens",
        f"input: {truncate(bundle.input, MAX_EXPLAINED_CHARS)}",
        *_format_choice(cast("FrameSelection", bundle.frame)),
        format_question(cast("QuestionReport", bundle.question)),
        f"profile {bundle.profile.name}: {_format_weights(bundle.profile)}",
        *(f"{source} not available: {reason}" for source, reason in bundle.missing.items()),
    ]
    for name, layer in bundle.layers.items():
        if layer.used or name in bundle.near_misses:
            lines += ["", format_layer_tokens(name, layer.as_json()), *_format_layer(bundle, name)]
    out = Counter(item.reason for item in bundle.candidates if not item.detail)
    if out:
        reasons = ", ".join(f"{number} {reason}" for reason, number in out.most_common())
        lines += ["", f"{out.total()} left out: {reasons}"]
    return "\n".join(lines)


def _format_choice(frame: "FrameSelection") -> list[str]:
    evidence: Mapping[str, Mapping[str, float]] = frame["evidence"]
    return [
        format_frame(frame),
        f"  reason: {frame['reason']}",
        *format_frame_features(frame),
        *(
            f"  {name}: {_format_evidence(evidence[name])}"
            for name in (frame["name"], frame["runner_up"])
            if name in evidence
        ),
    ]


def _format_weights(profile: Profile) -> str:
    return profile.expression or ", ".join(f"{name} {weight:g}" for name, weight in profile.weights.nonzero.items())


def _format_evidence(evidence: Mapping[str, float]) -> str:
    return (
        f"patterns {evidence['pattern']:.2f}, examples {evidence['example']:.2f},"
        f" prior of the session {evidence['prior']:g}"
    )


def _format_layer(bundle: BundleExplanation, name: str) -> list[str]:
    lines: list[str] = []
    for item in bundle.candidates:
        if item.layer == name and item.number:
            reason = "; ".join(filter(None, (item.reason, item.note, item.contradiction_note)))
            lines.append(f"  {item.number:>3}. {item.score:.3f}  {item.line}  ({item.tokens} tokens, {reason})")
    if missed := bundle.near_misses.get(name):
        lines.append(f"  best left out: {missed.score:.3f}  {missed.line}")
    return lines


def _format_item(item: ItemExplanation) -> str:
    """Format why a memory is in a context or not: its state, its score by feature, and the best memory left out."""
    parts = sorted(item.contributions.items(), key=lambda part: -abs(part[1]))
    assigned = {"similarity": "as the best match"} if item.source == "standing" else {}
    weights = {name: f" × {weight:g}" for name, weight in item.weights.items()}
    trust = format_trust(item.trust, kind=item.kind, quarantined=item.quarantined)
    lines = [
        item.line,
        f"{item.kind} {item.memory_id}" + (f" · ref {item.ref}" if item.ref else ""),
        f"{item.state}{', quarantined' if item.quarantined else ''} · trust {trust}",
        f"why: {item.found_by}",
        *([item.note] if item.note else []),
        *([item.contradiction_note] if item.contradiction_note else []),
        *([f"derived from {', '.join(str(source) for source in item.sources)}"] if item.sources else []),
        f"{format_verdict(item.detail, item.reason)} · {item.tokens} tokens · score {item.score:.4f} =",
        *(
            f"  {value:+.4f}  {assigned.get(name, name)} {item.features[name]:.3f}{weights.get(name, '')}"
            for name, value in parts
        ),
        f"  (cosine {item.features['cosine']:.3f}, words {item.features['lexical']:.3f})",
    ]
    if item.near_miss:
        lines.append(f"best left out of {item.layer}: {item.near_miss.score:.4f}  {item.near_miss.text}")
    return "\n".join(lines)


def format_replay(result: ReplayResult) -> str:
    """Format what differs between a rebuilt context and the stored one, and later changes that do not affect it."""
    items, tokens = pluralize(result.items, "item"), pluralize(result.tokens, "token")
    name = f"{short_id(result.bundle_id)} of {result.created_at:%Y-%m-%d %H:%M}"
    text = truncate(result.input, MAX_INPUT_CHARS)
    return "\n".join([
        *(f"{one.field}: {one.reason}" for one in result.differences),
        f'{name}, {tokens}, {items}, "{text}": {"identical" if result.identical else "different"}',
        *(f"(Since the context was built, {change}.)" for change in result.changes_since),
    ])  # fmt: skip


def format_diff(diff: BundleDiff) -> str:
    """Format the settings and memories in which two contexts differ."""
    if diff.is_identical:
        return "The contexts are identical."
    lines = [f"{change.name}: {change.one} → {change.other}" for change in diff.settings]
    lines += _format_missing_items(f"only in {short_id(diff.one)}", diff.only_one)
    lines += _format_missing_items(f"only in {short_id(diff.other)}", diff.only_other)
    if diff.moved:
        lines.append("\nin both")
    for moved in diff.moved:
        lines.append(f"  {short_id(moved.memory_id)}  {moved.text}")
        lines += [f"            {name} {one} → {other}" for name, (one, other) in moved.differs.items()]
    return "\n".join(lines)


def _format_missing_items(title: str, items: Sequence[OnlyInOne]) -> list[str]:
    if not items:
        return []
    lines = [f"\n{title}"]
    for one in items:
        lines += [
            f"  {short_id(one.memory_id)}  {one.text}",
            f"            in this context: {one.here}; in the other: {one.there}",
        ]
    return lines
