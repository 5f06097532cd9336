"""Relevance that is corrected by use: for one agent, only if it helps, and until it is reset."""

import random
from dataclasses import replace
from datetime import timedelta

import pytest

from newton.agent.loop.turn import TurnInput, TurnRunner
from newton.agent.maintenance.relevance_fitter import RelevanceFitter
from newton.cognition.bundles.bundle import Bundle
from newton.cognition.corrections import correction_store
from newton.cognition.corrections.answer_correction import AnswerCorrection, CorrectionFit
from newton.cognition.request import ContextBuildRequest
from newton.cognition.scoring.score import FEATURE_NAMES
from newton.content.relevance_model import load_relevance_model
from newton.memory.agents import get_or_create_agent
from newton.operations.decisions.relevance_text import render_relevance
from newton.providers.fakes import ScriptedChat
from tests.scenarios.conftest import Mind
from tests.scenarios.test_turn import take

QUESTION = "Where does the ferry Artemis leave?"
HARBOURS = [f"The boat Boat{n} leaves from harbour{n} with captain{n} at quay{n}" for n in range(14)]


def fitter(mind: Mind) -> RelevanceFitter:
    return RelevanceFitter(scope=mind.scope)


async def store_correction(mind: Mind, correction: AnswerCorrection) -> None:
    fit = CorrectionFit(contexts=50, items=300, used=60, correction=correction, validated=90, loss_before=0.5)
    model = load_relevance_model().answer_fingerprint
    async with mind.scope.transaction() as tx:
        await correction_store.add_correction(tx, fit, agent_id=mind.agent_id, model=model, now=mind.clock.now())


def with_estimates(mind: Mind, reply: str = "Good.") -> TurnRunner:
    """The shipped coefficients for the embedder of the test, whose cosines are those of shared words."""
    turns = mind.turns(ScriptedChat(reply))
    assert mind.embedder is not None
    model = load_relevance_model().model_copy(update={"embedding_model": mind.embedder.identity})
    return replace(turns, contexts=replace(turns.contexts, relevance_model=model))


async def build(mind: Mind) -> Bundle:
    request = ContextBuildRequest(agent_id=mind.agent_id, input=QUESTION, tokens=2_000, fill=True, frame="question")
    mind.clock.advance(timedelta(hours=2))
    return await with_estimates(mind).contexts.build(request)


def answers(bundle: Bundle) -> dict[str, float]:
    place = FEATURE_NAMES.index("answers")
    return {c.scored.found.summary: c.scored.features[place] for c in bundle.candidates}


async def test_a_correction_is_of_one_agent_and_is_undone_by_reset(mind: Mind) -> None:
    await mind.know("The ferry Artemis leaves from the pier", *HARBOURS)
    shipped = answers(await build(mind))
    assert max(shipped.values()) > 0
    correction = AnswerCorrection(0.6, -1.0)
    await store_correction(mind, correction)
    corrected = answers(await build(mind))
    assert corrected == pytest.approx(
        {text: correction.apply(p) if p else 0.0 for text, p in shipped.items()}, rel=1e-6
    )
    other = replace(mind.scope, agent_id=await get_or_create_agent(mind.db, "another", now=mind.clock.now()))
    assert (await RelevanceFitter(scope=other).report()).correction is None
    assert not await RelevanceFitter(scope=other).reset()
    assert await fitter(mind).reset()
    assert answers(await build(mind)) == pytest.approx(shipped)
    assert not await fitter(mind).reset(), "there is nothing more to undo"


async def test_a_correction_of_another_shipped_model_is_not_used(mind: Mind) -> None:
    await mind.know("The ferry Artemis leaves from the pier", *HARBOURS)
    shipped = answers(await build(mind))
    fit = CorrectionFit(contexts=50, items=300, used=60, correction=AnswerCorrection(0.6, -1.0), validated=90)
    async with mind.scope.transaction() as tx:
        await correction_store.add_correction(
            tx, fit, agent_id=mind.agent_id, model="an earlier one", now=mind.clock.now()
        )
    assert answers(await build(mind)) == pytest.approx(shipped)


async def talk(mind: Mind, turns: int) -> None:
    """Each reply uses one boat, and the shipped model gives the others a probability too."""
    dice = random.Random(3)
    for n in range(turns):
        mind.clock.advance(timedelta(minutes=7))
        boat = dice.randrange(len(HARBOURS))
        runner = with_estimates(mind, f"It leaves from harbour{boat} with captain{boat} at quay{boat}.")
        text = f"Which boat leaves from which harbour and quay, Boat{boat}? ({n})"
        await take(runner, TurnInput(session_id=await mind.session(f"of boats {n}"), text=text, frame="question"))


async def test_replies_judge_the_items_of_their_contexts(mind: Mind) -> None:
    await mind.know(*HARBOURS)
    await talk(mind, 3)
    report = await fitter(mind).report()
    assert report.contexts == 3
    assert report.shipped is not None
    assert 0 < report.shipped.base_rate < 1
    fit = await fitter(mind).fit(keep=True)
    assert fit.verdict == "too few"
    assert (fit.contexts, fit.items) == (3, report.shipped.n)
    assert report.correction is None
    text = render_relevance(report)
    assert f"{report.shipped.n} items of 3 contexts judged by replies" in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.slow  # sixty turns
async def test_use_corrects_the_probability(mind: Mind) -> None:
    await mind.know(*HARBOURS)
    await talk(mind, 60)
    before = await fitter(mind).report()
    fit = await fitter(mind).fit(keep=True)
    assert fit.verdict == "better", fit
    after = await fitter(mind).report()
    assert before.shipped is not None
    assert after.corrected is not None
    assert after.corrected.log_loss < before.shipped.log_loss
    assert after.corrected.ece10 < before.shipped.ece10
    await talk(mind, 3)
    again = await fitter(mind).report()
    assert again.shipped is not None
    assert before.shipped.log_loss == pytest.approx(again.shipped.log_loss, rel=0.1), "the correction was taken out"
