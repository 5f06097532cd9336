"""What a session has come to in short, in the database: made once, found in its session, gone with its lines."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

import pytest
from asyncpg import Record

from newton.db.pool import Tx
from newton.dialogue import artifacts, log, sessions
from newton.dialogue.artifacts import ArtifactQuery, ArtifactWriter
from newton.dialogue.messages import Message, Role
from newton.dialogue.session_summary import SummarySizes
from newton.memory.forgetting import forget
from newton.memory.memory import Trust
from newton.memory.representations import to_bullet
from tests.db.conversing import branch
from tests.support import ANA, NOON, count, teller

TOPICS = ("We decided to take ferry {0}.", "The harbour had {0} boats in it that day.", "It must sail before {0}.")
ALL = """
select m.memory_id, m.summary, m.summary_tokens, m.full_text, m.state, m.trust, m.quarantined, m.thread_id, a.type,
    a.chunk_index, a.first_position, a.last_position, a.source
from dialogue.artifacts as a join memory.memories as m using (agent_id, memory_id)
where $1::text is null or a.type = $1 order by m.position
"""


async def began(tx: Tx, ref: str = "s1") -> UUID:
    return await sessions.ensure_session(tx, agent_id=ANA, ref=ref, now=NOON)


async def say(tx: Tx, session_id: UUID, *said: str, role: Role = "user", name: str | None = None) -> None:
    lines = [Message(role=role, name=name, content=words, said_at=NOON) for words in said]
    await sessions.append(tx, lines, session_id=session_id, ctx=teller())


async def note(tx: Tx, session_id: UUID, sizes: SummarySizes | None = None) -> None:
    await ArtifactWriter(session_id=session_id, ctx=teller(), sizes=sizes or SummarySizes()).update(tx)


async def made(tx: Tx, kind: str | None = None) -> Sequence[Record]:
    return await tx.fetch(ALL, kind)


def chat(first: int, lines: int) -> list[str]:
    return [TOPICS[n % 3].format(n) for n in range(first, first + lines)]


async def test_what_a_tool_put_out_is_kept_in_pieces_with_its_line(tx: Tx) -> None:
    # S004-2, S004-3, S004-7
    session_id = await began(tx)
    await say(tx, session_id, "\n".join(f"test {n} passed in {n} ms" for n in range(100)), role="tool", name="pytest")
    pieces = await made(tx)
    assert len(pieces) > 1
    assert [(p["type"], p["chunk_index"], p["source"]) for p in pieces] == [
        ("tools", n, "pytest") for n in range(len(pieces))
    ]
    assert all(p["summary"].startswith("[2026-11-21] output of a tool (pytest): ") for p in pieces)
    assert all(p["summary_tokens"] == count(to_bullet(p["summary"])) <= 300 for p in pieces)
    assert {(p["trust"], p["quarantined"], p["thread_id"]) for p in pieces} == {("tool", True, session_id)}
    waiting = await tx.fetchval(
        "select count(*) from memory.outbox as o join dialogue.artifacts using (agent_id, memory_id)"
    )
    assert waiting == len(pieces), "they are embedded as all else is"


async def test_facts_are_sentences_that_the_two_said_and_are_kept_once(tx: Tx) -> None:
    # S004-3
    session_id = await began(tx)
    await say(tx, session_id, "Nice day. We decided to use Postgres.", name="Ana")
    await say(tx, session_id, "We must never use MySQL.", role="tool")
    quoting = Message(role="assistant", content="We decided on Redis.", said_at=NOON, is_notice=True)
    await sessions.append(tx, [quoting], session_id=session_id, ctx=teller())
    await note(tx, session_id)
    await note(tx, session_id)
    (fact,) = await made(tx, "facts")
    assert fact["summary"] == "[2026-11-21] Ana: We decided to use Postgres."
    assert (fact["trust"], fact["first_position"], fact["last_position"]) == ("user", 0, 0)


async def test_a_summary_rolls_on_within_its_tokens_and_one_is_current(tx: Tx) -> None:
    # S004-5, S004-16
    session_id, sizes = await began(tx), SummarySizes(summary_tokens=100)
    await say(tx, session_id, *chat(0, 11))
    await note(tx, session_id, sizes)
    assert await made(tx, "summary") == []
    for first in range(11, 71, 12):
        await say(tx, session_id, *chat(first, 12))
        await note(tx, session_id, sizes)
        await note(tx, session_id, sizes)
    summaries = await made(tx, "summary")
    assert [s["state"] for s in summaries] == ["SUPERSEDED"] * 4 + ["ACTIVE"]
    assert all(s["summary_tokens"] == count(to_bullet(s["summary"])) <= 100 for s in summaries)
    assert [(s["first_position"], s["last_position"]) for s in summaries] == [(0, n) for n in (22, 34, 46, 58, 70)]
    assert "ferry 0." in summaries[-1]["full_text"], "what it began with is still told"
    assert "before 68." in summaries[-1]["full_text"]


async def test_a_long_tail_is_summarized_before_its_time_and_a_model_may_write_it(tx: Tx) -> None:
    session_id = await began(tx)
    await say(tx, session_id, "We talked about the ferry at great length. " * 10, role="assistant")
    writer = ArtifactWriter(session_id=session_id, ctx=teller(), sizes=SummarySizes(max_new_tokens=50))
    await writer.update(tx, summarizer=lambda units, fits: ["They spoke of the ferry."])
    (summary,) = await made(tx, "summary")
    assert summary["summary"].endswith("in short: They spoke of the ferry.")


@pytest.mark.parametrize(
    ("roles", "trust"), [(("user",), "user"), (("user", "tool"), "user"), (("user", "tool", "assistant"), "tool")]
)
async def test_a_summary_is_trusted_as_the_least_of_what_it_repeats(
    tx: Tx, roles: Sequence[Role], trust: Trust
) -> None:
    session_id = await began(tx)
    for role in roles:
        await say(tx, session_id, *chat(0, 12), role=role)
    await note(tx, session_id)
    (summary,) = await made(tx, "summary")
    assert summary["trust"] == trust
    assert "Tool:" not in summary["full_text"]


async def looked_for(
    tx: Tx, session_id: UUID, text: str, *, later: timedelta | None = None
) -> list[artifacts.ArtifactMatch]:
    moment = NOON + later if later else None
    return await artifacts.find_matches(
        tx,
        ArtifactQuery(
            agent_id=ANA,
            session_id=session_id,
            text=text,
            vector=None,
            model_id=None,
            moment=moment,
            excluded=(),
            limit=5,
        ),
    )


async def test_it_is_found_in_its_session_alone_and_by_its_words_where_nobody_embeds(tx: Tx) -> None:
    # S004-8
    here, elsewhere = await began(tx), await began(tx, "s2")
    await say(tx, here, "ferry boats\nsail at nine", role="tool")
    await say(tx, elsewhere, "a ferry of another session", role="tool")
    (found,) = await looked_for(tx, here, "when does the ferry sail to Lisbon?")
    assert (found.similarity, round(found.lexical, 3)) == (0.0, 0.607), (
        "of three words the one that is nowhere counts half"
    )
    assert await looked_for(tx, here, "when does the ferry sail?", later=timedelta(days=-1)) == []


async def test_with_a_line_goes_what_was_made_of_it_and_nobody_has_to_say_so(tx: Tx) -> None:
    session_id = await began(tx)
    await say(tx, session_id, *chat(0, 24))
    await note(tx, session_id)
    await say(tx, session_id, *chat(24, 12))
    await note(tx, session_id)
    first = await tx.fetchval("select memory_id from memory.memories where kind = 'exchange' and position = 0")
    await forget(tx, [first], derived=False, reason="a test", ctx=teller())
    left = await made(tx)
    assert {one["type"] for one in left} == {"facts"}
    assert min(one["first_position"] for one in left) > 0
    await note(tx, session_id)
    (again,) = await made(tx, "summary")
    assert "ferry 0." not in again["full_text"]


async def test_artifacts_do_not_change_how_rare_a_word_is(tx: Tx) -> None:
    session_id = await began(tx)
    await say(tx, session_id, *chat(0, 12))
    counted = "select count(*) from memory.memories where word_count > 0 and kind <> 'artifact'"
    before = await tx.fetchval(counted)
    await note(tx, session_id)
    assert len(await made(tx)) > 1
    assert await tx.fetchval(counted) == before


async def test_a_line_is_read_once_for_facts_and_one_that_was_forgotten_stays_so(tx: Tx) -> None:
    # S004-3
    session_id, until = await began(tx), "select last_position from dialogue.fact_watermarks"
    await say(tx, session_id, "We decided to use Postgres.", "How nice it is.")
    await note(tx, session_id)
    assert await tx.fetchval(until) == 1, "what states nothing was read as well"
    (fact,) = await made(tx, "facts")
    await forget(tx, [fact["memory_id"]], derived=False, reason="a test", ctx=teller())
    await note(tx, session_id)
    assert (await made(tx, "facts"), await tx.fetchval(until)) == ([], 1)
    await say(tx, session_id, "We decided to use Redis too.")
    await note(tx, session_id)
    assert [one["full_text"] for one in await made(tx, "facts")] == ["We decided to use Redis too."]


async def test_a_branch_has_what_was_made_of_the_lines_it_begins_with(tx: Tx) -> None:
    # S004-8, S001-41: a branch is one conversation with what it begins with
    parent = await began(tx)
    await say(tx, parent, *chat(0, 24))
    await note(tx, parent)
    end = await log.get_last_position(tx, agent_id=ANA, session_id=parent)
    await say(tx, parent, "the lighthouse is on fire", role="tool")
    child = await branch(tx, parent, "child", at=end)
    assert {near.last_position for near in await looked_for(tx, child, "harbour boats")} <= set(range(24))
    assert await looked_for(tx, child, "harbour boats")
    assert await looked_for(tx, parent, "lighthouse on fire")
    burning = [near for near in await looked_for(tx, child, "lighthouse on fire") if near.lexical]
    assert burning == []


async def test_the_summary_of_a_branch_goes_on_from_its_parents_and_leaves_that_alone(tx: Tx) -> None:
    # S004-5
    parent = await began(tx)
    await say(tx, parent, *chat(0, 12))
    await note(tx, parent)
    facts = len(await made(tx, "facts"))
    child = await branch(tx, parent, "child", at=11)
    await say(tx, child, *chat(12, 12))
    await note(tx, child)
    of_parent, of_child = await made(tx, "summary")
    assert (of_parent["thread_id"], of_parent["state"]) == (parent, "ACTIVE")
    assert (of_child["thread_id"], of_child["first_position"], of_child["last_position"]) == (child, 0, 23)
    assert len(await made(tx, "facts")) == 2 * facts, "each line is read where it was said"


async def test_of_what_is_found_by_words_a_rare_one_says_more(tx: Tx) -> None:
    # S004-9
    session_id = await began(tx)
    await say(tx, session_id, *(f"the ferry number {n} sails" for n in range(9)), "the glacier melts", role="tool")
    found = {near.first_position: near.lexical for near in await looked_for(tx, session_id, "a ferry at the glacier")}
    assert found[9] > 2 * found[0] > 0
