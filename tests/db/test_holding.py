"""One turn of a session at a time, and nobody waits for the dead."""

from newton.db.pool import Tx
from newton.dialogue import holding, sessions
from newton.dialogue.lines import Line
from newton.ids import agent_id, new_id
from newton.providers.chat import Call
from tests.support import NOON, count, teller

ANA = agent_id("ana")


async def test_a_turn_is_one_holder_s_until_it_lets_go_or_its_lease_ends(tx: Tx) -> None:
    session_id = await sessions.session(tx, agent_id=ANA, ref="s1", now=NOON)
    one, other = new_id(), new_id()
    of = {"agent_id": ANA, "session_id": session_id}
    assert await holding.hold(tx, one, "turn", **of, seconds=60)
    assert await holding.hold(tx, one, "turn", **of, seconds=60)
    assert not await holding.hold(tx, other, "turn", **of, seconds=60)
    await holding.release(tx, other, "turn", **of)
    assert not await holding.hold(tx, other, "turn", **of, seconds=60)
    await holding.release(tx, one, "turn", **of)
    assert await holding.hold(tx, other, "turn", **of, seconds=-1)
    assert await holding.hold(tx, one, "turn", **of, seconds=60)  # the other died


async def test_calls_are_open_until_they_are_answered(tx: Tx) -> None:
    session_id = await sessions.session(tx, agent_id=ANA, ref="s1", now=NOON)
    calls = (Call("c1", "look", "{}"), Call("c2", "look", "{}"))
    asked = Line(role="assistant", content="", said_at=NOON, calls=calls)
    given = Line(role="tool", content="a cup", said_at=NOON, answers="c1")
    await sessions.append(tx, [asked, given], session_id=session_id, by=teller(ANA), count=count)
    left = await holding.open_calls(tx, agent_id=ANA, session_id=session_id)
    assert left == [Call("c2", "look", "{}")]
