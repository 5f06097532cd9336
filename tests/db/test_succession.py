"""Which fact holds: the newest of a single-valued attribute, what nobody retracted, and never what only a tool said."""

from collections.abc import Awaitable, Callable
from uuid import UUID

import pytest

from newton.db.pool import Database, Tx
from newton.errors import ConflictError, NotFoundError
from newton.heart.facts.attributes import set_cardinality
from newton.heart.facts.conflicts import list_conflicts
from newton.heart.facts.fact_edits import set_core
from newton.heart.facts.fact_store import confirm, disprove, retract, supersede
from newton.heart.lifecycle import engine
from newton.ids import new_id
from newton.memory.forgetting import forget
from newton.memory.memory import Trust
from tests.db.telling import day, holding, known, on, reasons, says, states, tell
from tests.support import ANA

Verb = Callable[..., Awaitable[None]]


async def test_a_newer_value_supersedes_the_older(tx: Tx) -> None:
    # S002-16
    await tell(tx, says("Oslo"))
    await tell(tx, says("Bergen", 9))
    assert await states(tx) == {"Oslo": "SUPERSEDED", "Bergen": "NEW"}
    assert await holding(tx) == {"Bergen"}
    assert await reasons(tx, "Oslo") == ["superseded: a newer value is valid since 2026-11-30"]


async def test_an_older_value_told_later_supersedes_nothing(tx: Tx) -> None:
    await tell(tx, says("Bergen", 9))
    await tell(tx, says("Oslo", 3), ctx=on(20))
    assert await states(tx) == {"Bergen": "NEW", "Oslo": "SUPERSEDED"}
    assert await holding(tx) == {"Bergen"}


async def test_of_values_told_at_once_for_one_moment_the_last_told_holds(tx: Tx) -> None:
    await tell(tx, says("Oslo"), says("Bergen"), says("Rome"))
    assert await holding(tx) == {"Rome"}


async def test_case_and_white_space_of_subject_and_attribute_do_not_count(tx: Tx) -> None:
    await tell(tx, says("Oslo"))
    await tell(tx, says("Bergen", 1, subject=" ANA ", attribute="Lives_in"))
    assert await holding(tx) == {"Bergen"}


async def test_values_of_a_many_valued_attribute_and_of_other_subjects_stay(tx: Tx) -> None:
    await tell(tx, says("tea", attribute="likes"), says("Oslo"), says("Rome", subject="Ben"))
    await tell(tx, says("coffee", 1, attribute="likes"), says("Bergen", 1))
    assert await states(tx) == {
        "tea": "NEW",
        "Oslo": "SUPERSEDED",
        "Rome": "NEW",
        "coffee": "NEW",
        "Bergen": "NEW",
    }


async def test_an_attribute_has_one_value_from_when_it_is_declared_so(tx: Tx) -> None:
    await tell(tx, says("tea", attribute="drinks"), says("milk", attribute="drinks"))
    await set_cardinality(tx, "Drinks", agent_id=ANA, single=True)
    await tell(tx, says("coffee", 1, attribute="drinks"))
    await tell(tx, says("water", 2, attribute="drinks"))
    assert await holding(tx) == {"tea", "milk", "water"}
    await set_cardinality(tx, "drinks", agent_id=ANA, single=False)
    await tell(tx, says("wine", 3, attribute="drinks"))
    assert await holding(tx) == {"tea", "milk", "water", "wine"}


async def test_who_moves_back_lives_there_again(tx: Tx) -> None:
    for number, city in enumerate(["Oslo", "Bergen", "Oslo", "Bergen", "Oslo"]):
        await tell(tx, says(city, number))
        assert await holding(tx) == {city}
    assert await states(tx) == {"Oslo": "CONFIRMED", "Bergen": "SUPERSEDED"}
    assert [reason.split(":")[0] for reason in await reasons(tx, "Oslo")] == [
        *("superseded", "restored", "superseded", "restored")
    ]


async def test_an_old_value_told_again_of_an_earlier_time_or_by_a_tool_stays_old(tx: Tx) -> None:
    await tell(tx, says("Oslo"))
    await tell(tx, says("Bergen", 9))
    await tell(tx, says("Oslo", 5), ctx=on(20))
    await tell(tx, says("Oslo", 21), ctx=on(21, trust="tool"))
    assert await holding(tx) == {"Bergen"}


