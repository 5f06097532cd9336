"""A long conversation: what has left the view comes back in short, within its tokens, and is explained."""

from dataclasses import replace
from datetime import timedelta
from urllib.parse import unquote_plus
from uuid import UUID

import pytest

from newton.agent.loop.turn import TurnInput, TurnResult, TurnRunner
from newton.cognition.assembly.scored_candidate import ScoredCandidate
from newton.cognition.bundles import bundle_store
from newton.cognition.bundles.bundle import Bundle
from newton.cognition.bundles.replay import CurrentRules, replay_bundle
from newton.cognition.request import ContextBuildRequest, SentMessages
from newton.cognition.sources.session_artifacts import ArtifactPolicy
from newton.cognition.sources.web import WebSource
from newton.errors import InputError
from newton.providers import token_counter
from newton.providers.fakes import ScriptedChat
from newton.providers.web_search import WebSearch
from tests.endpoint import Wire, endpoint, fails
from tests.scenarios.conftest import Mind

LAYER = "session"
SAID = "We decided that the ferry Artemis carries the lorries of company {0}, and the harbour office knows of it."
HEARD = "Noted: lorry {0} goes with the Artemis, and the harbour office has to be told on Friday."
QUESTION = "Which lorries does the ferry Artemis carry, and who has to be told?"


def artifacts(bundle: Bundle) -> list[ScoredCandidate]:
    return [c for c in bundle.candidates if c.kind == "artifact"]


async def converse(turns: TurnRunner, session_id: UUID, *numbers: int) -> None:
    for number in numbers:
        async for _ in turns.run(TurnInput(session_id=session_id, text=SAID.format(number))):
            pass


async def kept(mind: Mind, kind: str) -> int:
    return await mind.fetchval("select count(*) from dialogue.artifacts where type = $1", kind)


async def at_length(mind: Mind) -> tuple[UUID, SentMessages]:
    """A conversation of which only the end is sent."""
    session_id = await mind.session()
    turns = mind.turns(ScriptedChat(*(HEARD.format(n) for n in range(12))))
    await converse(replace(turns, limits=replace(turns.limits, conversation=100)), session_id, *range(12))
    await mind.settle()
    return session_id, SentMessages(session_id=session_id, first_position=20)


async def test_after_so_many_messages_there_is_a_summary_and_old_turns_come_back_in_short(mind: Mind) -> None:
    # S004-5, S004-16, S004-17, S004-18
    session_id = await mind.session()
    turns = mind.turns(ScriptedChat(*(HEARD.format(n) for n in range(6))))
    await converse(turns, session_id, *range(5))
    assert await kept(mind, "summary") == 0
    await converse(turns, session_id, 5)
    assert (await kept(mind, "summary"), await kept(mind, "facts") > 0) == (1, True)
    await mind.settle()
    shown = await mind.context(
        QUESTION, session_id=session_id, sent_messages=SentMessages(session_id=session_id, first_position=10)
    )
    assert "## Earlier in This Session\n" in shown.text
    assert any("this session so far, in short: User: We decided" in c.text for c in artifacts(shown) if c.detail)
    assert 0 < shown.layers[LAYER].used <= 800


async def test_the_ceiling_and_the_final_number_are_kept_and_less_of_them_costs_no_more(mind: Mind) -> None:
    # S004-4, S004-10, S004-12, S004-18, S004-19
    for pier in range(5):
        await mind.hear(f"crane of pier {pier}: " + "it lifts lorries on the ferry " * 30, role="tool", name="harbour")
    request = ContextBuildRequest(
        agent_id=mind.agent_id, input="Which crane lifts lorries?", tokens=8_000, session_id=await mind.session()
    )
    costs = list[int]()
    for selecting in (
        ArtifactPolicy(max_selected=1),
        ArtifactPolicy(max_selected=2),
        ArtifactPolicy(max_selected=3),
        ArtifactPolicy(max_selected=5, max_tokens=450),
    ):
        bundle = await replace(mind.contexts, artifact_policy=selecting).build(request)
        section = bundle.text.partition("## Earlier in This Session\n")[2]
        shown = [c for c in artifacts(bundle) if c.detail]
        assert section.count("- [2026-11-21] output of a tool") == len(shown) <= selecting.max_selected
        assert bundle.layers[LAYER].used <= selecting.max_tokens
        assert len(artifacts(bundle)) == 5, "each has its verdict"
        costs.append(bundle.tokens)
    assert costs[0] < costs[1] < costs[2]
    assert costs[3] < costs[2]


@pytest.mark.slow
async def test_facts_of_the_session_are_there_where_its_lines_have_no_room(mind: Mind) -> None:
    # S004-3, S004-18
    session_id, view = await at_length(mind)
    shown = await mind.context(QUESTION, budget=400, session_id=session_id, sent_messages=view)
    facts = [c for c in artifacts(shown) if c.detail and ": this session so far" not in c.text]
    assert facts
    assert all(f"- [2026-11-21] {c.text.removeprefix('[2026-11-21] ')}\n" in shown.text for c in facts)
    assert 0 < shown.layers[LAYER].used <= shown.layers[LAYER].share
    assert shown.tokens == token_counter.count(shown.text) <= 400


