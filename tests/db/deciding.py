"""Decisions for tests, and short ways to record them."""

from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

from newton.brain import decisions
from newton.brain.choice import Choice, Reason, Verdict
from newton.brain.stating import How, Intent, Review
from newton.db.pool import Tx
from newton.memory.memory import Teller
from tests.support import NOON, teller

REDIS = Choice(
    description="Use Redis for the session cache",
    confidence=0.85,
    at=NOON,
    context="The cache in front of PostgreSQL is cold after each deployment",
    alternatives=("Memcached", "Keep it in PostgreSQL"),
    reasons=(Reason("analysis", "Reads outnumber writes a hundred to one"), Reason("empirical", "It held last year")),
    tags=("cache", "operations"),
    category="architecture",
    stakes="high",
    expected="The median request takes under 20 ms",
    look_again_at=NOON + timedelta(days=30),
)


def choice(description: str, *, confidence: float = 0.7, at: datetime = NOON, ref: str | None = None) -> Choice:
    return Choice(description=description, confidence=confidence, at=at, ref=ref)


def reviewed(
    verdict: Verdict = "success",
    *,
    at: datetime = NOON + timedelta(days=1),
    lesson: str | None = None,
    how: How = "hand",
) -> Review:
    return Review(verdict=verdict, at=at, how=how, lesson=lesson)


async def recorded(tx: Tx, *choices: Choice, ctx: Teller | None = None, review: Review | None = None) -> list[UUID]:
    intents = [Intent(choice=one, review=review) for one in choices]
    return [made.decision_id for made in await decisions.record(tx, intents, ctx=ctx or teller())]


async def many(tx: Tx, number: int, *, ctx: Teller | None = None, first: int = 0) -> list[UUID]:
    """Decisions with outcomes for every second one."""
    intents = [
        Intent(
            choice=replace(REDIS, description=f"Choice {n} of many", confidence=n % 101 / 100, ref=f"c{n}"),
            review=reviewed("success" if n % 3 else "failure", lesson=f"lesson {n}") if n % 2 else None,
        )
        for n in range(first, first + number)
    ]
    return [made.decision_id for made in await decisions.record(tx, intents, ctx=ctx or teller())]