# --- what tools and the web say ---


async def test_what_a_tool_says_neither_supersedes_nor_is_superseded(tx: Tx) -> None:
    await tell(tx, says("Oslo"))
    await tell(tx, says("Bergen", 5), ctx=on(5, trust="tool"))
    await tell(tx, says("Rome", 9))
    assert await states(tx) == {"Oslo": "SUPERSEDED", "Bergen": "NEW", "Rome": "NEW"}
    assert await holding(tx) == {"Rome"}
    assert await engine.review(tx, on(9), "fact", [await known(tx, "Bergen")]) == []


@pytest.mark.parametrize("trust", ["tool", "web"])
@pytest.mark.parametrize("confirmer", ["user", "operator"])
async def test_a_person_s_word_releases_it_and_then_it_counts(tx: Tx, trust: Trust, confirmer: Trust) -> None:
    await tell(tx, says("Oslo"))
    await tell(tx, says("Bergen", 5), ctx=on(5, trust=trust))
    assert await confirm(tx, await known(tx, "Bergen"), ref="c", source="s", ctx=on(6, trust=confirmer))
    assert await states(tx) == {"Oslo": "SUPERSEDED", "Bergen": "CONFIRMED"}
    assert await holding(tx) == {"Bergen"}
    assert await reasons(tx, "Bergen") == ["released: a person confirmed it; number of confirmations: 1"]


async def test_two_other_outside_origins_release_it(tx: Tx) -> None:
    await tell(tx, says("Bergen", 5), ctx=on(5, trust="web", origin="a.example"))
    for number, origin in enumerate(["a.example", "b.example", "b.example"]):
        await tell(tx, says("Bergen", 5), ctx=on(6 + number, trust="web", origin=origin))
        assert await holding(tx) == set(), "itself, and one other twice"
    await tell(tx, says("Bergen", 5), ctx=on(9, trust="tool", origin="c.example"))
    assert await holding(tx) == {"Bergen"}
    assert (await reasons(tx, "Bergen"))[-1].startswith("released: 2 other origins state the same")


@pytest.mark.parametrize("confirmed", [False, True])
async def test_lower_trust_contests_and_never_supersedes_what_a_person_told(tx: Tx, *, confirmed: bool) -> None:
    await tell(tx, says("Oslo"))
    if confirmed:
        assert await confirm(tx, await known(tx, "Oslo"), ref="c", source="s", ctx=on(1))
    await tell(tx, says("Bergen", 5), ctx=on(5, trust="agent"))
    assert await holding(tx) == {"Oslo", "Bergen"}
    contested = "select m.full_text from heart.facts as f join memory.memories as m using (agent_id, memory_id)"
    assert "Bergen" in await tx.fetchval(f"{contested} where f.is_contested")
    await supersede(tx, await known(tx, "Oslo"), by_fact=await known(tx, "Bergen"), ctx=on(6))
    assert await holding(tx) == {"Bergen"}, "a person settles it"
    assert await tx.fetchval(f"{contested} where f.is_contested") is None


async def test_a_value_that_begins_later_is_not_current_yet(tx: Tx) -> None:
    await tell(tx, says("Oslo"))
    await tell(tx, says("Bergen", 9), ctx=on(1))
    assert await holding(tx) == {"Oslo"}
    await engine.review(tx, on(10), "fact", [await known(tx, "Bergen")])
    assert await holding(tx) == {"Bergen"}


async def test_an_agent_cannot_release_it(tx: Tx) -> None:
    await tell(tx, says("Oslo"))
    await tell(tx, says("Bergen", 5), ctx=on(5, trust="tool"))
    for number in range(6, 12):
        await tell(tx, says("Bergen", number), ctx=on(number, trust="agent", origin=f"agent {number}"))
    assert await states(tx) == {"Oslo": "NEW", "Bergen": "CONFIRMED"}
    assert await holding(tx) == {"Oslo"}


