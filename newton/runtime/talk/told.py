"""What a conversation tells a person of a turn, of its context, and of a memory in it, from whatever process."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from newton.agent.turn import Answer
from newton.cognition.bundle import Bundle, Considered
from newton.cognition.debug import debug_lines
from newton.cognition.explaining import Account, Item
from newton.cognition.fill import Detail
from newton.cognition.framing import Choice
from newton.heart.identity import Proposal
from newton.heart.tenets import Part, Tenet, line

NEARLY = 3  # of what was left out, so many are told


class Told(BaseModel):
    model_config = ConfigDict(frozen=True)


class Framing(Told):
    """How the input was looked at, how surely, and why."""

    name: str = Field(examples=["debug"])
    confidence: float
    runner_up: str | None
    forced: bool
    unsure: bool
    reason: str


class Allotted(Told):
    """Tokens that a layer was given, and those that it used."""

    budget: int
    used: int


class Listed(Told):
    """A memory in a list. `evidence` is how near it is to the input by itself; null for what was looked up."""

    layer: str
    score: float
    evidence: float | None
    text: str
    reason: str


class Shown(Told):
    """The lines of the identity that stand in the context, and how many had no room."""

    version: int
    lines: list[str]
    unshown: int


class Continued(Told):
    """The context that it continues, how many memories entered, and how many gave way."""

    bundle_id: UUID
    entered: int
    gave_way: int


class Contents(Told):
    """What a context holds, as a list shows it: `nearly` are the best left out, `nearest` is the best evidence, and
    `blank` the times asked for of which nothing is known."""

    bundle_id: UUID
    frame: Framing
    profile: str
    tokens: int
    budget: int
    nearest: float | None
    layers: dict[str, Allotted]
    items: list[Listed]
    dropped: int
    nearly: list[Listed]
    identity: Shown
    missing: dict[str, str]
    blank: list[str]
    continued: Continued | None


class Line(Told):
    """A line of the identity."""

    tenet_id: UUID
    words: str


class Wish(Line):
    """A line that waits for a person's yes, and those that stand and go against it: it would take their place."""

    part: Part
    instead_of: list[Line]


class Turned(Told):
    """How a turn ended: the answer, what is to be known of it besides its words, and what it was given.

    `degraded` says why no model answered to the end, `failed` whether one was set and should have, and `caveat` says
    both in words; `proposed` waits for a yes. `how` and `because` say whether the context was made for this input.
    `context` and `debug` are there when they were asked for.
    """

    text: str
    degraded: str | None
    quoted: bool
    failed: bool
    caveat: str | None
    shortcoming: str
    proposed: list[Wish]
    how: str
    because: str
    contents: Contents
    context: dict[str, Any] | None = Field(None, description="The whole context, as `POST /v1/context` answers it.")
    debug: list[str] = Field([], description="What was injected, as comment lines of an event stream.")


class Missed(Told):
    """The best memory of the layer that would have been in, had there been room."""

    score: float
    text: str


class Explained(Told):
    """Why a memory is in a context, or is not: its features, what each gave to the score, and what they weigh."""

    memory_id: UUID
    text: str
    kind: str
    state: str
    trust: str
    quarantined: bool
    ref: str | None
    of_the_time: str | None
    sources: list[UUID]
    layer: str
    detail: Detail | None
    reason: str
    tokens: int
    score: float
    features: dict[str, float]
    contributions: dict[str, float]
    weights: dict[str, float]
    missed: Missed | None


def turned(answer: Answer, *, whole: bool = False) -> Turned:
    """The end of a turn; `whole` with all of its context."""
    own = {name: getattr(answer, name) for name in ("text", "degraded", "quoted", "failed", "caveat", "shortcoming")}
    return Turned(
        **own,
        proposed=[wish(one) for one in answer.proposed],
        how=answer.given.how,
        because=answer.given.because,
        contents=contents(answer.bundle),
        context=answer.bundle.as_json() if whole else None,
        debug=debug_lines(answer.bundle) if whole else [],
    )


def contents(bundle: Bundle) -> Contents:
    known = [near for c in bundle.items if (near := evidence(bundle, c)) is not None]
    return Contents(
        bundle_id=bundle.bundle_id,
        frame=framing(bundle.frame),
        profile=bundle.profile.name,
        tokens=bundle.tokens,
        budget=bundle.budget,
        nearest=max(known, default=None),
        layers={name: Allotted(budget=layer.budget, used=layer.used) for name, layer in bundle.layers.items()},
        items=[_listed(bundle, c) for c in bundle.items],
        dropped=len(bundle.dropped),
        nearly=[_listed(bundle, c) for c in bundle.dropped[:NEARLY]],
        identity=Shown(
            version=bundle.identity.version,
            lines=[line(tenet.part, tenet.words) for tenet in bundle.identity.shown],
            unshown=len(bundle.identity.unshown),
        ),
        missing=dict(bundle.missing),
        blank=list(bundle.blank),
        continued=_continued(bundle),
    )


def evidence(bundle: Bundle, c: Considered) -> float | None:
    """How near it is to the input by itself; None for what was looked up and not searched for."""
    return None if c.memory_id in bundle.setting.unsearched else c.scored.found.evidence


def framing(choice: Choice) -> Framing:
    own = {name: getattr(choice, name) for name in Framing.model_fields if name != "name"}
    return Framing(name=choice.frame, **own)


def wish(proposal: Proposal) -> Wish:
    tenet = proposal.tenet
    standing = [told_line(one) for one in proposal.instead_of]
    return Wish(tenet_id=tenet.tenet_id, words=tenet.words, part=tenet.part, instead_of=standing)


def told_line(tenet: Tenet) -> Line:
    return Line(tenet_id=tenet.tenet_id, words=tenet.words)


def explained(account: Account, item: Item) -> Explained:
    """One memory of a stored context."""
    kept, found = item.kept, item.found
    missed = account.missed.get(item.layer)
    weights: Mapping[str, float] = account.stored.trace.setting.profile.weights.given
    return Explained(
        **{name: getattr(kept, name) for name in ("memory_id", "state", "quarantined", "detail", "reason", "tokens")},
        **{name: getattr(found, name) for name in ("kind", "trust", "ref")},
        text=item.brief,
        of_the_time=item.of_the_time,
        sources=list(item.sources),
        layer=item.layer,
        score=kept.score,
        features=dict(item.features),
        contributions=dict(item.given),
        weights=dict(weights),
        missed=missed and Missed(score=missed.kept.score, text=missed.brief),
    )


def _listed(bundle: Bundle, c: Considered) -> Listed:
    return Listed(layer=c.layer, score=c.score, evidence=evidence(bundle, c), text=c.brief, reason=c.reason)


def _continued(bundle: Bundle) -> Continued | None:
    update = bundle.update
    if update is None:
        return None
    return Continued(bundle_id=update.continues, entered=len(update.entered), gave_way=len(update.gave_way))
