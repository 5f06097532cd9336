"""Decisions: looked at before, recorded, listed, and given their outcome."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import Field

from newton.agent.deciding import Outlook
from newton.brain.choice import Choice, Reason, ReasonKind, Stakes, Verdict
from newton.brain.quality import score
from newton.brain.reading import Filter, Listed
from newton.content.frames import frame_named
from newton.runtime.api import pages
from newton.runtime.api.acting import Writing
from newton.runtime.api.caller import Reader
from newton.runtime.api.memories import DOOR
from newton.runtime.api.shapes import Answer, Cursor, Given, Limit, Page
from newton.runtime.transfer.given import Name, Ref, Time, Words
from newton.runtime.wiring import Newton

router = APIRouter(prefix="/v1/decisions", tags=["decisions"])


class GivenReason(Given):
    """Why, and by which kind of reasoning."""

    kind: ReasonKind
    text: Words


class ToDecide(Given):
    """A decision before it is carried out."""

    description: Words = Field(examples=["Use Redis for the cache"])
    confidence: float = Field(ge=0, le=1, description="How sure you are that it will succeed.", examples=[0.8])
    reasons: list[GivenReason] = Field([], examples=[[{"kind": "analysis", "text": "reads outnumber writes"}]])
    alternatives: list[Words] = Field([], examples=[["Memcached"]])
    stakes: Stakes | None = None
    category: Name | None = Field(None, examples=["architecture"])
    tags: list[Words] = Field([], examples=[["cache"]])
    context: Words | None = Field(None, description="The situation in which it is made.")
    expected: Words | None = Field(None, description="What should come of it.")
    look_again_at: Time | None = Field(None, description="When that should be known, with a zone.")
    reviewed_by: Name | None = None
    frame: Name | None = Field(None, description="Take stakes and category from this frame.")
    ref: Ref | None = Field(None, description="Your own id of it: under the same one it is recorded once.")
    supersedes: list[UUID] = Field([], max_length=20, description="The decisions whose place it takes.")

    def choice(self, newton: Newton) -> Choice:
        """It as a choice of this moment. Raises NotFoundError for an unknown frame."""
        usual = frame_named(newton.frames, self.frame) if self.frame else None
        own = self.model_dump(include={"description", "confidence", "context", "expected", "look_again_at"})
        return Choice(
            **own,
            at=newton.scope.now(),
            reasons=tuple(Reason(one.kind, one.text) for one in self.reasons),
            alternatives=tuple(self.alternatives),
            tags=tuple(self.tags),
            stakes=self.stakes or (usual.default_stakes if usual else "medium"),
            category=self.category or (usual.category if usual else "process"),
            frame=usual.name if usual else None,
            reviewed_by=self.reviewed_by,
            ref=self.ref,
        )


class Precedent(Answer):
    """A decision of the past that is like it."""

    decision_id: UUID
    outcome: str | None
    cosine: float


class BaseRate(Answer):
    """How decisions of the category went; the rate is null while none was judged."""

    category: str
    judged: int
    success_rate: float | None


class Ruled(Answer):
    """What a guardrail says of it."""

    name: str
    verdict: str
    words: str


class Met(Answer):
    """A censor that it met."""

    memory_id: UUID
    blocks: bool


class Looked(Answer):
    """What speaks for and against it."""

    blocked: bool
    quality: float
    parts: dict[str, float] = Field(description="What each part of it gives to its quality.")
    precedents: list[Precedent]
    base_rate: BaseRate
    censors: list[Met]
    guardrails: list[Ruled]
    missing: dict[str, str]


class Recorded(Looked):
    """The decision that is in the ledger; one that was there already is not new."""

    decision_id: UUID
    new: bool


class Decision(Answer):
    """A decision in a list; its description is null when its words were erased."""

    decision_id: UUID
    state: str
    description: str | None
    decided_at: datetime
    confidence: float
    category: str
    stakes: Stakes
    frame: str | None
    look_again_at: datetime | None
    overdue: bool
    outcome: Verdict | None
    reviewed_at: datetime | None
    how: str | None


class Wanted(Given):
    """Which decisions are asked for. `due`: open, and the date to look again has passed."""

    due: bool = False
    open: bool = False
    category: Name | None = None
    stakes: Stakes | None = None
    outcome: Verdict | None = None
    tag: Name | None = None
    limit: Limit = 50
    cursor: Cursor = None


class ToReview(Given):
    """What became of it."""

    outcome: Verdict
    lesson: Words | None = Field(None, examples=["Measure the hit rate before, not after."])
    at: Time | None = Field(None, description="When that was known, with a zone; without it, now.")


class Reviewed(Answer):
    decision_id: UUID
    outcome: Verdict


@router.post("/look")
async def look(asked: ToDecide, caller: Reader) -> Looked:
    """Similar decisions, censors, guardrails and the base rate of a choice. Nothing is recorded."""
    return Looked(**_seen(await caller.newton.deciding(DOOR).look(asked.choice(caller.newton))))


@router.post("", status_code=201, response_model=Recorded)
async def decide(asked: ToDecide, act: Writing) -> Response:
    """Record a decision before it is carried out. What a censor or a guardrail forbids is not recorded."""

    async def weigh(newton: Newton) -> Outlook:
        return await newton.deciding(DOOR).weigh(asked.choice(newton))

    async def record(newton: Newton, outlook: Outlook) -> Recorded:
        made = await newton.deciding(DOOR).record(outlook, supersedes=[one.hex for one in asked.supersedes])
        return Recorded(decision_id=made.decision_id, new=made.new, **_seen(made.outlook))

    return await act.after(weigh, record)


@router.get("")
async def listed(caller: Reader, wanted: Annotated[Wanted, Query()]) -> Page[Decision]:
    """Decisions, the latest first; those that are due by their dates, all on one page."""
    before = None if wanted.due else pages.read_id(wanted.cursor)
    most = wanted.limit if wanted.due else wanted.limit + 1
    chosen = wanted.model_dump(exclude={"limit", "cursor"})
    found = await caller.newton.deciding(DOOR).listed(Filter(**chosen, before=before, most=most))
    return pages.page(found, wanted.limit, _shown, lambda one: one.decision_id)


@router.get("/{decision_id}")
async def whole(decision_id: UUID, caller: Reader) -> dict[str, Any]:
    """A decision with everything that belongs to it."""
    return (await caller.newton.deciding(DOOR).whole(decision_id.hex)).as_json()


@router.post("/{decision_id}/review", response_model=Reviewed)
async def review(decision_id: UUID, given: ToReview, act: Writing) -> Response:
    """Give a decision its outcome, once."""

    async def work(newton: Newton) -> Reviewed:
        deciding = newton.deciding(DOOR)
        await deciding.review(decision_id.hex, given.outcome, lesson=given.lesson, at=given.at, how="api")
        return Reviewed(decision_id=decision_id, outcome=given.outcome)

    return await act.once(work)


def _seen(outlook: Outlook) -> dict[str, Any]:
    stands = outlook.standing
    return {
        "blocked": outlook.blocked,
        "quality": score(outlook.quality),
        "parts": outlook.quality,
        "precedents": [
            Precedent(decision_id=found.memory_id, outcome=found.outcome, cosine=round(found.similarity, 6))
            for found in outlook.precedents
        ],
        "base_rate": BaseRate(
            category=outlook.choice.category,
            judged=stands.category_judged,
            success_rate=stands.category_success_rate,
        ),
        "censors": [Met(memory_id=one.memory_id, blocks=one.blocks) for one in outlook.censors.met],
        "guardrails": [Ruled(name=one.rule.name, verdict=one.verdict, words=one.words) for one in outlook.rulings],
        "missing": outlook.missing,
    }


def _shown(one: Listed) -> Decision:
    return Decision(**{name: getattr(one, name) for name in Decision.model_fields})
