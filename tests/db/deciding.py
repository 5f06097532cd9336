"""Decisions for tests, and short ways to record them."""

from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

from newton.brain import decisions
from newton.brain.decision_codec import DecisionReview, NewDecision, ReviewMethod
from newton.brain.drafts import DecisionDraft, DecisionReason, Verdict
from newton.db.pool import Tx
from newton.memory.memory import WriteContext
from tests.support import NOON, teller

REDIS = DecisionDraft(
    description="Use Redis for the session cache",
    confidence=0.85,
    at=NOON,
    context="The cache in front of PostgreSQL is cold after each deployment",
    alternatives=("Memcached", "Keep it in PostgreSQL"),
    reasons=(
        DecisionReason("analysis", "Reads outnumber writes a hundred to one"),
        DecisionReason("empirical", "It held last year"),
    ),
    tags=("cache", "operations"),
    category="architecture",
    stakes="high",
    expected="The median request takes under 20 ms",
    look_again_at=NOON + timedelta(days=30),
)


def choice(description: str, *, confidence: float = 0.7, at: datetime = NOON, ref: str | None = None) -> DecisionDraft:
    return DecisionDraft(description=description, confidence=confidence, at=at, ref=ref)


def reviewed(
    verdict: Verdict = "success",
    *,
    at: datetime = NOON + timedelta(days=1),
    lesson: str | None = None,
    how: ReviewMethod = "hand",
) -> DecisionReview:
    return DecisionReview(verdict=verdict, at=at, how=how, lesson=lesson)


async def recorded(
    tx: Tx, *choices: DecisionDraft, ctx: WriteContext | None = None, review: DecisionReview | None = None
) -> list[UUID]:
    intents = [NewDecision(draft=one, review=review) for one in choices]
    return [made.decision_id for made in await decisions.record(tx, intents, ctx=ctx or teller())]


async def many(tx: Tx, number: int, *, ctx: WriteContext | None = None, first: int = 0) -> list[UUID]:
    """Decisions with outcomes for every second one."""
    intents = [
        NewDecision(
            draft=replace(REDIS, description=f"Choice {n} of many", confidence=n % 101 / 100, ref=f"c{n}"),
            review=reviewed("success" if n % 3 else "failure", lesson=f"lesson {n}") if n % 2 else None,
        )
        for n in range(first, first + number)
    ]
    return [made.decision_id for made in await decisions.record(tx, intents, ctx=ctx or teller())]