async def test_what_is_in_view_is_not_said_twice_and_little_is_looked_for_nothing(mind: Mind) -> None:
    # S004-6, S004-8
    session_id, _ = await at_length(mind)
    whole = await mind.context(
        QUESTION, session_id=session_id, sent_messages=SentMessages(session_id=session_id, first_position=0)
    )
    assert {c.reason for c in artifacts(whole)} == {"the message itself is sent to the model"}
    assert LAYER not in whole.layers
    assert artifacts(await mind.context("And so?", session_id=session_id)) == []
    assert artifacts(await mind.context(QUESTION)) == [], "outside of its session it is not found"
    other = await mind.session("another")
    assert artifacts(await mind.context(QUESTION, session_id=other)) == []
    with pytest.raises(InputError, match="their own session"):
        await mind.verbs.recall(QUESTION, kinds=["artifact"])
    recalled = await mind.verbs.recall(QUESTION, include_quarantined=True)
    assert "artifact" not in {found.kind for found in recalled.memories}


@pytest.mark.slow
async def test_such_a_context_replays_and_one_of_the_past_knows_nothing_of_later(mind: Mind) -> None:
    # S004-8
    session_id, view = await at_length(mind)
    bundle = await mind.context(QUESTION, session_id=session_id, sent_messages=view)
    assert any(c.detail for c in artifacts(bundle))
    async with mind.db.transaction(mind.agent_id) as tx:
        stored = await bundle_store.load_bundle(tx, bundle.bundle_id, agent_id=mind.agent_id)
        known = await bundle_store.load_memory_histories(tx, stored.memory_ids, agent_id=mind.agent_id)
    again = replay_bundle(
        stored,
        known,
        CurrentRules(
            rules_hash=bundle_store.compute_rules_hash(), frame_edition=bundle.frame_edition, profile=bundle.profile
        ),
    )
    assert (again.text, again.differences) == (bundle.text, ())
    before = mind.clock.now() - timedelta(seconds=1)
    assert artifacts(await mind.context(QUESTION, session_id=session_id, as_of=before)) == []


async def test_what_a_tool_said_is_shown_in_its_session_as_what_it_is_and_goes_with_its_line(mind: Mind) -> None:
    # S004-3
    output = "error: the crane of pier 4 is broken\n" + "no other is"
    session_id = await mind.hear(output, role="tool", name="harbour")
    shown = await mind.context("Which crane of which pier is broken?", session_id=session_id)
    (item,) = [c for c in artifacts(shown) if c.detail]
    assert item.text.startswith("[2026-11-21] output of a tool (harbour): error: the crane of pier 4")
    assert item.scored.found.trust == "tool"
    await mind.forget(await mind.fetchval("select memory_id from memory.memories where kind = 'exchange'"))
    assert await mind.fetchval("select count(*) from cognition.bundles") == 0
    assert artifacts(await mind.context("Which crane of which pier is broken?", session_id=session_id)) == []
    assert await kept(mind, "tools") == 0


async def test_the_web_is_asked_for_what_is_of_these_days_and_its_words_stay_in_the_session(mind: Mind) -> None:
    # S004-11
    sent = list[str]()

    async def finds(wire: Wire) -> None:
        sent.append(unquote_plus(wire.path))
        text = "The ferry Artemis sails from pier 7 this week. More later."
        found = {"title": "Harbour", "content": text, "url": "https://harbour.example/a", "publishedDate": "2026-11-20"}
        await wire.send(200, {"results": [found]})

    session_id, text = await mind.session(), "My card is 4111. What is the latest on the pier of the ferry Artemis?"
    async with endpoint(finds) as there:
        web = WebSource(search=WebSearch(there.url, seconds=5), db=mind.db, count_tokens=token_counter.count)
        turns = replace(mind.turns(ScriptedChat("One.", "Two.", "Three.")), contexts=replace(mind.contexts, web=web))
        for said in ("Which ferry goes to Lisbon?", text, "From which pier does the ferry Artemis sail?"):
            heard = [piece async for piece in turns.run(TurnInput(session_id=session_id, text=said))]
            answer = heard[-1]
            assert isinstance(answer, TurnResult)
            if said == text:
                assert answer.context and answer.context.reason == "the input asks for current events"
                shown = "- [2026-11-21 12:00] from the web (https://harbour.example/a): Harbour (2026-11-20) The ferry"
                assert shown in answer.bundle.text
        assert len(there.asked) == 1, "neither what asks for nothing new, nor what is asked outside of a session"
        await turns.contexts.build(ContextBuildRequest(agent_id=mind.agent_id, input=text, tokens=500))
        (query,) = sent
        assert "What is the latest on the pier of the ferry Artemis?" in query
        assert "card" not in query
    row = await mind.fetchrow(
        "select trust, quarantined from memory.memories where kind = 'artifact' and trust = 'web'"
    )
    assert row is not None
    assert tuple(row) == ("web", True)


async def test_a_search_that_fails_is_named_in_the_context_and_nothing_else(mind: Mind) -> None:
    # S004-11
    session_id = await mind.session()
    async with endpoint(fails(500)) as there:
        web = WebSource(search=WebSearch(there.url, seconds=5), db=mind.db, count_tokens=token_counter.count)
        contexts = replace(mind.contexts, web=web)
        request = ContextBuildRequest(
            agent_id=mind.agent_id, input="Any news of the ferry?", tokens=500, session_id=session_id
        )
        bundle = await contexts.build(request)
    assert dict(bundle.missing) == {"web search": "The web search service answered with status 500."}
