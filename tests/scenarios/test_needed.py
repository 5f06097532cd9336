"""A context that holds what its input needs, beside one that holds what fits."""

from newton.cognition.bundles.bundle import Bundle
from tests.scenarios.conftest import Mind

ASKED = "What is the ferry to Bergen called?"
NEAR = "The ferry to Bergen is called Artemis."
FAR = "[2026-11-21] User: The roof of the barn leaks when it rains."
ONLY_ASKS = "[2026-11-21] User: What is the ferry called again?"


def shown(bundle: Bundle) -> set[str]:
    return {item.text for item in bundle.items}


async def test_a_turn_gets_what_is_near_and_a_budget_that_is_given_is_filled(mind: Mind) -> None:
    await mind.know(NEAR)
    await mind.hear("The roof of the barn leaks when it rains.", "Maybe.", "The cow is brown.", session="earlier")
    await mind.hear("What is the ferry called again?", "Artemis, the ferry to Bergen.", session="yesterday")
    filled = await mind.context(ASKED, budget=2_000)
    everything = await mind.context(ASKED, budget=2_000, fill=True)
    needed = await mind.context(ASKED, budget=2_000, adaptive_budget=True)
    assert {NEAR, FAR} <= shown(filled)
    assert ONLY_ASKS not in shown(filled), "it asks the same"
    assert {NEAR, FAR, ONLY_ASKS} <= shown(everything)
    assert NEAR in shown(needed)
    assert not {FAR, ONLY_ASKS} & shown(needed)
    why = {c.text: c.reason for c in needed.rejected_candidates}
    assert (why[FAR], why[ONLY_ASKS]) == ("too far from the input", "only a question")


async def test_a_line_that_says_something_before_it_asks_is_not_one_that_only_asks(mind: Mind) -> None:
    await mind.hear("The ferry to Bergen was late. Was it called Artemis?", session="yesterday")
    assert len(shown(await mind.context(ASKED, adaptive_budget=True))) == 1
