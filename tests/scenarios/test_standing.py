"""The context of a conversation stands, is brought up to date, or is made anew; and why is said."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID

import pytest

from newton.agent.loop.turn import TurnInput, TurnResult, TurnRunner
from newton.agent.prompting.memory_delta import INPUT_HEADER
from newton.agent.services.identity import IdentityService
from newton.agent.services.memories import FactDraft
from newton.cognition.assembly.sections import NOTHING_KNOWN
from newton.cognition.session_context import staleness
from newton.cognition.session_context.service import SessionContext
from newton.heart.censors import CensorRule
from newton.heart.entities import entity_store
from newton.heart.events import event_store
from newton.heart.events.event_store import NewEvent
from newton.heart.events.event_types import validate_event
from newton.providers import token_counter
from newton.providers.fakes import BrokenEmbedder, ScriptedChat
from tests.db.deciding import choice, recorded
from tests.scenarios.conftest import Mind
from tests.scenarios.test_curation import curation
from tests.scenarios.test_replay import hindsight
from tests.support import apart, teller

FERRY = "The ferry Artemis leaves the harbour at nine in the morning."
ASKED = "When does the ferry Artemis leave the harbour?"
ELSE = "Whose bicycle got painted green?"
AGAIN = "So does the ferry Artemis leave the harbour in the morning?"


@dataclass(slots=True)
class Talk:
    """A conversation in one frame, so that only what a test changes is another."""

    mind: Mind
    turns: TurnRunner
    session_id: UUID
    model: ScriptedChat

    async def say(self, text: str, *, frame: str | None = "question") -> TurnResult:
        self.mind.clock.advance(timedelta(minutes=1))
        pieces = [one async for one in self.turns.run(TurnInput(session_id=self.session_id, text=text, frame=frame))]
        await self.mind.settle()
        assert isinstance(pieces[-1], TurnResult)
        return pieces[-1]

    async def given(self, text: str, *, frame: str | None = "question") -> SessionContext:
        context = (await self.say(text, frame=frame)).context
        assert context
        return context

    @property
    def told(self) -> str:
        """All that the model was given of what is known."""
        return apart(self.model.received[-1])[0]

    @property
    def last_block(self) -> str:
        """What the model was given with the last input."""
        return self.model.received[-1][-1].text.rpartition(INPUT_HEADER)[0]


@pytest.fixture
async def talk(mind: Mind) -> Talk:
    await mind.know(FERRY, "The cat of the lighthouse is called Tom.")
    model = ScriptedChat(*["Let me see."] * 40)
    return Talk(mind, mind.turns(model), await mind.session(), model)


async def stored(mind: Mind) -> list[tuple[str, UUID | None]]:
    rows = await mind.fetch("select method, bundle_id from cognition.turns order by turn_id")
    return [(row["method"], row["bundle_id"]) for row in rows]


async def replays(mind: Mind, given: SessionContext) -> bool:
    """Whether the stored context comes out as it was."""
    done = await hindsight(mind).replay(str(given.bundle.bundle_id))
    return done.identical and done.text == given.bundle.text


async def bundles(mind: Mind) -> int:
    return await mind.fetchval("select count(*) from cognition.bundles")


async def test_a_context_stands_until_an_input_is_on_something_else_or_in_another_frame(talk: Talk) -> None:
    # S002-14; S002-22: the refresh rate is the share of turns whose context was built
    first = await talk.given(ASKED)
    second = await talk.given(AGAIN)
    third = await talk.given("Why?")
    assert [one.method for one in (first, second, third)] == ["built", "stood", "stood"]
    assert second.bundle is third.bundle is first.bundle
    assert await bundles(talk.mind) == 1
    assert FERRY in talk.told
    assert first.reason == "the session has no context yet"
    assert second.reason.startswith("the context covers the input (cosine 0.")
    assert third.reason == "the input is a follow-up"
    other = await talk.given(ELSE)
    assert other.method == "updated" and other.reason.startswith("the input is on another topic (cosine ")
    assert FERRY in other.bundle.text, "what stands is kept"
    assert other.bundle.has_nothing_relevant and NOTHING_KNOWN in other.bundle.text
    assert await replays(talk.mind, other)
    debug = await talk.given(ELSE, frame="debug")
    assert (debug.method, debug.reason) == ("built", "the frame changed from question to debug")
    assert "## Current Approach: debug" in talk.told
    ids = [one.bundle.bundle_id for one in (first, second, third, other, debug)]
    assert await stored(talk.mind) == list(zip(["built", "stood", "stood", "updated", "built"], ids, strict=True))


async def test_what_stands_gives_way_when_it_takes_half_of_the_budget(talk: Talk) -> None:
    # S002-14: most of it would be of no use
    await talk.mind.know(*(f"The ferry Artemis leaves the harbour from pier {n} in the morning." for n in range(10)))
    first = await talk.given(ASKED)
    talk.turns = replace(talk.turns, limits=replace(talk.turns.limits, context=first.bundle.tokens))
    other = await talk.given(ELSE)
    assert other.method == "built" and other.reason.startswith("the input is on another topic (cosine ")
    assert FERRY not in other.bundle.text and other.bundle.update is None


async def test_without_a_model_what_is_found_is_quoted_and_added_to_what_stands(talk: Talk) -> None:
    # S002-14
    await talk.mind.know("The bicycle of Priya was painted green.")
    talk.turns = talk.mind.turns(None)
    first, second = await talk.say(ASKED), await talk.say(ELSE)
    assert first.context and second.context
    assert (first.context.method, second.context.method) == ("built", "updated")
    assert "Priya" in second.text and FERRY not in second.text
    assert FERRY in second.context.bundle.text and await replays(talk.mind, second.context)
    assert second.context.reason == "no model was called, so all memories were searched for some to quote"


async def test_a_decision_point_has_it_made_anew(talk: Talk) -> None:
    # S002-14: pre-action context for that decision
    await talk.given("Should we take the ferry Artemis at nine?", frame="decision")
    given = await talk.given("Should we take the ferry Artemis in the morning?", frame="decision")
    assert (given.method, given.reason) == ("built", "the input asks for a choice")
    assert (await talk.given("At nine, the ferry Artemis?", frame="decision")).method == "stood"


CHANGES: dict[str, tuple[Callable[[Mind, UUID], Awaitable[object]], str]] = {
    "superseded": (
        lambda mind, fact: curation(mind).supersede(str(fact), "The ferry Artemis leaves the harbour at ten."),
        "stale: a fact is superseded",
    ),
    "retracted": (lambda mind, fact: curation(mind).retract(str(fact)), "stale: a fact is proven wrong"),
    "forgotten": (
        lambda mind, fact: curation(mind).forget([str(fact)], include_derived=False, reason="a test"),
        "another process built the latest context of the session",
    ),
}


@pytest.mark.parametrize("what", CHANGES)
async def test_what_is_not_so_any_more_is_never_stated_as_current(talk: Talk, what: str) -> None:
    # S002-14, S002-16
    (fact,) = [item for item in (await talk.given(ASKED)).bundle.items if item.kind == "fact" and "nine" in item.text]
    change, because = CHANGES[what]
    await change(talk.mind, fact.memory_id)
    await talk.mind.settle()
    given = await talk.given(AGAIN)
    assert (given.method, given.reason) == ("built", because)
    assert FERRY not in talk.last_block.replace(f"## No Longer True\n- {FERRY}", "").partition("## Past Experience")[0]
    assert FERRY not in talk.told or f"## No Longer True\n- {FERRY}" in talk.last_block
    assert ("at ten." in talk.told) == (what == "superseded")


async def test_a_censor_that_came_or_went_counts_at_once(talk: Talk) -> None:
    await talk.given(ASKED)
    await talk.mind.censors.add(CensorRule(trigger="sail at night", reason="the rocks"))
    given = await talk.given(AGAIN)
    assert (given.method, given.reason) == ("built", "stale: the censors changed")
    assert "**WARN:** sail at night" in talk.told
    assert (await talk.given(AGAIN)).method == "stood"
    (censor,) = await talk.mind.censors.list_censors()
    await talk.mind.censors.retire(str(censor.memory_id))
    assert (await talk.given(AGAIN)).method == "built"
    assert "No longer in force:\n- **WARN:** sail at night" in talk.last_block
    assert (await talk.given(AGAIN)).method == "stood" and "sail at night" not in talk.last_block


async def test_an_identity_that_changed_counts_at_once(talk: Talk) -> None:
    await talk.given(ASKED)
    bearing = IdentityService(scope=talk.mind.scope.at("cli"))
    await bearing.add("boundary", "Never sail at night")
    given = await talk.given(AGAIN)
    assert (given.method, given.reason) == ("built", "stale: the identity changed")
    assert "- Never sail at night" in talk.told
    assert (await talk.given(AGAIN)).method == "stood"


async def test_a_decision_that_is_recorded_meanwhile_is_stated(talk: Talk) -> None:
    await talk.given(ASKED)
    async with talk.mind.db.transaction(talk.mind.agent_id) as tx:
        await recorded(
            tx, choice("Paint the pier green"), ctx=teller(talk.mind.agent_id, count_tokens=token_counter.count)
        )
    given = await talk.given(AGAIN)
    assert (given.method, given.reason) == ("built", "stale: the open decisions changed")
    assert "Paint the pier green" in talk.told


async def test_what_was_learnt_since_enters_a_context_that_stands(talk: Talk) -> None:
    # S001-34
    first = await talk.given(ASKED)
    await talk.mind.know(
        "In the winter the ferry Artemis does leave the harbour an hour later.", "Ben has a dog called Rex."
    )
    second = await talk.given(AGAIN)
    assert (second.method, await bundles(talk.mind)) == ("updated", 2)
    assert second.reason.endswith("items to add: 1")
    assert "an hour later" in talk.told and "Rex" not in talk.told
    update = second.bundle.update
    assert update is not None
    assert (update.previous_bundle_id, len(update.added), update.has_evictions) == (first.bundle.bundle_id, 1, False)
    assert second.bundle.tokens == token_counter.count(second.bundle.text)
    assert await replays(talk.mind, second)
    assert (await talk.given(AGAIN)).method == "stood", "it entered once"


async def test_what_happened_in_the_session_enters_a_context_that_stands(talk: Talk) -> None:
    # S001-34: a new event enters first
    await talk.given(ASKED)
    ctx = teller(talk.mind.agent_id, count_tokens=token_counter.count)
    event = validate_event("file_read", talk.mind.clock.now(), {"path": "tides.txt"})
    async with talk.mind.db.transaction(talk.mind.agent_id) as tx:
        told = NewEvent(ref="h1", event=event, session_id=talk.session_id)
        await event_store.record_events(tx, [told], ctx=ctx)
    given = await talk.given(AGAIN)
    assert given.method == "updated"
    assert "tides.txt" in talk.told


async def test_a_context_that_stands_gets_an_observation_when_it_is_asked_about(talk: Talk) -> None:
    # S001-34, S002-14
    shown = "error: ImportError: No module named 'orders.models'"
    asked = "When does the ferry Artemis leave the harbour?"
    await talk.given(asked)
    error = validate_event("error", talk.mind.clock.now(), {"message": "ImportError: No module named 'orders.models'"})
    async with talk.mind.db.transaction(talk.mind.agent_id) as tx:
        new = NewEvent(ref="e1", event=error, session_id=talk.session_id)
        await event_store.record_events(tx, [new], ctx=teller(talk.mind.agent_id, count_tokens=token_counter.count))
    await talk.mind.settle()
    assert (await talk.given(asked)).method == "stood"
    assert "orders.models" not in talk.told
    given = await talk.given("Does the ferry Artemis leave? And fix the error in the module orders.models.")
    assert given.method in ("updated", "built") and shown in talk.told
    assert await replays(talk.mind, given)
    again = await talk.given("Fix the error in the module orders.models of the ferry Artemis.")
    assert shown in talk.told and talk.told.count(shown) == 1
    assert await replays(talk.mind, again)


async def test_lines_that_leave_the_view_enter_a_context_that_stands(talk: Talk) -> None:
    # S001-34: what has slid out of the sent history is not lost
    talk.turns = replace(talk.turns, limits=replace(talk.turns.limits, conversation=25))
    await talk.given(ASKED)
    await talk.given("It is for the harbour: the red lantern goes along.")
    seen: list[SessionContext] = [await talk.given(AGAIN) for _ in range(3)]
    assert "updated" in {one.method for one in seen}
    sent = "\n".join(message.text for message in talk.model.received[-1])
    assert "the red lantern goes along" in sent, "either sent as conversation or in the context"
    assert "the red lantern goes along" in talk.told
    everything = sent.count("the red lantern goes along")
    assert everything == 1, "and not twice"


@pytest.mark.slow
async def test_every_line_is_sent_or_in_the_context_however_long_the_talk(talk: Talk) -> None:
    # S001-34
    talk.turns = replace(talk.turns, limits=replace(talk.turns.limits, conversation=140))
    hows: list[str] = []
    for number in range(8):
        given = await talk.given(f"And does the ferry Artemis leave the harbour in the morning, {number}?")
        hows.append(given.method)
        assert await replays(talk.mind, given), number
        sent = "\n".join(message.text for message in talk.model.received[-1])
        assert all(f"in the morning, {earlier}?" in sent for earlier in range(number + 1)), number
    assert hows[0] == "built"
    assert {"updated", "stood"} <= set(hows)


async def test_under_token_pressure_the_least_relevant_gives_way(talk: Talk) -> None:
    # S002-14: evict the lowest relevance, keep censors and frame
    await talk.mind.censors.add(CensorRule(trigger="sail at night", reason="the rocks"))
    await talk.mind.know(*(f"The ferry Artemis and the harbour, note {n}: {'nine ' * n}" for n in range(10)))
    first = await talk.given(ASKED)
    less = first.bundle.tokens - 40
    talk.turns = replace(talk.turns, limits=replace(talk.turns.limits, context=less))
    second = await talk.given(AGAIN)
    assert second.method == "evicted"
    assert second.bundle.tokens <= less
    assert "**WARN:** sail at night" in talk.told and "## Current Approach: question" in talk.told
    assert second.bundle.update is not None and second.bundle.update.has_evictions
    assert await replays(talk.mind, second)
    scores = {c.memory_id: c.score for c in first.bundle.items}
    gone = [scores[memory_id] for memory_id in second.bundle.update.evicted]
    assert max(gone) <= min(c.score for c in second.bundle.items if c.memory_id not in second.bundle.update.evicted)


async def test_a_context_that_cannot_be_made_small_enough_is_made_anew(talk: Talk) -> None:
    await talk.given(ASKED)
    talk.turns = replace(talk.turns, limits=replace(talk.turns.limits, context=12))
    given = await talk.given(AGAIN)
    assert given.method == "built" and given.bundle.tokens <= 12
    assert given.reason == "the sections that are always included exceed the budget of 12 tokens"


async def test_a_reply_that_quotes_is_of_this_input_even_when_the_context_stood(talk: Talk) -> None:
    await talk.given(ASKED)
    await talk.mind.know("Why the bell rings: the fog comes.")
    silent = replace(talk, turns=replace(talk.turns, model=ScriptedChat()))
    answer = await silent.say("Why?")
    assert answer.quoted and answer.context and answer.context.method == "built"
    assert answer.context.reason == "no model was called, so all memories were searched for some to quote"


async def test_a_context_is_built_anew_while_the_embedder_fails(talk: Talk) -> None:
    await talk.given(ASKED)
    talk.turns = replace(talk.turns, contexts=replace(talk.turns.contexts, embedder=BrokenEmbedder()))
    for said in (AGAIN, AGAIN, ELSE):
        given = await talk.given(said)
        assert given.method == "built" and "embeddings" in given.bundle.missing and "Not searched" in talk.told


async def test_a_session_that_went_on_elsewhere_is_made_anew_here(talk: Talk) -> None:
    await talk.given(ASKED)
    other = replace(talk, turns=talk.mind.turns(talk.model))
    assert (await other.given(AGAIN)).reason == "the session has no context yet"
    assert (await talk.given(AGAIN)).reason == "another process built the latest context of the session"
    assert (await talk.given(AGAIN)).method in ("stood", "updated")


async def test_a_relation_whose_evidence_is_gone_is_not_stated_any_more(talk: Talk) -> None:
    # S002-16: what was read from a superseded fact is no more current than the fact
    mind = talk.mind
    house = FactDraft(content="Mira has her house in Oslo", subject="Mira", attribute="lives in")
    kept = await mind.verbs.remember(house)
    async with mind.db.transaction(mind.agent_id) as tx:
        await entity_store.index_mentions(
            tx, ctx=teller(mind.agent_id, count_tokens=token_counter.count, now=mind.clock.now())
        )
    await mind.settle()
    first = await talk.given("Where does Mira live?")
    (relation,) = [item for item in first.bundle.candidates if item.kind == "relation"]
    await curation(mind).retract(str(kept.memory_id))
    async with mind.db.transaction(mind.agent_id) as tx:
        changed = await staleness.SQL["find_changed"].fetch_all(
            tx,
            agent_id=mind.agent_id,
            memory_ids=[relation.memory_id],
            micros=[relation.scored.found.micro],
            summaries=[relation.scored.found.summary],
            built_at=first.bundle.created_at,
        )
    assert [row["memory_id"] for row in changed] == [relation.memory_id]
    assert (await talk.given("So where does Mira live?")).method == "built"
    assert "lives in Oslo" not in talk.told.partition("## Past Experience")[0]


async def test_what_was_learnt_before_an_update_still_enters_later(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    # S001-34
    monkeypatch.setattr(staleness, "CLOCK_SLACK_MS", 0)
    await talk.given(ASKED)
    await talk.mind.know("The cat Tom of the lighthouse was sold to a baker.")
    await talk.mind.know("In the winter the ferry Artemis does leave the harbour an hour later.")
    assert (await talk.given(AGAIN)).method == "updated"
    await talk.given("Is the cat of the lighthouse called Tom?")
    assert "sold to a baker" in talk.told


async def test_forgetting_while_the_model_speaks_loses_no_reply(talk: Talk) -> None:
    mind = talk.mind
    async for piece in talk.turns.run(TurnInput(session_id=talk.session_id, text=ASKED, frame="question")):
        if not isinstance(piece, TurnResult):
            facts = await ids(mind, FERRY)
            await curation(mind).forget([str(fact) for fact in facts], include_derived=False, reason="a test")
    assert await mind.fetchval("select content from dialogue.messages where role = 'assistant'") == "Let me see."
    assert await mind.fetchval("select bundle_id from cognition.turns") is None


async def ids(mind: Mind, summary: str) -> list[UUID]:
    rows = await mind.fetch("select memory_id from memory.memories where kind = 'fact' and summary = $1", summary)
    return [row[0] for row in rows]


async def test_a_model_that_fails_is_replaced_by_words_of_the_conversation_too(talk: Talk) -> None:
    await talk.say("The bicycle of Priya is painted purple.")
    silent = replace(talk, turns=replace(talk.turns, model=ScriptedChat()))
    answer = await silent.say(ELSE)
    assert answer.quoted and "painted purple" in answer.text
