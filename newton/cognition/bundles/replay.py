"""Replay of a stored bundle: rebuild it from stored features and former texts, and compare. Pure."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from newton.cognition.assembly.assembler import AssemblyResult, assemble, compose
from newton.cognition.assembly.fill import FillPlacement, format_verdict
from newton.cognition.assembly.scored_candidate import ScoredCandidate
from newton.cognition.bundles.trace import StoredBundle, StoredCandidate, compute_checksum
from newton.cognition.scoring.score import (
    FEATURE_NAMES,
    NEUTRAL_FEATURES,
    ScoredMemory,
    place_in_profile,
    score_from_features,
)
from newton.content.profiles import Profile
from newton.memory.lookup import short_id
from newton.memory.memory import ShortForms
from newton.memory.search_types import BestWindow, RetrievedMemory

SCORE_TOLERANCE = 1e-6  # relative; scores are stored as float32


class MemoryHistory(NamedTuple):
    """The current state of a memory, all its micro and summary forms, oldest first, and its sources.

    `windows` are the parts of a long text that are searched, by number.
    """

    found: RetrievedMemory
    forms: Sequence[ShortForms]
    sources: tuple[UUID, ...]
    windows: Mapping[int, BestWindow] = {}


@dataclass(frozen=True, slots=True)
class ReplayMismatch:
    """A field in which a rebuilt bundle differs from the stored one, and how it differs."""

    field: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayResult:
    """A rebuilt bundle with its differences from the stored one.

    `changes_since` lists later changes of the code, the frame and the profile, which the rebuilt bundle ignores.
    """

    bundle_id: UUID
    created_at: datetime
    input: str
    tokens: int
    items: int
    identical: bool
    differences: Sequence[ReplayMismatch]
    changes_since: Sequence[str]
    text: str

    @property
    def exit_status(self) -> int:
        """The exit status of the command: 0 if the rebuilt bundle is identical to the stored one, else 1."""
        return 0 if self.identical else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentRules:
    """The current versions of code, frame and profile; None for a frame or profile that no longer exists."""

    rules_hash: str
    frame_edition: str | None
    profile: Profile | None


def restore_memory(stored_candidate: StoredCandidate, history: MemoryHistory) -> RetrievedMemory | None:
    """Return the memory with state and text as the bundle used them; None when that text is no longer stored."""
    forms = _match_forms(stored_candidate, history)
    if not forms:
        return None
    names = ("state", "outcome", "quarantined", "micro_tokens", "summary_tokens")
    then = {name: getattr(stored_candidate, name) for name in names}
    window = history.windows.get(stored_candidate.window - 1)
    return history.found._replace(**then, micro=forms[-1].micro, summary=forms[-1].summary, window=window)


def align_features(stored_candidate: StoredCandidate, names: Sequence[str]) -> tuple[float, ...]:
    """Return the stored features in the order of FEATURE_NAMES. Missing features get neutral values."""
    features = {**NEUTRAL_FEATURES, **dict(zip(names, stored_candidate.features, strict=True))}
    return tuple(features[name] for name in FEATURE_NAMES)


def replay_bundle(
    stored: StoredBundle, histories: Mapping[UUID, MemoryHistory], current_rules: CurrentRules
) -> ReplayResult:
    """Score, place and render the stored candidates again, and compare the result with the stored bundle."""
    lost = tuple(_find_lost_memories(stored, histories))
    rebuilt = _rebuild(stored, histories)
    differences = (
        *lost,
        *_compare_numbers(stored, rebuilt),
        *_compare_scores(stored, rebuilt),
        *_compare_verdicts(stored, rebuilt),
        *_compare_text(stored.text, rebuilt.block.text),
    )
    since = tuple(_list_changes_since(stored, current_rules))
    if differences and not lost and not since:
        differences += (ReplayMismatch("bundle", "its sources are unchanged, so the stored bundle must have changed"),)
    return ReplayResult(
        bundle_id=stored.bundle_id,
        created_at=stored.created_at,
        input=stored.input,
        tokens=stored.tokens,
        items=len(stored.items),
        identical=not differences,
        differences=differences,
        changes_since=since,
        text=rebuilt.block.text,
    )


def _rebuild(stored: StoredBundle, histories: Mapping[UUID, MemoryHistory]) -> AssemblyResult:
    """Assemble the context again from the stored features and the texts of that time."""
    inputs = stored.trace.assembly_input
    focus = [found for _, found in _restore_all(stored.focus, histories)]
    candidates = [
        (
            candidate,
            found._replace(renewed_at=inputs.renewals.get(found.memory_id)),
            align_features(candidate, stored.trace.features),
        )
        for candidate, found in _restore_all(stored.candidates, histories)
    ]
    if stored.trace.update:  # an incremental update depends on the previous bundle, so its verdicts are not repeated
        placed = [
            ScoredCandidate(
                ScoredMemory(found, features, c.score, inputs.gathering.about.get(c.memory_id)),
                FillPlacement(c.memory_id, c.detail, c.tokens, c.reason),
            )
            for c, found, features in candidates
        ]
        return compose(placed, inputs, focus=focus)
    scored = [
        score_from_features(_with_evidence(found, features), features, inputs.profile)
        for _, found, features in candidates
    ]
    # focus is stored oldest first, and the assembly reads it latest first
    scored = place_in_profile(scored, inputs.gathering.about)
    return assemble(scored, replace(inputs, focus=focus[::-1]))


def _with_evidence(found: RetrievedMemory, features: tuple[float, ...]) -> RetrievedMemory:
    by_name = dict(zip(FEATURE_NAMES, features, strict=True))
    return found._replace(similarity=by_name["cosine"], lexical=by_name["lexical"], relevance=by_name["similarity"])


def _restore_all(
    candidates: Sequence[StoredCandidate], histories: Mapping[UUID, MemoryHistory]
) -> Iterator[tuple[StoredCandidate, RetrievedMemory]]:
    """Yield the candidates whose text is still stored, each with its memory as the bundle used it."""
    for candidate in candidates:
        history = histories.get(candidate.memory_id)
        if history and (found := restore_memory(candidate, history)):
            yield candidate, found


def _match_forms(stored_candidate: StoredCandidate, history: MemoryHistory) -> list[ShortForms]:
    return [form for form in history.forms if compute_checksum(form.micro, form.summary) == stored_candidate.checksum]


def _find_lost_memories(stored: StoredBundle, histories: Mapping[UUID, MemoryHistory]) -> Iterator[ReplayMismatch]:
    """Yield a mismatch for each memory that cannot be restored."""
    for candidate in (*stored.candidates, *stored.focus):
        name = f"memory {short_id(candidate.memory_id)}"
        history = histories.get(candidate.memory_id)
        if history is None:
            yield ReplayMismatch(name, "it was forgotten")
        elif not (forms := _match_forms(candidate, history)):
            yield ReplayMismatch(name, "its text at that time is gone: erased, or changed in the database")
        elif candidate.window and candidate.window - 1 not in history.windows:
            yield ReplayMismatch(name, "the part of its text that the context could show is gone")
        elif (sizes := _format_sizes(candidate)) not in (actual := [_format_sizes(form) for form in forms]):
            yield ReplayMismatch(
                name, f"its micro form and summary are stored as {sizes} tokens, but have {actual[-1]}"
            )


def _format_sizes(forms: ShortForms | StoredCandidate) -> str:
    return f"{forms.micro_tokens} and {forms.summary_tokens}"


def _compare_numbers(stored: StoredBundle, rebuilt: AssemblyResult) -> Iterator[ReplayMismatch]:
    inputs, trace = stored.trace.assembly_input, stored.trace
    pairs: Sequence[tuple[str, object, object]] = (
        ("tokens", stored.tokens, rebuilt.block.tokens),
        ("budget", stored.budget, inputs.budget.total),
        ("profile", stored.profile, inputs.profile.name),
        ("frame", stored.frame, trace.frame_choice.frame),
        *(
            (f"layer {name}", astuple(trace.layers[name]), astuple(layer))
            for name, layer in rebuilt.layers.items()
            if name in trace.layers
        ),
    )
    for name, was, now in pairs:
        if was != now:
            yield ReplayMismatch(name, f"stored as {was}, replayed as {now}")
    if trace.layers.keys() != rebuilt.layers.keys():
        yield ReplayMismatch("layers", f"stored {', '.join(trace.layers)}; replayed {', '.join(rebuilt.layers)}")


def _compare_scores(stored: StoredBundle, rebuilt: AssemblyResult) -> Iterator[ReplayMismatch]:
    scores = {c.memory_id: c.score for c in rebuilt.candidates}
    for candidate in stored.candidates:
        now = scores.get(candidate.memory_id)
        if now is not None and abs(now - candidate.score) > SCORE_TOLERANCE * max(abs(candidate.score), 1e-3):
            name = f"score of {_format_name(candidate, rebuilt)}"
            yield ReplayMismatch(name, f"stored as {candidate.score:.6f}, computed from its features as {now:.6f}")


def _compare_verdicts(stored: StoredBundle, rebuilt: AssemblyResult) -> Iterator[ReplayMismatch]:
    verdicts = {c.memory_id: f"{format_verdict(c.detail, c.reason)}, {c.tokens} tokens" for c in rebuilt.candidates}
    for candidate in stored.candidates:
        was = f"{format_verdict(candidate.detail, candidate.reason)}, {candidate.tokens} tokens"
        now = verdicts.get(candidate.memory_id, was)
        if now != was:
            yield ReplayMismatch(f"verdict on {_format_name(candidate, rebuilt)}", f"was {was}, replayed as {now}")


def _format_name(stored_candidate: StoredCandidate, rebuilt: AssemblyResult) -> str:
    micro = next((c.scored.found.micro for c in rebuilt.candidates if c.memory_id == stored_candidate.memory_id), "")
    return f"{short_id(stored_candidate.memory_id)} ({micro})"


def _compare_text(stored_text: str, rebuilt_text: str) -> Iterator[ReplayMismatch]:
    if stored_text != rebuilt_text:
        before, after = stored_text.splitlines(), rebuilt_text.splitlines()
        lines = difflib.unified_diff(before, after, "stored", "replayed", n=1, lineterm="")
        yield ReplayMismatch("text", "\n".join(lines) or "the line endings differ")


def _list_changes_since(stored: StoredBundle, current_rules: CurrentRules) -> Iterator[str]:
    """Yield the changes of code, frame and profile since the bundle was built.

    Such changes affect only new contexts, not the replay.
    """
    if stored.trace.rules_hash != current_rules.rules_hash:
        yield f"the code has changed: its rules hash was {stored.trace.rules_hash}, is now {current_rules.rules_hash}"
    if stored.trace.frame_edition != current_rules.frame_edition:
        yield f"the frame {stored.frame} {'has changed' if current_rules.frame_edition else 'was removed'}"
    profile = stored.trace.assembly_input.profile
    if current_rules.profile is None:
        yield f"the profile {profile.name} was removed"
    elif changes := diff_profiles(profile, current_rules.profile):
        yield f"the profile {profile.name} has changed: {'; '.join(changes)}"


def diff_profiles(previous: Profile, current: Profile) -> list[str]:
    """Return a description of each field that differs between two profiles."""
    before, after = previous.model_dump(), current.model_dump()
    return [
        f"{name} was {before[name]}, is now {after.get(name)}" for name in before if before[name] != after.get(name)
    ]
