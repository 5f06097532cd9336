"""A chat with a model of a small window, and a strategy that somebody brings along."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from newton.agent.turn import Said
from newton.dialogue.compaction.strategies import Block, Preset, Sight
from newton.dialogue.view import turns
from newton.providers import tokens
from newton.providers.offline import ScriptedChat
from tests.scenarios.conftest import Mind
from tests.scenarios.test_turn import take

WINDOW = 12_000
LONG = "The keeper counted {n} boats, {n} buoys and {n} gulls, and wrote all of it down in the harbour book. " * 20


async def test_a_talk_may_run_on_in_a_window_of_twelve_thousand_tokens(mind: Mind) -> None:
    # S004-1, S004-13, S004-15: what holds always, then the context, the talk as far as it fits, and the input
    await mind.know("The harbour book is kept by Priya.")
    model = ScriptedChat(*[LONG.format(n=n) for n in range(60)])
    talk = mind.turns(model)
    talk = replace(talk, limits=replace(talk.limits, window=WINDOW, conversation=100_000, context=8_000))
    session_id = await mind.session()
    for n in range(60):
        await take(talk, Said(session_id=session_id, text=f"Who keeps the harbour book on day {n}?"))
        prompt = model.heard[-1]
        assert sum(tokens.count(one.text) + 4 for one in prompt) + talk.limits.reply <= WINDOW
        assert [one.role for one in prompt if one.role == "system"] == ["system"] and prompt[0].role == "system"
        assert "kept by Priya" in prompt[0].text
        assert prompt[-1].role == "user" and prompt[-1].text.endswith(f"on day {n}?")
    assert "[SUMMARIZED]" in "\n".join(one.text for one in model.heard[-1]), "older turns are told shorter"
    assert "counted 58 boats" in model.heard[-1][-2].text, "the latest are sent as they were said"


@dataclass(frozen=True, slots=True, kw_only=True)
class EveryOther:
    """Tells of every other old turn, whatever is in it."""

    name: str = "every_other"

    def plan(self, sight: Sight) -> Sequence[Block]:
        old = [turn for turn in turns(sight.view)[:-2] if turn.complete and turn.tokens > 200]
        return [Block("turn", turn.items, most=60) for turn in old[::2]]


async def test_a_strategy_of_one_s_own_is_used_without_touching_the_others(mind: Mind) -> None:
    # S003-2, S003-18
    session_id = await mind.hear("How many?", LONG.format(n=1), "And now?", LONG.format(n=2), "Then?", "None.")
    compacting = replace(mind.compacting(), preset=Preset(strategies=(EveryOther(),)))
    view = await compacting.view(session_id, most=100_000)
    assert "turn" in {item.kind for item in view}
    assert (await compacting.view(session_id, most=100_000)) == view