async def test_what_was_superseded_in_quarantine_is_released_in_one_step(tx: Tx) -> None:
    await tell(tx, says("Bergen"), ctx=on(0, trust="tool"))
    await tell(tx, says("Oslo", 1))
    old, new = await known(tx, "Bergen"), await known(tx, "Oslo")
    await supersede(tx, old, by_fact=new, ctx=on(2))
    await confirm(tx, old, ref="c", source="s", ctx=on(1))
    await retract(tx, new, ctx=on(3))
    assert await holding(tx) == {"Bergen"}
    assert await engine.review(tx, on(3), "fact", [old, new]) == []


@pytest.mark.parametrize("verb", [supersede, disprove])
async def test_a_fact_in_quarantine_has_no_say(tx: Tx, verb: Verb) -> None:
    await tell(tx, says("Oslo"))
    await tell(tx, says("Bergen"), ctx=on(0, trust="tool"))
    with pytest.raises(ConflictError, match=r"is in quarantine\. Confirm the fact first"):
        await verb(tx, await known(tx, "Oslo"), by_fact=await known(tx, "Bergen"), ctx=on(1))
    assert await states(tx) == {"Oslo": "NEW", "Bergen": "NEW"}


# --- what a person says about a fact ---


@pytest.mark.parametrize("verb", [supersede, disprove])
async def test_a_fact_that_was_said_to_be_wrong_has_no_say(tx: Tx, verb: Verb) -> None:
    await tell(tx, says("tea", attribute="likes"), says("milk", attribute="likes"))
    await retract(tx, await known(tx, "milk"), ctx=on(1))
    with pytest.raises(ConflictError, match=r"was retracted as wrong\. Use another"):
        await verb(tx, await known(tx, "tea"), by_fact=await known(tx, "milk"), ctx=on(2))
    assert await states(tx) == {"tea": "NEW", "milk": "INACTIVE"}


@pytest.mark.parametrize("words", ["Oslo", "tea"])
async def test_what_is_retracted_is_inactive_and_what_it_superseded_is_restored(tx: Tx, words: str) -> None:
    # S002-16
    await tell(tx, says("Oslo"), says("tea", attribute="likes"))
    await tell(tx, says("Bergen", 1))
    await supersede(tx, await known(tx, "tea"), by_fact=await known(tx, "Bergen"), ctx=on(1))
    assert await holding(tx) == {"Bergen"}
    await retract(tx, await known(tx, "Bergen"), ctx=on(2))
    assert await states(tx) == {"Oslo": "NEW", "tea": "NEW", "Bergen": "INACTIVE"}
    assert (await reasons(tx, words))[-1] == "restored: nothing supersedes it any longer; it has no confirmations"


async def test_what_a_fact_disproves_is_inactive_and_stays_so_when_that_fact_is_forgotten(tx: Tx) -> None:
    await tell(tx, says("Oslo"), says("tea", attribute="likes"), says("liar", attribute="is"))
    await tell(tx, says("Bergen", 1))
    wrong, said = await known(tx, "Bergen"), await known(tx, "liar")
    await supersede(tx, await known(tx, "tea"), by_fact=wrong, ctx=on(1))
    await disprove(tx, wrong, by_fact=said, ctx=on(2))
    assert await holding(tx) == {"Oslo", "tea", "liar"}
    await forget(tx, [said], derived=False, reason="asked for", ctx=on(3))
    left = [await known(tx, value) for value in ("Oslo", "tea", "Bergen")]
    assert await engine.review(tx, on(4), "fact", left) == []
    assert await holding(tx) == {"Oslo", "tea"}


async def test_what_was_retracted_takes_part_in_nothing_however_often_it_is_told(tx: Tx) -> None:
    await tell(tx, says("Oslo"))
    await tell(tx, says("Bergen", 1))
    await retract(tx, await known(tx, "Bergen"), ctx=on(2))
    for number in range(3, 9):
        await tell(tx, says("Bergen", number))
    await set_core(tx, [await known(tx, "Bergen")], is_core=True, ctx=on(9))
    assert await states(tx) == {"Oslo": "NEW", "Bergen": "INACTIVE"}


