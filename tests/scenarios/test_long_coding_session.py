"""In a coding session of 300 turns the goal, the deadline, the rules, decisions and dead ends stay known."""

import sys
from collections import Counter
from dataclasses import dataclass, field, replace

import pytest

from newton.agent.llm.structured import StructuredLLM
from newton.agent.loop.completion import TokenLimits
from newton.agent.loop.turn import TurnInput
from newton.dialogue.compaction.presets import PRESETS
from newton.dialogue.view import count_view_tokens
from newton.memory import lookup
from newton.providers import token_counter
from newton.providers.fakes import ScriptedChat
from tests.scenarios.coding_session import GOAL, TURNS, CodingSession, generic_summaries
from tests.scenarios.conftest import Mind
from tests.scenarios.talking import Talking

WINDOW = 24_000
SCALE = 0.1  # of the tokens of a preset, so that 300 turns pass its limit many times
CONTEXT_TOKENS = 4_000
PROBE_EVERY = 10  # turns: 30 points
RECALL_LIMIT = 8  # results of the tool recall, its default
MIN_SHARE = 0.95


@dataclass(slots=True)
class ProbeCounts:
    """Items that were looked for at the probes, and those found in the prompt or by one tool call, by kind."""

    asked: Counter[str] = field(default_factory=Counter[str])
    found: Counter[str] = field(default_factory=Counter[str])
    prompt_tokens: list[int] = field(default_factory=list[int])

    def count(self, kind: str, *, is_found: bool) -> None:
        self.asked[kind] += 1
        self.found[kind] += is_found

    def share(self, kind: str) -> float:
        return self.found[kind] / self.asked[kind]


async def probe(mind: Mind, talking: Talking, session: CodingSession, turn: int, counts: ProbeCounts) -> None:
    """Take a turn of a person who asks for the goal, and look for everything that was stated so far."""
    model = ScriptedChat("Noted, we go on.")
    limits = TokenLimits(
        context=CONTEXT_TOKENS, conversation=limit_of(talking.strategies), reply=500, per_day=10**9, window=WINDOW
    )
    runner = replace(mind.turns(model), compaction=talking.compacting, limits=limits)
    turn_input = TurnInput(session_id=await mind.session(), text="What is our first goal and its deadline?")
    async for _ in runner.run(turn_input):
        pass
    prompt = "\n".join(message.text for message in model.received[0])
    counts.prompt_tokens.append(token_counter.count(prompt) + 4 * len(model.received[0]))
    counts.count("goal", is_found=GOAL in prompt)
    if deadline := session.deadline_at(turn):
        counts.count("deadline", is_found=deadline in prompt)
    for rule in session.rules_at(turn):
        counts.count("rule", is_found=rule in prompt)
    for kind in ("decision", "dead end"):
        stated = [item for item in session.planted if item.kind == kind]
        for item in stated[:: max(len(stated) // 3, 1)]:
            is_found = item.key in prompt or item.key in await recalled_text(mind, item.question)
            counts.count(kind, is_found=is_found)


async def recalled_text(mind: Mind, question: str) -> str:
    """Return the texts of what the tool `recall` finds in the session."""
    found = (await mind.verbs.recall(question, limit=RECALL_LIMIT, session_id=await mind.session())).memories
    async with mind.scope.transaction() as tx:
        records = [await lookup.read_memory(tx, one.memory_id, agent_id=mind.agent_id) for one in found]
    return "\n".join(record.full_text or record.summary for record in records)


def limit_of(preset: str) -> int:
    return int(PRESETS[preset].max_tokens * SCALE)


def summary_model(mind: Mind) -> StructuredLLM:
    return StructuredLLM(model=ScriptedChat(*generic_summaries(2_000)), tokens_per_day=10**9, scope=mind.scope)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("with_model", [False, True], ids=["without a model", "with generic summaries"])
@pytest.mark.parametrize("preset", PRESETS)
async def test_what_was_stated_stays_known_for_300_turns(mind: Mind, preset: str, with_model: bool) -> None:
    # S003-16, S003-19, S003-21, S003-F4
    if preset == "none" and with_model:
        pytest.skip("the preset none makes no summaries")
    chosen: dict[str, object] = {"model": summary_model(mind)} if with_model else {}
    talking, session, counts = Talking(mind, preset, chosen=chosen), CodingSession(), ProbeCounts()
    limit, sent, logged, log_tokens = limit_of(preset), 0, 0, 0
    for turn, messages in enumerate(session):
        await talking.says(*messages)
        view = await talking.asks(most=limit)
        log_tokens = (await talking.doors.get_view("s1")).logged
        if log_tokens > 2 * limit:
            sent, logged = sent + count_view_tokens(view), logged + log_tokens
        if turn % PROBE_EVERY == PROBE_EVERY - 1:
            await mind.settle()
            await probe(mind, talking, session, turn, counts)
    shares = {kind: counts.share(kind) for kind in counts.asked}
    figures = ", ".join(f"{kind} {counts.found[kind]} of {counts.asked[kind]}" for kind in counts.asked)
    sys.stdout.write(
        f"\n{preset}, {'generic summaries' if with_model else 'no model'}: {figures}; largest prompt"
        f" {max(counts.prompt_tokens):,} of {WINDOW:,} tokens; {1 - sent / logged:.1%} fewer tokens than the log"
        f" ({log_tokens:,})\n"
    )
    assert len(counts.prompt_tokens) == TURNS // PROBE_EVERY and session.tool_calls == 40
    assert max(counts.prompt_tokens) <= WINDOW and max(talking.sent) <= limit
    assert sent <= 0.6 * logged
    assert min(shares.values()) >= MIN_SHARE, shares
