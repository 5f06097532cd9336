"""Replay of a stored bundle from its features and former texts, with the mismatches. Pure."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from newton.cognition.assembly.assembler import AssemblyResult, assemble, compose
from newton.cognition.assembly.fill import DetailLevel, Placement
from newton.cognition.assembly.scored_candidate import ScoredCandidate
from newton.cognition.bundles.trace import StoredBundle, StoredCandidate, compute_checksum
from newton.cognition.scoring.score import FEATURE_NAMES, NEUTRAL_FEATURES, ScoredMemory, score_from_features
from newton.content.profiles import Profile
from newton.memory.lookup import short_id
from newton.memory.memory import ShortForms
from newton.memory.search_types import RetrievedMemory

SCORE_TOLERANCE = 1e-6  # relative; scores are stored as float32


class MemoryHistory(NamedTuple):
    """The current state of a memory, all its short forms, oldest first, and its sources."""

    found: RetrievedMemory
    forms: Sequence[ShortForms]
    sources: tuple[UUID, ...]


class ReplayMismatch(NamedTuple):
    """A part of the replay that differs from the stored bundle."""

    what: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayResult:
    """A replayed bundle. Metadata are as stored.

    `differences` are the mismatches. `since` lists later changes of code, frame and profile, which do not affect the
    replay.
    """

    bundle_id: UUID
    created_at: datetime
    input: str
    tokens: int
    items: int
    text: str
    differences: tuple[ReplayMismatch, ...]
    since: tuple[str, ...]

    @property
    def identical(self) -> bool:
        return not self.differences


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentRules:
    """The code version, frame and profile in use today; None when deleted."""

    rules_hash: str
    frame_edition: str | None
    profile: Profile | None


def restore_memory(stored_candidate: StoredCandidate, history: MemoryHistory) -> RetrievedMemory | None:
    """Return the memory as the bundle used it; None when its former text is gone."""
    matching = _match_forms(stored_candidate, history)
    if not matching:
        return None
    return history.found._replace(
        state=stored_candidate.state,
        outcome=stored_candidate.outcome,
        quarantined=stored_candidate.quarantined,
        micro=matching[-1].micro,
        summary=matching[-1].summary,
        micro_tokens=stored_candidate.micro_tokens,
        summary_tokens=stored_candidate.summary_tokens,
    )


def align_features(stored_candidate: StoredCandidate, names: Sequence[str]) -> tuple[float, ...]:
    """Return the stored features in the current order. Missing features are neutral."""
    given = dict(zip(names, stored_candidate.features, strict=True))
    return tuple(given.get(name, NEUTRAL_FEATURES[name]) for name in FEATURE_NAMES)


def replay_bundle(
    stored: StoredBundle, histories: Mapping[UUID, MemoryHistory], current_rules: CurrentRules
) -> ReplayResult:
    """Score, fill, order and render the stored candidates again, and compare the result."""
    lost = tuple(_find_lost_memories(stored, histories))
    made = _rebuild(stored, histories)
    differences = (
        *lost,
        *_compare_numbers(stored, made),
        *_compare_scores(stored, made),
        *_compare_verdicts(stored, made),
        *_compare_text(stored.text, made.block.text),
    )
    since = tuple(_list_changes_since(stored, current_rules))
    if differences and not lost and not since:
        differences += (
            ReplayMismatch("bundle", "nothing that it was made from has changed: what is stored of it must have been"),
        )
    return ReplayResult(
        bundle_id=stored.bundle_id,
        created_at=stored.created_at,
        input=stored.input,
        tokens=stored.tokens,
        items=sum(kept.detail is not None for kept in stored.candidates),
        text=made.block.text,
        differences=differences,
        since=since,
    )


def _rebuild(stored: StoredBundle, histories: Mapping[UUID, MemoryHistory]) -> AssemblyResult:
    setting = stored.trace.assembly_input
    focus = [_restore_if_kept(kept, histories) for kept in stored.focus]
    if stored.trace.update:
        return compose(_restore_candidates(stored, histories), setting, focus=[found for found in focus if found])
    scored = [
        score_from_features(_with_evidence(found, features), features, setting.profile)
        for kept in stored.candidates
        if (found := _restore_if_kept(kept, histories))
        for features in [align_features(kept, stored.trace.features)]
    ]
    # focus is stored oldest first, and the assembly reads it latest first
    return assemble(scored, replace(setting, focus=[found for found in reversed(focus) if found]))


def _restore_candidates(stored: StoredBundle, histories: Mapping[UUID, MemoryHistory]) -> list[ScoredCandidate]:
    """Return the candidates with their stored verdicts: an incremental update depends on the previous bundle."""
    return [
        ScoredCandidate(
            ScoredMemory(found, align_features(kept, stored.trace.features), kept.score),
            Placement(kept.memory_id, kept.detail, kept.tokens, kept.reason),
        )
        for kept in stored.candidates
        if (found := _restore_if_kept(kept, histories))
    ]


def _with_evidence(found: RetrievedMemory, features: tuple[float, ...]) -> RetrievedMemory:
    named = dict(zip(FEATURE_NAMES, features, strict=True))
    return found._replace(similarity=named["cosine"], lexical=named["lexical"], relevance=named["similarity"])


def _restore_if_kept(
    stored_candidate: StoredCandidate, histories: Mapping[UUID, MemoryHistory]
) -> RetrievedMemory | None:
    known = histories.get(stored_candidate.memory_id)
    return known and restore_memory(stored_candidate, known)


def _match_forms(stored_candidate: StoredCandidate, history: MemoryHistory) -> list[ShortForms]:
    return [form for form in history.forms if compute_checksum(form.micro, form.summary) == stored_candidate.checksum]


def _find_lost_memories(stored: StoredBundle, histories: Mapping[UUID, MemoryHistory]) -> Iterator[ReplayMismatch]:
    """Yield memories that cannot be restored."""
    for kept in (*stored.candidates, *stored.focus):
        name = f"memory {short_id(kept.memory_id)}"
        known = histories.get(kept.memory_id)
        if known is None:
            yield ReplayMismatch(name, "it is gone: it was forgotten")
        elif not (matching := _match_forms(kept, known)):
            yield ReplayMismatch(name, "the words it had then are gone: they were erased, or changed in the database")
        elif not any((f.micro_tokens, f.summary_tokens) == (kept.micro_tokens, kept.summary_tokens) for f in matching):
            cost = f"{kept.micro_tokens} and {kept.summary_tokens}"
            yield ReplayMismatch(name, f"its forms are stored as {cost} tokens, and cost {_format_cost(matching[-1])}")


def _format_cost(forms: ShortForms) -> str:
    return f"{forms.micro_tokens} and {forms.summary_tokens}"


def _compare_numbers(stored: StoredBundle, rebuilt: AssemblyResult) -> Iterator[ReplayMismatch]:
    setting, trace = stored.trace.assembly_input, stored.trace
    pairs: Sequence[tuple[str, object, object]] = (
        ("tokens", stored.tokens, rebuilt.block.tokens),
        ("budget", stored.budget, setting.budget.total),
        ("profile", stored.profile, setting.profile.name),
        ("frame", stored.frame, trace.frame_choice.frame),
        *(
            (f"layer {name}", (trace.layers[name].budget, trace.layers[name].used), (layer.budget, layer.used))
            for name, layer in rebuilt.layers.items()
            if name in trace.layers
        ),
    )
    for name, was, now in pairs:
        if was != now:
            yield ReplayMismatch(name, f"stored as {was}, comes out as {now}")
    if trace.layers.keys() != rebuilt.layers.keys():
        yield ReplayMismatch("layers", f"stored {', '.join(trace.layers)}; there are {', '.join(rebuilt.layers)}")


def _compare_scores(stored: StoredBundle, rebuilt: AssemblyResult) -> Iterator[ReplayMismatch]:
    scores = {c.memory_id: c.score for c in rebuilt.candidates}
    for kept in stored.candidates:
        now = scores.get(kept.memory_id)
        if now is not None and abs(now - kept.score) > SCORE_TOLERANCE * max(abs(kept.score), 1e-3):
            name = f"score of {_format_name(kept, rebuilt)}"
            yield ReplayMismatch(name, f"stored as {kept.score:.6f}, its features and the weights make {now:.6f}")


def _compare_verdicts(stored: StoredBundle, rebuilt: AssemblyResult) -> Iterator[ReplayMismatch]:
    verdicts = {c.memory_id: f"{format_verdict(c.detail, c.reason)}, {c.tokens} tokens" for c in rebuilt.candidates}
    for kept in stored.candidates:
        was = f"{format_verdict(kept.detail, kept.reason)}, {kept.tokens} tokens"
        now = verdicts.get(kept.memory_id)
        if now is not None and now != was:
            yield ReplayMismatch(f"verdict on {_format_name(kept, rebuilt)}", f"was {was}, comes out as {now}")


def _format_name(stored_candidate: StoredCandidate, rebuilt: AssemblyResult) -> str:
    micro = next((c.scored.found.micro for c in rebuilt.candidates if c.memory_id == stored_candidate.memory_id), "")
    return f"{short_id(stored_candidate.memory_id)} ({micro})"


def format_verdict(detail: DetailLevel | None, reason: str) -> str:
    """
    >>> format_verdict("micro", "no room left for more"), format_verdict(None, "no room left")
    ('in, as micro (no room left for more)', 'out (no room left)')
    """
    return f"in, as {detail} ({reason})" if detail else f"out ({reason})"


def _compare_text(stored_text: str, rebuilt_text: str) -> Iterator[ReplayMismatch]:
    if stored_text != rebuilt_text:
        lines = difflib.unified_diff(
            stored_text.splitlines(), rebuilt_text.splitlines(), "stored", "replayed", n=1, lineterm=""
        )
        yield ReplayMismatch("text", "\n".join(lines) or "they differ in how lines end")


def _list_changes_since(stored: StoredBundle, current_rules: CurrentRules) -> Iterator[str]:
    """Yield changes of code, frame and profile since the build. They affect new contexts only."""
    if stored.trace.rules_hash != current_rules.rules_hash:
        yield (
            f"the code has changed: its rules were edition {stored.trace.rules_hash}, "
            f"they are {current_rules.rules_hash}"
        )
    if stored.trace.frame_edition != current_rules.frame_edition:
        yield f"the frame {stored.frame} {'has changed' if current_rules.frame_edition else 'is gone'}"
    was = stored.trace.assembly_input.profile
    if current_rules.profile is None:
        yield f"the profile {was.name} is gone"
    elif changed := diff_profiles(was, current_rules.profile):
        yield f"the profile {was.name} has changed: {'; '.join(changed)}"


def diff_profiles(previous: Profile, current: Profile) -> list[str]:
    """Return the fields that differ between two profiles."""
    before, after = previous.model_dump(), current.model_dump()
    return [f"{name} was {before[name]}, is {after.get(name)}" for name in before if before[name] != after.get(name)]
