"""Conversations that go on for long: what is sent stays within the window, and what matters stays known."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

import pytest

from newton.agent.compacting import Compacting
from newton.agent.conversations import Conversations
from newton.agent.sending import joined, message
from newton.clock import stopwatch
from newton.dialogue.compaction.events import Completed, Event, Failed
from newton.dialogue.compaction.fitting import fitted
from newton.dialogue.lines import Line
from newton.dialogue.view import Shown, cost
from newton.providers import tokens
from newton.providers.chat import ChatMessage
from tests.scenarios.conftest import Mind
from tests.scenarios.longtalk import Planted, Talk

WINDOW = 24_000


@dataclass(slots=True)
class Held:
    """A conversation as an agent holds it: each request is the view, each line goes into the log."""

    mind: Mind
    compacting: Compacting
    most: int
    sent: int = 0
    bare: int = 0
    largest: int = 0
    spent_ms: list[float] = field(default_factory=list[float])
    view: Sequence[Shown] = ()

    async def turn(self, session_id: UUID, ref: str, lines: Sequence[Line]) -> None:
        doors = conversations(self.mind, self.compacting)
        for line in lines:
            await doors.append(ref, [line])
            if line.role != "assistant":
                await self._ask(session_id)

    async def _ask(self, session_id: UUID) -> None:
        """A request to a model: the view as it is now, which has to be one that a model can read."""
        started = stopwatch()
        view = await self.compacting.view(session_id, most=self.most)
        self.view = fitted(view, most=self.most, count=tokens.count)
        self.spent_ms.append(stopwatch() - started)
        readable(joined(map(message, self.view)))
        self.largest = max(self.largest, cost(self.view))
        self.sent += cost(self.view)


def conversations(mind: Mind, compacting: Compacting) -> Conversations:
    return Conversations(
        agent_id=mind.agent_id,
        origin="test",
        db=mind.db,
        clock=mind.clock,
        count=tokens.count,
        compacting=compacting,
    )


def readable(messages: Sequence[ChatMessage]) -> None:
    """Every answer right behind its call, as the protocol wants it."""
    open_: set[str] = set()
    for one in messages:
        if one.role == "tool":
            assert one.answers in open_, one
            open_.discard(one.answers or "")
        else:
            assert not open_, f"a call without its answer before {one}"
        open_ |= {call.id for call in one.calls}


def known(view: Sequence[Shown]) -> str:
    return "\n".join(item.text + " ".join(call.arguments for call in item.calls) for item in view)


@pytest.mark.parametrize("turns", [100, pytest.param(500, marks=pytest.mark.slow), pytest.param(2_000, marks=pytest.mark.slow)])
async def test_long(mind: Mind, turns: int) -> None:
    told: list[Event] = []
    compacting = mind.compacting(tell=told.append)
    held = Held(mind, compacting, WINDOW)
    session_id, talk = await mind.session(), Talk(turns)
    logged = 0
    bare = 0
    for lines in talk:
        for line in lines:
            logged += tokens.count(line.content) + 4
            if line.role != "assistant":
                bare += logged
        await held.turn(session_id, "s1", lines)
    print("largest", held.largest, "of", WINDOW, "sent", held.sent, "bare", bare, held.sent / bare, "log", logged)
    spent = sorted(held.spent_ms)
    print("ms mean", sum(spent) / len(spent), "p50", spent[len(spent) // 2], "p95", spent[int(len(spent) * .95)], "max", spent[-1])
    print(Counter((type(e).__name__, e.strategy) for e in told if isinstance(e, Completed | Failed)))
    text = known(held.view)
    await mind.settle()
    kept, reached, alln = Counter[str](), Counter[str](), Counter[str]()
    lost: list[Planted] = []
    for p in talk.planted:
        alln[p.kind] += 1
        if p.key in text:
            kept[p.kind] += 1
        elif await reachable(mind, p):
            reached[p.kind] += 1
        else:
            lost.append(p)
    print({k: f"{kept[k]} in view + {reached[k]} by recall of {alln[k]}" for k in alln})
    print(lost[:5])
    assert 0


async def reachable(mind: Mind, planted: Planted) -> bool:
    found = await mind.verbs.recall(planted.asked, most=20)
    return any(planted.key in one.summary for one in found.found)
