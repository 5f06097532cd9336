"""What is told in everyday words replaces what it contradicts, without an LLM."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest

from newton.agent.services.conflicts import ConflictService
from newton.agent.services.curation import CurationService
from newton.agent.services.identity import IdentityService
from newton.agent.services.memories import FactDraft
from newton.content.yaml_files import parse_trusted
from newton.db.pool import Database
from newton.errors import ConflictError, InputError, NotFoundError
from newton.heart.facts.conflicts import FactPair, Settlement
from newton.heart.facts.fact_comparison import compare_facts
from newton.heart.lifecycle.engine import review
from newton.ids import derive_model_id
from newton.memory import agents, store
from newton.memory.lookup import short_id
from newton.memory.memory import Trust
from newton.memory.vectors import EmbeddingOutbox
from newton.operations.cursors import encode_cursor
from newton.operations.memories.conflicts import list_conflict_page
from newton.runtime.tools.tool_registry import run_tool
from tests.scenarios.conftest import Mind, newton
from tests.support import NOON

pytestmark = pytest.mark.usefixtures("minilm")
DATA = Path(__file__).parents[1] / "data"


async def tell(mind: Mind, *facts: FactDraft) -> list[UUID]:
    """Tell one fact after another, a day apart; each is embedded and compared before the next."""
    assert mind.embedder is not None
    ids: list[UUID] = []
    for fact in facts:
        ids.append((await mind.verbs.remember(fact)).memory_id)
        await EmbeddingOutbox(mind.db, mind.embedder, mind.agent_id).drain()
        model_id = derive_model_id(mind.embedder.identity)
        await compare_facts(mind.db, mind.scope.write_context(), model_id=model_id)
        mind.clock.advance(timedelta(days=1))
    return ids


async def read_states(mind: Mind) -> dict[UUID, str]:
    rows = await mind.fetch("select memory_id, state from memory.memories where kind = 'fact'")
    return {row["memory_id"]: row["state"] for row in rows}


async def outcome(mind: Mind, older: UUID, newer: UUID) -> str:
    """Return update, unsure, same or compatible, from the stored states and links."""
    states = await read_states(mind)
    links = {tuple(row) for row in await mind.fetch("select memory_id, link, other_id from memory.links")}
    if (newer, "supersedes", older) in links:
        assert (states[older], states[newer]) == ("SUPERSEDED", "NEW")
        return "update"
    if (newer, "contradicts", older) in links:
        assert states[older] != "SUPERSEDED"
        return "unsure"
    return "same" if states[newer] == "SUPERSEDED" else "compatible"


async def another_mind(mind: Mind, name: str) -> Mind:
    agent_id = await agents.get_or_create_agent(mind.db, name, now=NOON)
    return replace(mind, agent_id=agent_id)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Carla lives in Oslo.", "Carla moved to Bergen last week."),
        ("The rate limit is 100.", "The rate limit was raised to 250."),
        ("Carla lives in Oslo.", "Carla lives in Bergen."),
        ("Our standup is at 9:30.", "The standup was moved to 10:15."),
        ("The staging database listens on port 5433.", "The staging database listens on port 5440."),
        ("We keep our tickets in Trello.", "We switched from Trello to Asana."),
        ("The newsletter goes out on Mondays.", "The newsletter goes out on Thursdays from now on."),
        ("Renske is the editor of the paper.", "Hugo took over from Renske as editor."),
        ("Our wine comes from Lidl.", "We no longer buy wine from Lidl."),
    ],
)
async def test_a_newer_statement_replaces_what_it_contradicts(mind: Mind, older: str, newer: str) -> None:
    # S002-17: a superseded fact is never stated as current
    first, second = await tell(mind, FactDraft(content=older), FactDraft(content=newer))
    assert await outcome(mind, first, second) in ("update", "unsure")


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Elif speaks Turkish.", "Elif speaks Portuguese."),
        ("I have a dachshund named Plum.", "I have a greyhound named Sir Barkley."),
        ("Staging runs Postgres 16.", "Production runs Postgres 14."),
        ("Aunt Birgitta lives in Lund.", "Uncle Göte lives in Kalmar."),
        ("Mathilde lives in Lyon.", "Mathilde would like to live in Paris one day."),
    ],
)
async def test_statements_that_are_both_true_stand_beside_each_other(mind: Mind, older: str, newer: str) -> None:
    first, second = await tell(mind, FactDraft(content=older), FactDraft(content=newer))
    assert await outcome(mind, first, second) == "compatible"


async def test_the_later_statement_wins_in_either_order(mind: Mind) -> None:
    late = FactDraft(content="The rate limit was raised to 250.", at=NOON - timedelta(days=1))
    early = FactDraft(content="The rate limit is 100.", at=NOON - timedelta(days=30))
    newer, older = await tell(mind, late, early)
    assert await outcome(mind, older, newer) == "update"


async def test_an_allergy_is_never_replaced_silently(mind: Mind) -> None:
    first, second = await tell(
        mind,
        FactDraft(content="Nuria must never eat nuts."),
        FactDraft(content="Nuria may eat nuts now, the test was wrong."),
    )
    assert await outcome(mind, first, second) != "update"


async def test_a_statement_changes_one_thing_and_leaves_the_rest(mind: Mind) -> None:
    texts = (
        "The gateway server runs Debian 11.",
        "The gateway server has 16 GB of memory.",
        "Backups of the gateway are kept for 90 days.",
        "I upgraded the gateway server to Debian 12.",
    )
    debian, memory, backups, _ = await tell(mind, *(FactDraft(content=text) for text in texts))
    states = await read_states(mind)
    assert (states[debian], states[memory], states[backups]) == ("SUPERSEDED", "NEW", "NEW")


async def test_a_statement_against_an_allergy_is_shown_as_a_conflict(mind: Mind) -> None:
    texts = ("Carla is allergic to peanuts.", "Carla can eat peanuts without any problem.")
    first, second = await tell(mind, *(FactDraft(content=text) for text in texts))
    assert await outcome(mind, first, second) == "unsure"


UNSURE = ("The office printer is a Brother.", "We print on a Canon at the office.")


async def contest(mind: Mind, older: UUID, newer: UUID) -> FactPair:
    """Mark two facts as contradictory, and return the conflict."""
    async with mind.scope.write() as (tx, ctx):
        await store.add_links(tx, "contradicts", [(newer, older)], ctx=ctx)
        await review(tx, ctx, "fact", [older, newer])
    (pair,) = await ConflictService(scope=mind.scope).list_conflicts()
    assert (pair.newer.memory_id, pair.older.memory_id) == (newer, older)
    return pair


@pytest.mark.parametrize(
    ("keep", "states"),
    [
        ("newer", ("SUPERSEDED", "CONFIRMED")),
        ("older", ("CONFIRMED", "INACTIVE")),
        ("both", ("CONFIRMED", "CONFIRMED")),
        ("same", ("CONFIRMED", "SUPERSEDED")),
    ],
)
async def test_a_person_settles_a_conflict_with_one_word(mind: Mind, keep: Settlement, states: tuple[str, str]) -> None:
    older, newer = await tell(mind, *(FactDraft(content=text) for text in UNSURE))
    await contest(mind, older, newer)
    service = ConflictService(scope=mind.scope)
    assert len(await service.settle(newer.hex, keep)) == 1
    found = await read_states(mind)
    assert not await mind.fetchval("select bool_or(is_contested) from heart.facts")
    assert (found[older], found[newer]) == states
    assert await service.list_conflicts() == []
    with pytest.raises(NotFoundError, match="no open conflict"):
        await service.settle(newer.hex, keep)


async def test_conflicts_are_listed_in_pages(mind: Mind) -> None:
    facts = await tell(mind, *(FactDraft(content=f"Crate {number} is on shelf {number}.") for number in range(8)))
    async with mind.scope.write() as (tx, ctx):
        await store.add_links(tx, "contradicts", list(zip(facts[::2], facts[1::2], strict=True)), ctx=ctx)
    service = ConflictService(scope=mind.scope)
    whole = await list_conflict_page(service, limit=10, cursor=None)
    assert (len(whole.items), whole.next, whole.count) == (4, None, 4)
    first = await list_conflict_page(service, limit=3, cursor=None)
    await service.settle(first.items[0].newer.memory_id.hex, "both")  # the next page is the same nevertheless
    second = await list_conflict_page(service, limit=3, cursor=first.next)
    assert (*first.items, *second.items) == tuple(whole.items)
    assert (second.next, second.count) == (None, None)
    for cursor in ("nonsense", encode_cursor("1"), encode_cursor(f"2026-01-01 {facts[0]} {facts[1]}")):
        with pytest.raises(InputError, match="cursor is invalid"):
            await list_conflict_page(service, limit=3, cursor=cursor)


async def test_what_is_told_again_later_is_current_and_what_replaced_it_is_not(mind: Mind) -> None:
    texts = ("The rate limit is 100.", "The rate limit was raised to 250.", "The rate limit is 100.")
    first, second, _ = await tell(mind, *(FactDraft(content=text) for text in texts))
    found = await read_states(mind)
    assert (found[first], found[second]) == ("CONFIRMED", "SUPERSEDED")


async def test_a_confirmation_of_a_superseded_fact_names_what_replaced_it(mind: Mind) -> None:
    texts = ("The rate limit is 100.", "The rate limit was raised to 250.")
    first, second = await tell(mind, *(FactDraft(content=text) for text in texts))
    with pytest.raises(ConflictError, match="raised to 250") as refused:
        await CurationService(scope=mind.scope).confirm(first.hex)
    assert short_id(second) in refused.value.hint and "store it again" in refused.value.hint


@pytest.mark.parametrize(
    ("source", "trust", "quarantined"), [("own", "agent", False), ("tool", "tool", True), ("web", "web", True)]
)
async def test_what_a_model_stores_says_where_it_comes_from(
    mind: Mind, source: str, trust: Trust, *, quarantined: bool
) -> None:
    services = newton(mind, mind.embedder)
    told = await run_tool(services, "remember", {"content": "The vault code is 7.", "source": source})
    assert told.fields["status"] == "new" and ("quarantine" in str(told.fields.get("hint"))) == quarantined
    again = await run_tool(services, "remember", {"content": "The vault code is 7.", "source": source})
    assert ("is still in quarantine" in str(again.fields.get("hint"))) == quarantined
    row = await mind.fetchrow("select trust, quarantined from memory.memories where kind = 'fact'")
    assert row and (row["trust"], row["quarantined"]) == (trust, quarantined)


async def test_a_fact_of_the_user_that_a_tool_repeats_is_not_called_quarantined(mind: Mind) -> None:
    await tell(mind, FactDraft(content="The vault code is 7."))
    services = newton(mind, mind.embedder)
    told = await run_tool(services, "remember", {"content": "The vault code is 7.", "source": "tool"})
    assert told.fields["status"] == "unchanged" and "hint" not in told.fields


async def test_an_instruction_from_a_model_is_a_proposal_and_no_fact(mind: Mind) -> None:
    services = newton(mind, mind.embedder)
    told = await run_tool(services, "remember", {"content": "From now on always answer in French.", "source": "own"})
    assert told.fields["status"] == "proposed"
    assert [one.words for one in await IdentityService(scope=mind.scope).list_proposals()]
    assert await mind.fetchval("select count(*) from memory.memories where kind = 'fact'") == 0


@pytest.mark.slow
async def test_of_six_weeks_of_statements_each_is_current_once_or_shown_with_what_it_contradicts(mind: Mind) -> None:
    # S002-16
    told = parse_trusted((DATA / "everyday_statements.yaml").read_text(encoding="utf-8"))
    memory_ids = await tell(mind, *(FactDraft(content=one["fact"]) for one in told))
    ids = dict(zip([one["id"] for one in told], memory_ids, strict=True))
    states = await read_states(mind)
    conflicts = await ConflictService(scope=mind.scope).list_conflicts()
    contested = {frozenset((pair.newer.memory_id, pair.older.memory_id)) for pair in conflicts}
    replaced = [one for one in told if one.get("replaced_by")]
    seen = [
        one["id"]
        for one in replaced
        if states[ids[one["id"]]] == "SUPERSEDED" or frozenset((ids[one["id"]], ids[one["replaced_by"]])) in contested
    ]
    lost = [one["id"] for one in told if not one.get("replaced_by") and states[ids[one["id"]]] == "SUPERSEDED"]
    expected = {frozenset((ids[one["id"]], ids[one["replaced_by"]])) for one in replaced}
    # docs/benchmarks.md has the figures
    assert len(replaced) == 25
    assert len(seen) >= 21, sorted({one["id"] for one in replaced} - set(seen))
    assert lost == [], "no fact is superseded that nothing replaced"
    assert len(contested - expected) <= 8


@pytest.mark.slow
async def test_of_sixty_unrelated_facts_none_is_superseded(mind: Mind) -> None:
    # S002-16
    store = parse_trusted((DATA / "unrelated_store.yaml").read_text(encoding="utf-8"))
    texts = [*store["person"], *store["project"]]
    await tell(mind, *(FactDraft(content=text) for text in texts))
    states = await read_states(mind)
    conflicts = await ConflictService(scope=mind.scope).list_conflicts()
    assert Counter(states.values()) == {"NEW": 60}
    assert len(conflicts) <= 2, [(pair.older.text, pair.newer.text) for pair in conflicts]


@pytest.mark.slow
async def test_labelled_pairs_that_were_held_out(mind: Mind, db: Database) -> None:
    pairs = parse_trusted((DATA / "updates_heldout.yaml").read_text(encoding="utf-8"))
    counts: dict[str, Counter[str]] = {}
    for pair in pairs:
        own = await another_mind(mind, pair["id"])
        first, second = await tell(own, FactDraft(content=pair["older"]), FactDraft(content=pair["newer"]))
        counts.setdefault(pair["group"], Counter())[await outcome(own, first, second)] += 1
    report = {group: dict(found) for group, found in counts.items()}
    changed = {group: found["update"] + found["unsure"] for group, found in counts.items()}
    # docs/benchmarks.md has the figures; these bounds leave room for a refitted model
    assert changed["announced"] >= 0.85 * counts["announced"].total(), report
    plain = counts["plain_same"] + counts["plain_other"]
    assert changed["plain_same"] + changed["plain_other"] >= 0.75 * plain.total(), report
    assert counts["compatible"]["update"] <= 2, report
    assert changed["compatible"] <= 0.15 * counts["compatible"].total(), report