@pytest.mark.parametrize("stated", ["user", "agent"])
@pytest.mark.parametrize("retracted", ["user", "agent"])
@pytest.mark.parametrize("told", ["user", "agent"])
async def test_what_only_a_model_stated_and_retracted_holds_when_a_person_tells_it(
    tx: Tx, stated: Trust, retracted: Trust, told: Trust
) -> None:
    # S002-16
    await tell(tx, says("Oslo"), ctx=on(0, trust=stated))
    await retract(tx, await known(tx, "Oslo"), ctx=on(1, trust=retracted))
    await tell(tx, says("Oslo", 2), ctx=on(2, trust=told))
    is_open = (stated, retracted, told) == ("agent", "agent", "user")
    assert await states(tx) == {"Oslo": "CONFIRMED" if is_open else "INACTIVE"}
    assert await holding(tx) == ({"Oslo"} if is_open else set())


async def test_supersession_in_a_circle_is_refused_with_the_way_out(tx: Tx) -> None:
    await tell(tx, *(says(value, attribute="likes") for value in ("tea", "milk", "wine")))
    tea, milk, wine = [await known(tx, value) for value in ("tea", "milk", "wine")]
    await supersede(tx, tea, by_fact=milk, ctx=on(1))
    await supersede(tx, milk, by_fact=wine, ctx=on(1))
    for old, new in ((milk, tea), (wine, tea)):
        with pytest.raises(ConflictError, match=r"already supersedes .*\. Retract the fact that is wrong"):
            await supersede(tx, old, by_fact=new, ctx=on(2))
    with pytest.raises(ConflictError, match=r"A fact cannot supersede itself\. Name two different facts"):
        await supersede(tx, tea, by_fact=tea, ctx=on(2))
    assert await states(tx) == {"tea": "SUPERSEDED", "milk": "SUPERSEDED", "wine": "NEW"}
    await retract(tx, wine, ctx=on(3))
    assert await holding(tx) == {"milk"}


async def test_what_was_put_in_another_s_place_holds_again_when_it_is_told_later(tx: Tx) -> None:
    await tell(tx, says("open", attribute="finds the door"), says("shut", attribute="finds the door"))
    opened, shut = await known(tx, "open"), await known(tx, "shut")
    await supersede(tx, opened, by_fact=shut, ctx=on(1))
    assert await holding(tx) == {"shut"}
    await tell(tx, says("open", 2, attribute="finds the door"))
    assert await holding(tx) == {"open"}, "of the two, the one stated last"
    await supersede(tx, opened, by_fact=shut, ctx=on(3))
    assert await holding(tx) == {"shut"}, "said once more"
    await tell(tx, says("open", 4, attribute="finds the door"))
    await supersede(tx, shut, by_fact=opened, ctx=on(4))
    assert await holding(tx) == {"open"}
    await tell(tx, says("shut", 5, attribute="finds the door"))
    await supersede(tx, opened, by_fact=shut, ctx=on(5))
    assert await holding(tx) == {"shut"}


async def test_a_fact_is_corroborated_once_by_each_telling(tx: Tx) -> None:
    await tell(tx, says("tea", attribute="likes"))
    tea = await known(tx, "tea")
    for source in ("a", "a", "b", "b", "c"):
        first = source not in {row["source"] for row in await tx.fetch("select source from memory.confirmations")}
        assert await confirm(tx, tea, ref=source, source=source, ctx=on(1)) is first
    assert await states(tx) == {"tea": "CORE"}
    assert (await reasons(tx, "tea"))[-1] == "established: 3 independent sources confirm it"


async def test_tellings_of_one_source_or_of_its_own_do_not_make_a_fact_core(tx: Tx) -> None:
    # S002-16
    await tell(tx, says("tea", attribute="likes"))
    tea = await known(tx, "tea")
    for number, source in enumerate([f"test {day(0):%Y-%m-%d}", "a", "a", "a", "b"]):
        await confirm(tx, tea, ref=str(number), source=source, ctx=on(1))
        assert await states(tx) == {"tea": "CONFIRMED"}


async def test_a_marked_fact_is_core_and_only_a_person_ends_it(tx: Tx) -> None:
    """A newer value stands beside it, unsettled, until somebody decides or takes the mark away."""
    await tell(tx, says("Oslo", core=True))
    assert await states(tx) == {"Oslo": "CORE"}
    await tell(tx, says("Bergen", 1))
    assert await states(tx) == {"Oslo": "CORE", "Bergen": "NEW"}
    assert len(await list_conflicts(tx, agent_id=on(1).agent_id)) == 1
    await set_core(tx, [await known(tx, "Oslo")], is_core=False, ctx=on(2))
    assert await states(tx) == {"Oslo": "SUPERSEDED", "Bergen": "NEW"}


