"""A stored bundle, made once more: from its features to its text, in the words of then; and what differs. Pure."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from newton.cognition.assemble import Assembly, assemble, composed
from newton.cognition.bundle import Considered
from newton.cognition.fill import Detail, Placed
from newton.cognition.score import FEATURES, NEUTRALS, Scored, rescored
from newton.cognition.trace import Kept, Stored, checksum
from newton.content.profiles import Profile
from newton.memory.lookup import short
from newton.memory.memory import Forms
from newton.memory.recall import Found

NEAR = 1e-6  # relative; so much of a score is lost in its four bytes


class Remembered(NamedTuple):
    """What is known of a memory: what it is now, every form it has had, the present one last, and its sources."""

    found: Found
    forms: Sequence[Forms]
    sources: tuple[UUID, ...]


class Difference(NamedTuple):
    """What does not come out as it is stored. `what` names it, `why` says in words what was and what is."""

    what: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """A bundle made once more. What is said of it (when, for which input, tokens, items) is as it is stored.
    `differences` are what kept it from coming out the same; `since` is what has changed since it was made and did not
    matter, for all of it is stored."""

    bundle_id: UUID
    created_at: datetime
    input: str
    tokens: int
    items: int
    text: str
    differences: tuple[Difference, ...]
    since: tuple[str, ...]

    @property
    def identical(self) -> bool:
        return not self.differences


@dataclass(frozen=True, slots=True, kw_only=True)
class Today:
    """What a bundle would be made by today: the edition of the code, the frame, the profile. None: there is none."""

    rules: str
    frame_edition: str | None
    profile: Profile | None


def then(kept: Kept, known: Remembered) -> Found | None:
    """The memory as the bundle saw it; None when it has no form of those words any more."""
    matching = _matching(kept, known)
    if not matching:
        return None
    return known.found._replace(
        state=kept.state,
        outcome=kept.outcome,
        quarantined=kept.quarantined,
        micro=matching[-1].micro,
        summary=matching[-1].summary,
        micro_tokens=kept.micro_tokens,
        summary_tokens=kept.summary_tokens,
    )


def features_of(kept: Kept, names: Sequence[str]) -> tuple[float, ...]:
    """Its features in the order of today. One that was not known then counts as neutral."""
    given = dict(zip(names, kept.features, strict=True))
    return tuple(given.get(name, NEUTRALS[name]) for name in FEATURES)


def replayed(stored: Stored, memories: Mapping[UUID, Remembered], today: Today) -> Replay:
    """Scores, refuses, fills, orders and renders what is stored, and compares with the text and the verdicts."""
    lost = tuple(_lost(stored, memories))
    made = _made(stored, memories)
    differences = (
        *lost,
        *_numbers(stored, made),
        *_scores(stored, made),
        *_verdicts(stored, made),
        *_text(stored.text, made.page.text),
    )
    since = tuple(_since(stored, today))
    if differences and not lost and not since:
        differences += (
            Difference("bundle", "nothing that it was made from has changed: what is stored of it must have been"),
        )
    return Replay(
        bundle_id=stored.bundle_id,
        created_at=stored.created_at,
        input=stored.input,
        tokens=stored.tokens,
        items=sum(kept.detail is not None for kept in stored.candidates),
        text=made.page.text,
        differences=differences,
        since=since,
    )


def _made(stored: Stored, memories: Mapping[UUID, Remembered]) -> Assembly:
    setting = stored.trace.setting
    focus = [_found(kept, memories) for kept in stored.focus]
    if stored.trace.update:
        return composed(_chosen(stored, memories), setting, focus=[found for found in focus if found])
    scored = [
        rescored(_with_evidence(found, features), features, setting.profile)
        for kept in stored.candidates
        if (found := _found(kept, memories))
        for features in [features_of(kept, stored.trace.features)]
    ]
    # what stood in focus is stored as it stood; it is taken in from the last one back
    return assemble(scored, replace(setting, focus=[found for found in reversed(focus) if found]))


def _chosen(stored: Stored, memories: Mapping[UUID, Remembered]) -> list[Considered]:
    """The candidates with their verdicts: what an update chose rests on the bundle that it continues, and is not chosen
    once more."""
    return [
        Considered(
            Scored(found, features_of(kept, stored.trace.features), kept.score),
            Placed(kept.memory_id, kept.detail, kept.tokens, kept.reason),
        )
        for kept in stored.candidates
        if (found := _found(kept, memories))
    ]


def _with_evidence(found: Found, features: tuple[float, ...]) -> Found:
    named = dict(zip(FEATURES, features, strict=True))
    return found._replace(similarity=named["cosine"], lexical=named["lexical"], relevance=named["similarity"])


def _found(kept: Kept, memories: Mapping[UUID, Remembered]) -> Found | None:
    known = memories.get(kept.memory_id)
    return known and then(kept, known)


def _matching(kept: Kept, known: Remembered) -> list[Forms]:
    return [form for form in known.forms if checksum(form.micro, form.summary) == kept.words]


def _lost(stored: Stored, memories: Mapping[UUID, Remembered]) -> Iterator[Difference]:
    """Memories that cannot be told any more as the bundle told them."""
    for kept in (*stored.candidates, *stored.focus):
        name = f"memory {short(kept.memory_id)}"
        known = memories.get(kept.memory_id)
        if known is None:
            yield Difference(name, "it is gone: it was forgotten")
        elif not (matching := _matching(kept, known)):
            yield Difference(name, "the words it had then are gone: they were erased, or changed in the database")
        elif not any((f.micro_tokens, f.summary_tokens) == (kept.micro_tokens, kept.summary_tokens) for f in matching):
            cost = f"{kept.micro_tokens} and {kept.summary_tokens}"
            yield Difference(name, f"its forms are stored as {cost} tokens, and cost {_cost(matching[-1])}")


def _cost(form: Forms) -> str:
    return f"{form.micro_tokens} and {form.summary_tokens}"


def _numbers(stored: Stored, made: Assembly) -> Iterator[Difference]:
    setting, trace = stored.trace.setting, stored.trace
    pairs: Sequence[tuple[str, object, object]] = (
        ("tokens", stored.tokens, made.page.tokens),
        ("budget", stored.budget, setting.budget.total),
        ("profile", stored.profile, setting.profile.name),
        ("frame", stored.frame, trace.frame.frame),
        *(
            (f"layer {name}", (trace.layers[name].budget, trace.layers[name].used), (layer.budget, layer.used))
            for name, layer in made.layers.items()
            if name in trace.layers
        ),
    )
    for name, was, now in pairs:
        if was != now:
            yield Difference(name, f"stored as {was}, comes out as {now}")
    if trace.layers.keys() != made.layers.keys():
        yield Difference("layers", f"stored {', '.join(trace.layers)}; there are {', '.join(made.layers)}")


def _scores(stored: Stored, made: Assembly) -> Iterator[Difference]:
    scores = {c.memory_id: c.score for c in made.candidates}
    for kept in stored.candidates:
        now = scores.get(kept.memory_id)
        if now is not None and abs(now - kept.score) > NEAR * max(abs(kept.score), 1e-3):
            name = f"score of {_name(kept, made)}"
            yield Difference(name, f"stored as {kept.score:.6f}, its features and the weights make {now:.6f}")


def _verdicts(stored: Stored, made: Assembly) -> Iterator[Difference]:
    verdicts = {c.memory_id: f"{verdict(c.detail, c.reason)}, {c.tokens} tokens" for c in made.candidates}
    for kept in stored.candidates:
        was = f"{verdict(kept.detail, kept.reason)}, {kept.tokens} tokens"
        now = verdicts.get(kept.memory_id)
        if now is not None and now != was:
            yield Difference(f"verdict on {_name(kept, made)}", f"was {was}, comes out as {now}")


def _name(kept: Kept, made: Assembly) -> str:
    micro = next((c.scored.found.micro for c in made.candidates if c.memory_id == kept.memory_id), "")
    return f"{short(kept.memory_id)} ({micro})"


def verdict(detail: Detail | None, reason: str) -> str:
    """
    >>> verdict("micro", "no room left for more"), verdict(None, "no room left")
    ('in, as micro (no room left for more)', 'out (no room left)')
    """
    return f"in, as {detail} ({reason})" if detail else f"out ({reason})"


def _text(was: str, now: str) -> Iterator[Difference]:
    if was != now:
        lines = difflib.unified_diff(was.splitlines(), now.splitlines(), "stored", "replayed", n=1, lineterm="")
        yield Difference("text", "\n".join(lines) or "they differ in how lines end")


def _since(stored: Stored, today: Today) -> Iterator[str]:
    """What has changed of that by which it was made. All of it is stored, so it changes only what would come today."""
    if stored.trace.rules != today.rules:
        yield f"the code has changed: its rules were edition {stored.trace.rules}, they are {today.rules}"
    if stored.trace.frame_edition != today.frame_edition:
        yield f"the frame {stored.frame} {'has changed' if today.frame_edition else 'is gone'}"
    was = stored.trace.setting.profile
    if today.profile is None:
        yield f"the profile {was.name} is gone"
    elif changed := changes(was, today.profile):
        yield f"the profile {was.name} has changed: {'; '.join(changed)}"


def changes(was: Profile, now: Profile) -> list[str]:
    """What one profile says otherwise than another."""
    before, after = was.model_dump(), now.model_dump()
    return [f"{name} was {before[name]}, is {after.get(name)}" for name in before if before[name] != after.get(name)]
