"""A chat with a model of a small window, and a strategy that somebody brings along."""

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace

import pytest
from pydantic import BaseModel

from newton.agent.loop.completion import ChatService
from newton.agent.loop.turn import TurnInput, TurnRunner
from newton.agent.prompting.memory_delta import INPUT_HEADER
from newton.dialogue import sessions
from newton.dialogue.compaction.presets import CompactionPreset, parse_preset
from newton.dialogue.compaction.strategies import CompactionBlock, ViewState
from newton.dialogue.messages import Message
from newton.dialogue.view import count_view_tokens, split_turns
from newton.providers import token_counter
from newton.providers.chat import ChatMessage, ChatReply
from newton.providers.fakes import ScriptedChat
from tests.scenarios.conftest import Mind
from tests.scenarios.test_turn import take
from tests.support import apart, teller
from tests.talks import calls, gives, says

WINDOW = 12_000
LONG = "The keeper counted {n} boats, {n} buoys and {n} gulls, and wrote all of it down in the harbour book. " * 20


@pytest.mark.slow
async def test_a_talk_may_run_on_in_a_window_of_twelve_thousand_tokens(mind: Mind) -> None:
    # S004-1, S004-13, S004-15: what holds always, then the context, the talk as far as it fits, and the input
    await mind.know("The harbour book is kept by Priya.")
    model = ScriptedChat(*[LONG.format(n=n) for n in range(60)])
    talk = mind.turns(model, window=WINDOW, conversation=100_000, context=8_000)
    session_id = await mind.session()
    for n in range(60):
        await take(talk, TurnInput(session_id=session_id, text=f"Who keeps the harbour book on day {n}?"))
        prompt = model.received[-1]
        assert sum(token_counter.count(one.text) + 4 for one in prompt) + talk.limits.reply_reserve <= WINDOW
        assert [one.role for one in prompt if one.role == "system"] == ["system"] and prompt[0].role == "system"
        blocks = [one.text.partition(INPUT_HEADER)[0] for one in prompt if INPUT_HEADER in one.text]
        assert "kept by Priya" in "".join(blocks), "what was recalled stands with an input that is sent"
        assert prompt[-1].role == "user" and prompt[-1].text.endswith(f"on day {n}?")
    assert "[SUMMARIZED]" in "\n".join(one.text for one in model.received[-1]), "older turns are told shorter"
    assert "counted 58 boats" in model.received[-1][-2].text, "the latest are sent as they were said"


@dataclass(frozen=True, slots=True, kw_only=True)
class EveryOther:
    """Tells of every other old turn, whatever is in it."""

    name: str = "every_other"

    def plan(self, state: ViewState) -> Sequence[CompactionBlock]:
        old = [turn for turn in split_turns(state.view)[:-2] if turn.is_complete and turn.tokens > 200]
        return [CompactionBlock("turn", turn.items, max_tokens=60) for turn in old[::2]]


async def test_a_strategy_of_one_s_own_is_used_without_touching_the_others(mind: Mind) -> None:
    # S003-2, S003-18
    session_id = await mind.hear("How many?", LONG.format(n=1), "And now?", LONG.format(n=2), "Then?", "None.")
    compacting = replace(mind.compacting(), preset=CompactionPreset(strategies=(EveryOther(),)))
    whole = await compacting.load_view(session_id, max_tokens=100_000)
    assert {item.kind for item in whole} == {"line"}, "a small conversation is sent as it was"
    limit = count_view_tokens(whole)
    view = await compacting.load_view(session_id, max_tokens=limit)
    assert "turn" in {item.kind for item in view}
    assert (await compacting.load_view(session_id, max_tokens=limit)) == view


async def test_a_share_that_is_set_below_six_tenths_of_the_limit_is_kept_to(mind: Mind) -> None:
    session_id = await mind.hear(*(text for n in range(4) for text in (f"How many on day {n}?", LONG.format(n=n))))
    preset = parse_preset("tool_calls, threshold(share=0.3, target=0.1, recent=1)")
    compacting = replace(mind.compacting(), preset=preset)
    whole = await compacting.load_view(session_id, max_tokens=100_000)
    tokens = count_view_tokens(whole)
    assert await compacting.load_view(session_id, max_tokens=tokens * 4) == whole
    assert "turn" in {item.kind for item in await compacting.load_view(session_id, max_tokens=tokens * 2)}


class Counting(ScriptedChat):
    """Reports what it was sent, by a tokenizer like ours."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[int] = []

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None, schema: type[BaseModel] | None = None
    ) -> AsyncIterator[str | ChatReply]:
        self.received.append(list(messages))
        self.sent.append(sum(token_counter.count(one.text) + 4 for one in messages))
        yield "Fine."
        yield ChatReply(text="Fine.", model=self.name, input_tokens=self.sent[-1], output_tokens=2)


async def written(mind: Mind, ref: str, lines: Sequence[Message]) -> TurnInput:
    session_id = await mind.session(ref)
    async with mind.db.transaction(mind.agent_id) as tx:
        await sessions.append(
            tx, lines, session_id=session_id, ctx=teller(mind.agent_id, count_tokens=token_counter.count)
        )
    return TurnInput(session_id=session_id, text="And what now?")


def roomy(mind: Mind, model: ScriptedChat, *, window: int) -> TurnRunner:
    return mind.turns(model, per_day=10**9, window=window, conversation=100_000, context=8_000)


@pytest.mark.slow
async def test_what_tools_are_given_in_one_session_makes_no_prompt_of_another_too_long(mind: Mind) -> None:
    # S003-1, S003-19
    model = Counting()
    talk = roomy(mind, model, window=20_000)
    given = json.dumps({"content": "x = 1 + y\n" * 60})
    for n in range(8):
        work = [says("user", f"Write part {n}."), calls(f"c{n}", text="I write it. " * 20, arguments=given)]
        await take(talk, await written(mind, "s1", [*work, gives(f"c{n}", "ok"), says("assistant", "Done. " * 30)]))
    chat = ChatService(scope=talk.scope, model=talk.model, limits=talk.limits)
    async with talk.scope.transaction() as tx:
        shares = chat.build_budget(await chat.read_usage(tx))
    assert 0.98 <= shares.calibration.ratio <= 1.02
    chatter = [says("user", f"Tell me more of {n}. " + "river stone boat lamp " * 60) for n in range(150)]
    said = await written(mind, "s2", [line for one in chatter for line in (one, says("assistant", "I see."))])
    await take(replace(talk, compaction=mind.compacting("none")), said)
    assert 12_000 < model.sent[-1] <= 20_000 - talk.limits.reply_reserve


async def test_what_a_long_input_drives_out_of_the_talk_comes_into_the_context(mind: Mind) -> None:
    # S003-16, S004-13
    model = Counting()
    plan = "The plan is to paint the whole house blue, and then the garden fence as well."
    said = await written(
        mind, "s1", [says("user", plan), *[says("assistant", f"{n} is noted. " * 9) for n in range(40)]]
    )
    await mind.settle()
    talk = roomy(mind, model, window=4_000)
    await take(talk, said)
    assert plan in [one.text for one in model.received[-1]]
    await take(talk, replace(said, text=f"{'step done; ' * 800} What is the plan to paint the whole house blue?"))
    known, spoken = apart(model.received[-1])
    assert plan not in "\n".join(text for _, text in spoken)
    assert plan in known
