"""Contexts that were stored come out the same again, however much is written later; and contexts of the past.

Planted and seen to fail: `retell` that keeps no former form; words looked up as they are now; a feature stored with
four decimals; a score of more precision than the features that are kept; the corpus of today for a search of the past.
"""

import random
from collections.abc import Sequence
from datetime import datetime, timedelta

import asyncpg
import pytest

from bench.environment import vacuum_analyze
from newton.agent.services.bundles import BundleService
from newton.brain import decisions
from newton.brain.calibration import snapshots
from newton.cognition.assembly.fill import NO_ROOM
from newton.cognition.bundles.bundle import Bundle
from newton.cognition.bundles.diff import FieldChange
from newton.cognition.bundles.explanation import LOST_TEXT
from newton.cognition.request import SentMessages
from newton.content.frames import load_frames
from newton.content.profiles import load_profiles
from newton.errors import ConflictError, InputError, NotFoundError
from newton.heart.censors import CensorRule
from newton.memory.lookup import short_id
from tests.db.deciding import REDIS, many, recorded, reviewed
from tests.scenarios.conftest import Mind
from tests.scenarios.living import PEOPLE, PLACES, THINGS, Living
from tests.scenarios.test_curation import upkeep
from tests.support import count, teller

BUDGETS = (60, 300, 1_500, 8_000)


def hindsight(mind: Mind) -> BundleService:
    return BundleService(frames=load_frames(), profiles=load_profiles(), scope=mind.scope)


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
            view = SentMessages(session_id=session_id, first_position=4)
        made.append(
            await mind.context(
                asked(life.chosen),
                budget=life.chosen.choice(BUDGETS),
                profile=life.chosen.choice([None, *profiles]),
                sent_messages=view,
            )
        )
    return made


async def replayed_all(mind: Mind, made: Sequence[Bundle]) -> None:
    then = hindsight(mind)
    for bundle in made:
        replay = await then.replay(str(bundle.bundle_id))
        assert (replay.differences, replay.changes_since) == ((), ())
        assert replay.text == bundle.text


async def reworded(mind: Mind, made: Sequence[Bundle]) -> int:
    """How many of the contexts show a memory in words that it does not have any more."""
    rows = await mind.fetch("select memory_id, micro, summary from memory.memories")
    now = {row["memory_id"]: (row["micro"], row["summary"]) for row in rows}
    return sum(any(c.text not in now[c.memory_id] for c in bundle.items) for bundle in made)


async def let_go(mind: Mind, bundle: Bundle) -> bool:
    try:
        await hindsight(mind).replay(str(bundle.bundle_id))
    except NotFoundError as error:
        assert "has a forgotten memory" in error.hint
        return True
    return False


@pytest.mark.slow
@pytest.mark.timeout(1_800)
async def test_two_hundred_stored_contexts_come_out_the_same_after_three_thousand_writes(mind: Mind, dsn: str) -> None:
    # S002-15
    life = Living(mind.db, mind.agent_id, mind.clock, random.Random(6))
    made: list[Bundle] = []
    for _ in range(4):
        made += await contexts(mind, life, 50, writes=30)
        await vacuum_analyze(dsn)  # as the server does in its own time
    for _ in range(6):
        await life.go_on(500, at_once=100, forgetting=True)
        await vacuum_analyze(dsn)
    await replayed_all(mind, made)
    assert await reworded(mind, made) >= 50
    assert {c.kind for bundle in made for c in bundle.items} >= {"fact", "exchange", "episode", "decision"}
    assert any(bundle.focus for bundle in made) and any(bundle.assembly_input.censors.lines for bundle in made)
    assert any(c.reason == NO_ROOM for bundle in made for c in bundle.rejected_candidates)


async def test_a_context_goes_with_a_memory_or_censor_that_it_looked_at_and_with_no_other(mind: Mind) -> None:
    await mind.know("The ferry is called Artemis", "The garden needs water")
    first = await mind.context("What is the ferry called?")
    await mind.know("The kettle is blue")
    second = await mind.context("What is the ferry called?")
    await mind.forget(next(c.memory_id for c in second.candidates if "kettle" in c.text))
    assert not await let_go(mind, first)
    assert await let_go(mind, second)
    await mind.censors.add(CensorRule(trigger="sink the ferry", reason="it is needed"))
    (censor,) = await mind.censors.list_censors()
    shown = await mind.context("May I sink it?")
    assert "sink the ferry" in shown.text
    await mind.forget(censor.memory_id)
    assert await let_go(mind, shown)


