"""Conversations that go on for long: what is sent stays within the window, and what matters stays known."""

import time

from newton.agent.compacting import Compacting
from newton.dialogue import sessions
from newton.dialogue.compaction.events import Event
from newton.dialogue.compaction.strategies import PRESETS
from newton.dialogue.view import cost
from newton.providers import tokens
from tests.scenarios.conftest import Mind
from tests.scenarios.longtalk import Talk
from tests.support import teller


async def test_try(mind: Mind) -> None:
    session_id = await mind.session()
    told: list[Event] = []
    compacting = Compacting(
        agent_id=mind.agent_id,
        db=mind.db,
        clock=mind.clock,
        count=tokens.count,
        preset=PRESETS["default"],
        tell=told.append,
    )
    talk = Talk(300)
    sent = bare = 0
    spent = []
    import cProfile

    prof = cProfile.Profile()
    for n, lines in enumerate(talk):
        async with mind.db.work(mind.agent_id) as tx:
            by = teller(mind.agent_id, now=mind.clock.now())
            placed = await sessions.append(tx, lines, session_id=session_id, by=by, count=tokens.count)
        t = time.perf_counter()
        prof.enable()
        view = await compacting.view(session_id, most=50_000)
        prof.disable()
        spent.append((time.perf_counter() - t) * 1000)
        bare += sum(p.tokens + 4 for p in placed)
        sent += cost(view)
        if n % 25 == 24:
            print(
                n,
                "log",
                bare,
                "view",
                cost(view),
                len(view),
                "kinds",
                {k: sum(i.kind == k for i in view) for k in {i.kind for i in view}},
                "ms",
                round(sum(spent[-25:]) / 25, 1),
                round(max(spent[-25:]), 1),
            )
    text = "\n".join(i.text + " ".join(c.arguments for c in i.calls) for i in view)
    from collections import Counter

    kept = Counter()
    alln = Counter()
    for p in talk.planted:
        alln[p.kind] += 1
        kept[p.kind] += p.key in text
    print({k: f"{kept[k]}/{alln[k]}" for k in alln})
    print(Counter(type(e).__name__ + " " + e.strategy for e in told))
    print([e for e in told if type(e).__name__ == "Failed"][:5])
    for i in view[:3]:
        print(i.kind, i.first, i.last, i.tokens, i.text[:1800])
    import pstats

    pstats.Stats(prof).sort_stats("tottime").print_stats(25)
    assert 0
