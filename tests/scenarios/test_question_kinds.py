"""Questions that no single memory answers, and requests to which earlier instructions apply."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from newton.agent.services.bundles import BundleService
from newton.cognition.bundles.bundle import Bundle
from newton.cognition.request import ContextBuildRequest
from newton.content.frames import load_frames
from newton.content.profiles import load_profiles
from newton.dialogue import sessions
from newton.dialogue.messages import Message, Role
from newton.memory.forgetting import forget
from tests.scenarios.conftest import Mind
from tests.support import NOON, agent_scope, teller

TESTS = ("the login", "the budget page", "the export", "the deployment")


async def say(mind: Mind, at: datetime, *said: str, role: Role = "user") -> None:
    ctx = teller(mind.agent_id, now=at)
    lines = [Message(role=role, content=words, said_at=at) for words in said]
    async with mind.db.transaction(mind.agent_id) as tx:
        session_id = await sessions.ensure_session(tx, agent_id=mind.agent_id, ref=f"{at:%Y-%m-%d}", now=at)
        await sessions.append(tx, lines, session_id=session_id, ctx=ctx)


async def ask(mind: Mind, text: str, *, tokens: int = 600, fill: bool = False) -> Bundle:
    request = ContextBuildRequest(agent_id=mind.agent_id, input=text, tokens=tokens, fill=fill)
    return await mind.contexts.build(request)


def lines(bundle: Bundle, *wanted: str) -> Sequence[int]:
    """The places of the wanted texts in the context; -1 for one that is not there."""
    return [bundle.text.find(text) for text in wanted]


async def test_a_timeline_stands_in_the_order_of_time_and_is_replayed_so(mind: Mind) -> None:
    for day, subject in enumerate(TESTS):
        await say(mind, NOON - timedelta(days=40 - 10 * day), f"I wrote the tests of {subject} today.")
    await mind.settle()
    bundle = await ask(mind, "In what order did I write the tests?", fill=True)
    assert bundle.as_json()["question"]["kind"] == "timeline"
    places = lines(bundle, *TESTS)
    assert -1 not in places
    assert places == sorted(places)
    service = BundleService(
        frames=load_frames(), profiles=load_profiles(), scope=agent_scope(agent_id=mind.agent_id, db=mind.db)
    )
    assert (await service.replay(str(bundle.bundle_id))).identical


async def test_an_instruction_comes_with_a_request_of_its_domain_and_a_preference_with_requests_alone(
    mind: Mind,
) -> None:
    await say(mind, NOON - timedelta(days=9), "Always include the price when I ask about a hotel.")
    await say(mind, NOON - timedelta(days=8), "The hotel was loud last time, so I prefer a hotel outside of the city.")
    for day in range(7):
        await say(mind, NOON - timedelta(days=day), f"Visit {day} of the dentist in Vienna was short.")
    await mind.settle()
    request = await ask(mind, "Suggest a hotel in Vienna.")
    reasons = {item.text.partition(": ")[2][:12]: item.reason for item in request.items}
    assert "a standing instruction that applies" in reasons["Always inclu"]
    assert "a standing preference that applies" in reasons["The hotel wa"]
    question = await ask(mind, "Is there a hotel in Vienna?")
    assert not any("standing preference" in item.reason for item in question.items)


async def test_a_mark_is_forgotten_with_its_message_and_assistants_are_not_marked(mind: Mind) -> None:
    await say(mind, NOON, "Always answer in French.")
    await say(mind, NOON, "Always answer in German.", role="assistant")
    async with mind.db.transaction(mind.agent_id) as tx:
        marked = await tx.fetchval("select array_agg(memory_id) from memory.standing_statements")
        assert len(marked) == 1
        await forget(tx, marked, derived=False, reason="test", ctx=teller(mind.agent_id, now=NOON))
        assert await tx.fetchval("select count(*) from memory.standing_statements") == 0


async def test_a_question_asked_before_does_not_stand_above_its_answer(mind: Mind) -> None:
    question = "What did we decide about the database?"
    await say(mind, NOON - timedelta(days=9), "We decided on PostgreSQL for the orders service.")
    for day, form in enumerate(("", "Hey, ", "So ", "And ")):
        await say(mind, NOON - timedelta(days=8 - day), f"{form}{question if not form else question.lower()}")
    await mind.settle()
    bundle = await ask(mind, question, fill=True)
    ranked = sorted((c for c in bundle.candidates if c.kind == "exchange"), key=lambda c: -c.score)
    assert "PostgreSQL" in ranked[0].text


async def test_a_long_procedure_leaves_room_for_three_facts(mind: Mind) -> None:
    # one long general text never crowds out three that answer
    steps = " ".join(f"Step {n}: check the release notes of the release and ask the team." for n in range(12))
    await say(mind, NOON - timedelta(days=3), f"How we release in general: {steps}")
    facts = [
        "The release of May needs a new key.",
        "The release of May is on Tuesday.",
        "Ana signs the release of May.",
    ]
    await say(mind, NOON - timedelta(days=2), *facts)
    await mind.settle()
    bundle = await ask(mind, "What does the release of May need?", tokens=300, fill=True)
    assert -1 not in lines(bundle, *facts)
