"""Why a memory is in a context: the explanation names what brought it, on each path into a context."""

from collections.abc import Mapping
from datetime import timedelta

from newton.agent.services.identity import IdentityService
from newton.cognition.bundles.bundle import Bundle
from newton.cognition.bundles.origin_texts import FixedLine
from newton.content.skills import SkillFile
from newton.heart import procedures
from newton.heart.censors import CensorRule
from newton.memory.lookup import short_id
from newton.operations.contexts.bundle_text import format_explanation
from newton.providers import token_counter
from tests.scenarios.conftest import Mind, newton
from tests.scenarios.test_session_contents import fact_id, injections
from tests.scenarios.test_sources import happen, introduce
from tests.support import ground, teller


async def why(mind: Mind, bundle: Bundle, text: str) -> str:
    """The line that says why, as a person reads it."""
    assert mind.embedder
    explanation = await newton(mind, mind.embedder).bundles().explain(str(bundle.bundle_id))
    shown = format_explanation(explanation.explain_item(text))
    return next(line for line in shown.splitlines() if line.startswith("why: "))


async def sources(mind: Mind, bundle: Bundle) -> Mapping[str, str]:
    assert mind.embedder
    explanation = await newton(mind, mind.embedder).bundles().explain(str(bundle.bundle_id))
    return {item.text: item.source for item in explanation.candidates}


async def test_entities_are_named_related_or_important(mind: Mind) -> None:
    # S001-12
    await introduce(mind)
    bundle = await mind.context("Where does Ana Berg work?", profile="coding")
    assert "the input names it" in await why(mind, bundle, "role nurse")
    assert "related to something that the input names" in await why(mind, bundle, "works at Acme")
    assert "most important" in await why(mind, bundle, "role pilot")


async def test_events_are_recent_here_or_elsewhere(mind: Mind) -> None:
    await happen(mind, "s1", "near.py")
    await happen(mind, "s2", "far.py")
    bundle = await mind.context("Go on, please.", session_id=await mind.session("s1"), profile="coding")
    assert "last events of this session" in await why(mind, bundle, "near.py")
    assert "last events of another session" in await why(mind, bundle, "far.py")


async def test_a_standing_wish_is_not_explained_by_similarity(mind: Mind) -> None:
    await mind.hear("Please keep answers short.", session="s0")
    await mind.know("The lake is two hours away.")
    bundle = await mind.context("Plan a trip to the lake", session_id=await mind.session("s2"))
    said = await why(mind, bundle, "keep answers short")
    assert "a standing wish on the form of every answer" in said and "whatever its own similarity" in said
    assert [source for text, source in (await sources(mind, bundle)).items() if "short" in text] == ["standing"]
    assert mind.embedder
    explanation = await newton(mind, mind.embedder).bundles().explain(str(bundle.bundle_id))
    shown = format_explanation(explanation.explain_item("keep answers short"))
    assert "similarity 1.000" not in shown and "as the best match 1.000" in shown


async def test_an_injected_memory_and_an_injected_text_name_the_caller(mind: Mind) -> None:
    await mind.know("The roof is red.", "The ferry leaves at nine.")
    session_id, roof = await mind.session(), await fact_id(mind, "The roof is red.")
    await injections(mind).inject_memory("s1", short_id(roof))
    await injections(mind).inject_text("s1", "Answer in French.")
    mind.clock.advance(timedelta(seconds=1))
    bundle = await mind.context("When does the ferry leave?", session_id=session_id)
    assert "a caller put it into this session" in await why(mind, bundle, "roof is red")
    assert "a caller put it into this session or into the request" in await why(mind, bundle, "Answer in French")
    assert "the search found it by" in await why(mind, bundle, "leaves at nine")


async def test_a_procedure_is_triggered(mind: Mind) -> None:
    skill = SkillFile(name="hull", description="Zinc.", core=("Scrape it.",), triggers=("is the boat repaired",))
    async with mind.db.transaction(mind.agent_id) as tx:
        ctx = ground(teller(mind.agent_id, count_tokens=token_counter.count))
        await procedures.add_procedure(tx, skill, ctx=ctx)
    bundle = await mind.context("Tell me, is the boat repaired?")
    assert "contains a trigger of this procedure" in await why(mind, bundle, "Scrape")


async def test_messages_are_found_by_words_by_speaker_or_beside_others(mind: Mind) -> None:
    await mind.hear("When does the ferry to Norway leave?", "At nine.", session="s0")
    await mind.hear("Cats sleep.", session="s3", name="Zora")
    bundle = await mind.context("the ferry to Norway", session_id=await mind.session("s1"))
    assert "its words" in await why(mind, bundle, "ferry to Norway")
    assert "beside a message that matches" in await why(mind, bundle, "At nine.")
    named = await mind.context("What about Zora?", session_id=await mind.session("s1"))
    assert "the input names its speaker" in await why(mind, named, "Cats sleep")


async def test_what_each_context_has_is_explained_although_nothing_selects_it(mind: Mind) -> None:
    await IdentityService(scope=mind.scope.at("cli")).add("value", "Tea before talk")
    await mind.censors.add(CensorRule(trigger="boil dry", reason="It breaks."))
    bundle = await mind.context("How do I boil dry pasta?")
    assert "a line of the identity, which each context has" in await why(mind, bundle, "Tea before")
    assert "a censor in force" in await why(mind, bundle, "boil dry")
    assert mind.embedder
    explanation = await newton(mind, mind.embedder).bundles().explain(str(bundle.bundle_id))
    assert isinstance(explanation.explain_item("Tea before"), FixedLine), "nothing selected it"
