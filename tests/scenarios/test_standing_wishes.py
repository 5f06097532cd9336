"""A wish in everyday words is in the context of a later request on another subject, and only once."""

from dataclasses import replace

from newton.agent.loop.fallback import quote_memories
from newton.agent.services.identity import IdentityService
from tests.scenarios.conftest import Mind, load_minilm


async def test_a_wish_holds_for_a_request_on_something_else_and_is_shown_once(mind: Mind) -> None:
    # the third is found by its vector alone
    own = replace(mind, embedder=load_minilm())
    await own.hear("Please keep answers short.", "Nina lives in Bergen.", "Be sparing with adjectives.", session="s0")
    await own.know("Nina lives in Bergen.")
    context = await own.context("Plan a trip to the lake for Saturday", session_id=await own.session("s2"))
    assert context.text.count("keep answers short") == 1
    assert "sparing with adjectives" in context.text
    identity = IdentityService(scope=own.scope.at("cli"))
    await identity.add("instruction", "Keep answers short")
    context = await own.context("Where does Nina live?", session_id=await own.session("s3"))
    assert context.text.lower().count("keep answers short") == 1
    # the fact and the message that says the same
    assert context.text.count("Nina lives in Bergen") == 1
    reasons = {one["reason"] for one in context.as_json()["dropped"]}
    assert {"its fact says the same", "already in the identity"} <= reasons


async def test_a_wish_is_no_answer_to_a_question_on_something_else(mind: Mind) -> None:
    own = replace(mind, embedder=load_minilm())
    await own.hear("Please answer briefly.", "From now on answer in French.", session="s0")
    await own.know("Please answer briefly.", "Nina lives in Bergen.")
    context = await own.context("Where does Nina live?", session_id=await own.session("s2"))
    assert "answer briefly" in context.text
    assert [quote for quote in quote_memories(context) if "answer" in quote] == []
    assert "Bergen" in " ".join(quote_memories(context))
    asked = await own.context("How shall you answer me, briefly or at length?", session_id=await own.session("s3"))
    assert "briefly" in " ".join(quote_memories(asked))