async def test_what_is_said_of_a_fact_told_in_other_words_is_said_of_that(tx: Tx) -> None:
    await tell(tx, says("tea", attribute="likes"), says("chai", attribute="likes"), says("milk", attribute="likes"))
    tea, chai, milk = [await known(tx, value) for value in ("tea", "chai", "milk")]
    await tx.execute("update heart.facts set duplicate_of = $1 where memory_id = $2", tea, chai)
    await engine.review(tx, on(1), "fact", [chai])
    await set_core(tx, [tea], is_core=True, ctx=on(1))
    await confirm(tx, chai, ref="a", source="a", ctx=on(1))
    assert await states(tx) == {"tea": "CORE", "chai": "SUPERSEDED", "milk": "NEW"}
    with pytest.raises(ConflictError, match="cannot supersede itself"):
        await supersede(tx, chai, by_fact=tea, ctx=on(2))
    await supersede(tx, chai, by_fact=milk, ctx=on(2))
    assert await holding(tx) == {"milk"}
    await retract(tx, milk, ctx=on(3))
    await retract(tx, chai, ctx=on(3))
    assert await states(tx) == {"tea": "INACTIVE", "chai": "SUPERSEDED", "milk": "INACTIVE"}


@pytest.mark.parametrize("verb", [supersede, disprove])
async def test_a_fact_that_is_not_there_is_named(tx: Tx, verb: Verb) -> None:
    await tell(tx, says("Oslo"))
    oslo, nobody = await known(tx, "Oslo"), new_id()
    for one, other in ((oslo, nobody), (nobody, oslo)):
        with pytest.raises(NotFoundError, match=f"There is no fact {nobody}"):
            await verb(tx, one, by_fact=other, ctx=on(1))
    with pytest.raises(NotFoundError, match=f"There is no fact {nobody}"):
        await retract(tx, nobody, ctx=on(1))
    assert await holding(tx) == {"Oslo"}


# --- time ---


async def test_a_fact_ends_when_it_was_said_to_end_and_the_one_before_holds_again(db: Database, agent: UUID) -> None:
    async with db.transaction(agent) as tx:
        await tell(tx, says("Oslo"), says("Rome", 1, until=9), says("tea", 1, attribute="likes", until=9))
        await tell(tx, says("milk", 1, attribute="likes", until=2), ctx=on(3))
        assert await holding(tx) == {"Rome", "tea"}
    assert await engine.run_lifecycle(db, on(9 - 1e-6)) == []
    assert len(await engine.run_lifecycle(db, on(9), dry_run=True)) == 3
    assert {step.event for step in await engine.run_lifecycle(db, on(9))} == {"expired", "restored"}
    assert await engine.run_lifecycle(db, on(9)) == []
    async with db.transaction(agent) as tx:
        assert await holding(tx) == {"Oslo"}
        assert await reasons(tx, "tea") == ["expired: it was valid until 2026-11-30"]
        await tell(tx, says("tea", 10, attribute="likes"))
        assert await holding(tx) == {"Oslo", "tea"}
    assert await engine.run_lifecycle(db, on(99)) == []


async def test_what_ended_before_it_was_told_never_held(tx: Tx) -> None:
    await tell(tx, says("Oslo"))
    await tell(tx, says("Rome", 1, until=2), ctx=on(5))
    assert await holding(tx) == {"Oslo"}
    assert (await reasons(tx, "Oslo")) == []


async def test_what_the_web_repeats_moves_no_fact_of_a_person_and_makes_it_no_fresher(tx: Tx) -> None:
    # what is quarantined takes part in nothing
    fresh = "select confirmed_at from memory.memories where kind = 'fact'"
    await tell(tx, says("Oslo"))
    for n in range(1, 5):
        await tell(tx, says("Oslo", n), ctx=on(n, trust="web", origin=f"site {n}"))
    assert await states(tx) == {"Oslo": "NEW"}
    assert await tx.fetchval(fresh) is None
    await tell(tx, says("Oslo", 5))
    assert await states(tx) == {"Oslo": "CONFIRMED"}
    assert await tx.fetchval(fresh) == day(5)