async def test_erasing_a_decision_takes_its_former_words_and_the_contexts_along(mind: Mind) -> None:
    ctx = teller(mind.agent_id)
    async with mind.db.transaction(mind.agent_id) as tx:
        (decision,) = await recorded(tx, REDIS, ctx=ctx)
    await mind.settle()
    before = await mind.context("Should we use Redis for the cache?")
    mind.clock.advance(timedelta(days=2))
    ctx = teller(mind.agent_id, now=mind.clock.now())
    async with mind.db.transaction(mind.agent_id) as tx:
        await decisions.review(tx, decision, reviewed("failure", lesson="Redis was slow"), ctx=ctx)
        assert await tx.fetchval("select count(*) from memory.memory_versions where summary like '%Redis%'") == 1
    assert (await hindsight(mind).replay(str(before.bundle_id))).text == before.text
    async with mind.db.transaction(mind.agent_id) as tx:
        await decisions.erase(tx, decision, reason="a test", ctx=ctx)
        left = await tx.fetch("select micro, summary from memory.memory_versions")
    assert not any("Redis" in word for row in left for word in row)
    assert await let_go(mind, before)


async def test_words_that_were_changed_behind_its_back_are_named(mind: Mind, dsn: str) -> None:
    await mind.know("The ferry is called Artemis", "The garden needs water")
    bundle = await mind.context("What is the ferry called?")
    owner = await asyncpg.connect(dsn)
    await owner.execute("update memory.memories set summary = 'The ferry is called Zeus' where summary like '%Artemis'")
    changed = await hindsight(mind).replay(str(bundle.bundle_id))
    reasons = {one.field: one.reason for one in changed.differences}
    assert "its text at that time is gone" in reasons[f"memory {short_id(bundle.items[0].memory_id)}"]
    account = await hindsight(mind).explain(str(bundle.bundle_id))
    assert account.candidates[0].text == LOST_TEXT
    await owner.execute("update cognition.bundles set candidates = substr(candidates, 1, 20)")
    await owner.close()
    with pytest.raises(ConflictError, match=r"cannot be read: the columns are damaged"):
        await hindsight(mind).replay(str(bundle.bundle_id))


async def test_a_context_of_the_past_is_the_one_that_was_made_then(mind: Mind) -> None:
    # S002-16
    # of how often something had been used by a moment nothing is known
    life = Living(mind.db, mind.agent_id, mind.clock, random.Random(8), uses=False)
    async with mind.db.transaction(mind.agent_id) as tx:
        for first in (0, 40):
            await many(tx, 40, ctx=life.ctx, first=first)
            mind.clock.advance(timedelta(minutes=1))
        await snapshots.take_snapshot(tx, agent_id=mind.agent_id, now=life.ctx.now, count_tokens=count)
    made: list[tuple[datetime, Bundle]] = []
    for n in range(6):
        await life.go_on(40)
        await mind.settle()
        bundle = await mind.context(asked(life.chosen), budget=(8_000, 300, 1_500)[n % 3])
        made.append((mind.clock.now(), bundle))
    await life.go_on(60)
    await mind.settle()
    for moment, was in made:
        again = await mind.context(was.input, budget=was.budget, as_of=moment)
        assert [(c.memory_id, c.detail, c.reason) for c in again.candidates] == [
            (c.memory_id, c.detail, c.reason) for c in was.candidates
        ]
        assert again.text == was.text
        assert again.as_of == moment
    assert await reworded(mind, [bundle for _, bundle in made]) >= 3
    titles = {line for _, bundle in made for line in bundle.text.splitlines() if line.startswith("## ")}
    assert titles >= {"## Active Constraints", "## Current Focus", "## Note", "## Past Experience"}
    assert len({bundle.text for _, bundle in made}) == len(made)
    await replayed_all(mind, [await mind.context(made[0][1].input, as_of=made[0][0])])


