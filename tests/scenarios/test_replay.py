"""Contexts that were stored come out the same again, however much is written later; and contexts of the past.

Planted and seen to fail: `retell` that keeps no former form; words looked up as they are now; a feature stored with
four decimals; a score of more precision than the features that are kept; the corpus of today for a search of the past.
"""

import random
from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

import pytest

from newton.agent.hindsight import Hindsight
from newton.brain import decisions
from newton.cognition.bundle import Bundle
from newton.cognition.fill import FULL
from newton.cognition.request import InView
from newton.content.frames import load_frames
from newton.content.profiles import load_profiles
from newton.errors import ConflictError, NotFoundError
from newton.memory.forgetting import forget
from tests.db.deciding import REDIS, recorded, reviewed
from tests.scenarios.conftest import Mind
from tests.scenarios.living import PEOPLE, PLACES, THINGS, Living
from tests.support import count, teller

BUDGETS = (60, 300, 1_500, 8_000)


def hindsight(mind: Mind) -> Hindsight:
    return Hindsight(agent_id=mind.agent_id, db=mind.db, frames=load_frames(), profiles=load_profiles())


def asked(chosen: random.Random) -> str:
    person, thing, place = chosen.choice(PEOPLE), chosen.choice(THINGS), chosen.choice(PLACES)
    return chosen.choice(
        [
            f"Did {person} move the {thing} to {place}?",
            f"Should we move the {thing} to {place}, or leave it with {person}?",
            f"The {thing} in {place} does not work, what is wrong?",
        ]
    )


async def contexts(mind: Mind, life: Living, number: int, *, writes: int) -> list[Bundle]:
    """So many contexts, with life between them."""
    made: list[Bundle] = []
    profiles = sorted(load_profiles())
    for n in range(number):
        if n % 10 == 0:
            await life.go_on(writes)
            await mind.settle()
        view = None
        if n % 5 == 0:
            session_id = await mind.session(f"s{life.number // 40}")
            view = InView(session_id=session_id, first=4)
        made.append(
            await mind.context(
                asked(life.chosen),
                budget=life.chosen.choice(BUDGETS),
                profile=life.chosen.choice([None, *profiles]),
                in_view=view,
            )
        )
    return made


async def replayed_all(mind: Mind, made: Sequence[Bundle]) -> None:
    then = hindsight(mind)
    for bundle in made:
        replay = await then.replay(str(bundle.bundle_id))
        assert (replay.differences, replay.since) == ((), ())
        assert replay.text == bundle.text


async def reworded(mind: Mind, made: Sequence[Bundle]) -> int:
    """How many of the contexts show a memory in words that it does not have any more."""
    async with mind.db.work(mind.agent_id) as tx:
        rows = await tx.fetch("select memory_id, micro, summary from memory.memories")
    now = {row["memory_id"]: (row["micro"], row["summary"]) for row in rows}
    return sum(any(c.text not in now[c.memory_id] for c in bundle.items) for bundle in made)


async def test_stored_contexts_come_out_the_same_after_much_was_written(mind: Mind) -> None:
    # S002-15
    life = Living(mind.db, mind.agent_id, mind.clock, random.Random(5))
    made = await contexts(mind, life, 50, writes=60)
    await life.go_on(500, forgetting=True)
    await replayed_all(mind, made)
    assert await reworded(mind, made) >= 5
    assert {c.kind for bundle in made for c in bundle.items} >= {"fact", "exchange", "episode", "decision"}
    assert any(bundle.focus for bundle in made) and any(bundle.setting.constraints for bundle in made)
    assert any(c.reason == FULL for bundle in made for c in bundle.dropped)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
async def test_a_thousand_stored_contexts_come_out_the_same_after_ten_thousand_writes(mind: Mind) -> None:
    life = Living(mind.db, mind.agent_id, mind.clock, random.Random(6))
    made = await contexts(mind, life, 1_000, writes=30)
    await life.go_on(10_000, at_once=200, forgetting=True)
    await replayed_all(mind, made)
    assert await reworded(mind, made) >= 100