async def test_use_counts_for_nothing_in_a_context_of_the_past(mind: Mind) -> None:
    await mind.know("The ferry is called Artemis")
    mind.clock.advance(timedelta(days=1))
    bundle = await mind.context("What is the ferry called?")
    await mind.verbs.record_access([c.memory_id for c in bundle.items])
    mind.clock.advance(timedelta(days=1))
    now = await mind.context("What is the ferry called?", profile="recent")
    past = await mind.context("What is the ferry called?", profile="recent", as_of=mind.clock.now())
    assert now.items[0].features["recency"] > past.items[0].features["recency"]


async def test_the_daily_job_lets_go_of_old_contexts(mind: Mind) -> None:
    old = await mind.context("What is the ferry called?")
    mind.clock.advance(timedelta(days=80))
    young = await mind.context("What is the ferry called?")
    mind.clock.advance(timedelta(days=11))
    assert (await upkeep(mind, bundle_retention_days=0).run_lifecycle()).expired_contexts == 0
    assert (await upkeep(mind, bundle_retention_days=90).run_lifecycle(dry_run=True)).expired_contexts == 0
    assert (await upkeep(mind, bundle_retention_days=90).run_lifecycle()).expired_contexts == 1
    assert await let_go(mind, old)
    assert not await let_go(mind, young)


async def test_bundles_are_meant_by_either_end_of_their_ids(mind: Mind) -> None:
    with pytest.raises(NotFoundError, match="There is no context yet"):
        await hindsight(mind).explain("latest")
    first, last = [await mind.context(words) for words in ("one", "two")]
    listed = await hindsight(mind).list_recent(5)
    assert [one.input for one in listed] == ["two", "one"]
    for given in (str(first.bundle_id), first.bundle_id.hex[:20], first.bundle_id.hex[-8:].upper()):
        assert (await hindsight(mind).explain(given)).bundle_id == first.bundle_id
    assert (await hindsight(mind).explain("latest")).bundle_id == last.bundle_id
    with pytest.raises(InputError, match="is not the id of a stored context"):
        await hindsight(mind).explain("xyz")
    with pytest.raises(ConflictError, match="Several stored contexts"):
        await hindsight(mind).explain(first.bundle_id.hex[:6])


async def test_what_two_contexts_do_not_share_is_told_with_the_reason(mind: Mind) -> None:
    await mind.know(*(f"The ferry number {n} goes to the island of Samos." for n in range(9)))
    small, large = [await mind.context("Where does the ferry go?", budget=budget) for budget in (100, 300)]
    compared = await hindsight(mind).diff(str(small.bundle_id), str(large.bundle_id))
    assert FieldChange("budget", "100", "300") in compared.settings
    assert compared.only_one == []
    assert {one.there for one in compared.only_other} == {f"out ({NO_ROOM})"}
    assert len(compared.only_other) == len(large.items) - len(small.items)
    assert (await hindsight(mind).diff(str(small.bundle_id), str(small.bundle_id))).is_identical
    await mind.know("The ferry to the island of Samos is late.")
    later = await mind.context("Where does the ferry go?", budget=300)
    (new,) = (await hindsight(mind).diff(str(large.bundle_id), str(later.bundle_id))).only_other
    assert (new.there, new.text) == ("not a candidate", "The ferry to the island of Samos is late.")


async def test_every_derived_item_names_what_it_was_made_from(mind: Mind) -> None:
    # S002-15
    session_id = await mind.hear(*(f"The ferry {n} leaves for Samos at {n}." for n in range(8)))
    await mind.close(session_id)
    await mind.settle()
    bundle = await mind.context("When does the ferry leave?")
    account = await hindsight(mind).explain(str(bundle.bundle_id))
    (episode,) = [item for item in account.candidates if item.kind == "episode"]
    lines = {item.memory_id for item in account.candidates if item.kind == "exchange"}
    assert len(episode.sources) == 2 and set(episode.sources) < lines
    assert str(episode.memory_id) not in bundle.text, "S002-15N: the record is for whoever asks, not for the model"
