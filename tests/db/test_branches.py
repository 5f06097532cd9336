"""Branches: a session that goes on from another's lines without a copy, whatever becomes of those later."""

from dataclasses import replace
from uuid import UUID

import pytest

from newton.db.pool import Tx
from newton.dialogue import branches, log
from newton.dialogue.branches import SessionExcerpt
from newton.dialogue.compaction import entry_store
from newton.errors import ConflictError, InputError, NotFoundError
from tests.db.conversing import append, branch, entry, forgets, keep, restore, session, texts, view
from tests.support import ANA, count, teller
from tests.talks import calls, gives, says, turn

TALK = [*turn(0, work=1), *turn(1, work=1), *turn(2, work=1)]


async def inject(tx: Tx, session_id: UUID, other_id: UUID, first: int, last: int) -> int:
    excerpt = SessionExcerpt(ref="other", session_id=other_id, first=first, last=last)
    made = await branches.inject(tx, excerpt, session_id=session_id, ctx=teller())
    return made.last - made.first + 1


async def test_a_branch_goes_on_from_a_line_and_copies_none(tx: Tx) -> None:
    parent = await session(tx, "parent", *TALK)
    child = await branch(tx, parent, "child", at=3)
    assert await view(tx, child) == (await view(tx, parent))[:4]
    assert await tx.fetchval("select count(*) from dialogue.messages") == len(TALK)
    (placed,) = await append(tx, child, says("user", "Another way."))
    assert placed.position == 4
    assert (await texts(tx, child))[-1] == "Another way."
    assert "Another way." not in await texts(tx, parent)


async def test_what_is_said_in_the_parent_later_is_not_in_its_branch(tx: Tx) -> None:
    parent = await session(tx, "parent", *TALK)
    child = await branch(tx, parent, "child")
    before = await view(tx, child)
    await append(tx, parent, *turn(3))
    await keep(tx, parent, entry(0, 7))
    assert await view(tx, child) == before
    await append(tx, child, says("user", "Here."))
    assert len(await view(tx, child)) == len(before) + 1


async def test_a_branch_is_shown_what_its_parent_is_shown_up_to_the_fork(tx: Tx) -> None:
    parent = await session(tx, "parent", *TALK)
    await keep(tx, parent, entry(1, 2, kind="tools"))
    await keep(tx, parent, entry(0, 3))
    (late,) = await keep(tx, parent, entry(4, 11))
    child = await branch(tx, parent, "child", at=7)
    assert await texts(tx, child) == ["[turn 0-3]", *(line.content for line in TALK[4:8])]
    before = await view(tx, child)
    await restore(tx, parent, late)
    assert await view(tx, child) == before


async def test_restoring_in_one_changes_nothing_in_the_other(tx: Tx) -> None:
    parent = await session(tx, "parent", *TALK)
    (one,) = await keep(tx, parent, entry(0, 3))
    child = await branch(tx, parent, "child")
    await restore(tx, child, one)
    assert (await texts(tx, parent))[0] == "[turn 0-3]"
    assert await texts(tx, child) == [line.content for line in TALK]
    other = await branch(tx, parent, "other")
    await restore(tx, parent, one)
    assert (await texts(tx, other))[0] == "[turn 0-3]"


async def test_what_was_restored_before_the_fork_stays_restored_in_the_branch(tx: Tx) -> None:
    # a restored message stays restored
    parent = await session(tx, "parent", *TALK)
    first, last = await keep(tx, parent, entry(0, 3), entry(4, 7))
    await restore(tx, parent, first)
    child = await branch(tx, parent, "child", at=5)
    assert (await log.load_view(tx, agent_id=ANA, session_id=child)).pinned == {0, 1, 2, 3}
    assert len(await entry_store.list_entries(tx, agent_id=ANA, session_id=child)) == 1
    await restore(tx, parent, last)
    assert (await log.load_view(tx, agent_id=ANA, session_id=child)).pinned == {0, 1, 2, 3}


async def test_lineage_three_deep(tx: Tx) -> None:
    first = await session(tx, "first", *TALK)
    second = await branch(tx, first, "second", at=7)
    await append(tx, second, says("user", "s8"), says("assistant", "s9"))
    third = await branch(tx, second, "third", at=8)
    await append(tx, third, says("user", "t9"))
    fourth = await branch(tx, third, "fourth")
    await append(tx, fourth, says("user", "f10"))
    assert await texts(tx, fourth) == [*(line.content for line in TALK[:8]), "s8", "t9", "f10"]
    early = await branch(tx, fourth, "early", at=3)
    await append(tx, early, says("user", "e4"))
    latest = await branch(tx, early, "latest", at=4)
    assert await texts(tx, latest) == [*(line.content for line in TALK[:4]), "e4"]
    places = [item.first for item in await view(tx, latest)]
    assert places == list(range(5))
    assert await log.get_last_position(tx, agent_id=ANA, session_id=latest) == 4
    shown = await view(tx, fourth)
    assert await log.get_token_count(tx, agent_id=ANA, session_id=fourth) == sum(item.tokens for item in shown)
    for one in (second, third, fourth, early, latest):
        await keep(tx, one, entry(0, 3))
        assert (await texts(tx, one))[0] == "[turn 0-3]"
    assert (await texts(tx, first))[0] == TALK[0].content


async def test_a_call_of_the_parent_is_answered_in_its_branch_and_there_alone(tx: Tx) -> None:
    parent = await session(tx, "parent", says("user", "Look."), calls("a"))
    child = await branch(tx, parent, "child")
    await append(tx, child, gives("a", "in the branch"))
    await append(tx, parent, gives("a", "in the parent"))
    assert (await texts(tx, child))[-1] == "in the branch"
    assert (await texts(tx, parent))[-1] == "in the parent"
    with pytest.raises(InputError, match="not open"):
        await append(tx, child, replace(gives("a", "twice"), ref="2"))
    other = await branch(tx, parent, "other", at=0)
    with pytest.raises(InputError, match="not open"):
        await append(tx, other, gives("a", "its call is behind the fork"))


# --- places ---


async def test_a_branch_goes_on_from_a_line_and_a_name_is_given_once(tx: Tx) -> None:
    parent = await session(tx, "parent", *TALK)
    assert len(await view(tx, await branch(tx, parent, "child", at=7))) == 8
    for taken in ("parent", "child"):
        with pytest.raises(ConflictError, match="already"):
            await branch(tx, parent, taken)
    # a place that is not there is refused
    parent, empty = await session(tx, "parent", *TALK), await session(tx, "empty")
    for at in (-1, 12, 10**9):
        with pytest.raises(NotFoundError):
            await branch(tx, parent, "child", at=at)
    with pytest.raises(InputError, match="has no messages"):
        await branch(tx, empty, "child")


async def test_every_session_is_listed_with_where_it_leaves_its_parent(tx: Tx) -> None:
    parent = await session(tx, "parent", *TALK)
    await branch(tx, parent, "child", at=3)
    found = await branches.list_branches(tx, agent_id=ANA)
    assert [(one.session, one.parent_session, one.parent_position) for one in found] == [
        ("child", "parent", 3),
        ("parent", None, None),
    ]


# --- lines of one shown in another ---


async def test_injected_lines_are_shown_behind_the_last_one_and_stay_there(tx: Tx) -> None:
    here, other = await session(tx, "here", *TALK[:4]), await session(tx, "other", *TALK)
    assert await inject(tx, here, other, 4, 4) == 1
    await append(tx, here, says("user", "Next."))
    shown = await view(tx, here)
    assert [(item.first, item.kind) for item in shown[3:]] == [(3, "line"), (3, "injected"), (4, "line")]
    assert shown[4].text == f"[From other]\nUser: {TALK[4].content}"
    assert shown[4].tokens == count(shown[4].text) + 4
    assert [item.kind for item in await view(tx, other)].count("injected") == 0


async def test_injected_lines_are_shown_whatever_is_told_of_the_lines_around(tx: Tx) -> None:
    here, other = await session(tx, "here", *TALK[:4]), await session(tx, "other", *TALK)
    await keep(tx, here, entry(0, 3))
    child = await branch(tx, here, "child")
    await inject(tx, child, other, 4, 5)
    assert [item.kind for item in await view(tx, child)] == ["turn", "injected"]
    await append(tx, child, *TALK[4:])
    await keep(tx, child, entry(0, 7, kind="goals"))
    assert [item.kind for item in await view(tx, child)][:2] == ["goals", "injected"]
    grandchild = await branch(tx, child, "grandchild")
    assert await view(tx, grandchild) == await view(tx, child)
    early = await branch(tx, here, "early", at=1)
    assert "injected" not in {item.kind for item in await view(tx, early)}


async def test_what_there_is_not_cannot_be_injected(tx: Tx) -> None:
    here, other, empty = await session(tx, "here", *TALK), await session(tx, "other", *TALK), await session(tx, "empty")
    for first, last in ((12, 20), (5, 4), (-5, -1), (-1, 1), (10, 12), (10, 500)):
        with pytest.raises(NotFoundError, match=r"no messages .* it has 12 messages, numbered from 0"):
            await inject(tx, here, other, first, last)
    with pytest.raises(NotFoundError, match="it has 0 messages"):
        await inject(tx, here, empty, 0, 0)
    with pytest.raises(InputError, match="cannot be injected into the same session"):
        await inject(tx, here, here, 0, 1)
    with pytest.raises(InputError, match="has no messages"):
        await inject(tx, empty, other, 0, 1)


async def test_injected_lines_are_taken_out_again_and_may_cost_so_much_together(tx: Tx) -> None:
    here, other = await session(tx, "here", *TALK[:4]), await session(tx, "other", *TALK)
    before = await view(tx, here)
    excerpt = SessionExcerpt(ref="other", session_id=other, first=0, last=3)
    made = await branches.inject(tx, excerpt, session_id=here, ctx=teller())
    child = await branch(tx, here, "child")
    for most in (made.tokens, 2 * made.tokens - 1):
        with pytest.raises(InputError, match=r"in addition to .* injected already"):
            await branches.inject(tx, excerpt, session_id=here, ctx=teller(), max_tokens=most)
    assert await log.list_injections(tx, agent_id=ANA, session_id=here) == [made]
    for _ in range(2):
        await branches.eject(tx, made.injection_id, session_id=here, ctx=teller())
        assert await view(tx, here) == before
        assert await log.list_injections(tx, agent_id=ANA, session_id=here) == []
    await branches.inject(tx, excerpt, session_id=here, ctx=teller(), max_tokens=made.tokens)
    assert "injected" in {item.kind for item in await view(tx, child)}, "a branch keeps what it began with"
    other_child = await branch(tx, here, "other child")
    assert len(await log.list_injections(tx, agent_id=ANA, session_id=other_child)) == 1, "what is out stays out"


# --- forgetting ---


async def test_what_is_forgotten_is_gone_in_every_branch(tx: Tx) -> None:
    parent = await session(tx, "parent", *TALK)
    await keep(tx, parent, entry(0, 3, text="Please look at part 0"))
    child = await branch(tx, parent, "child")
    grandchild = await branch(tx, child, "grandchild", at=5)
    await keep(tx, grandchild, entry(0, 5, text="Please look at part 0, again", kind="goals"))
    other = await session(tx, "other", says("user", "Hello."))
    await inject(tx, other, child, 0, 1)
    early = await branch(tx, parent, "early", at=3)
    await keep(tx, early, entry(0, 3, text="Please look at part 0, early"))
    await forgets(tx, parent, 0)
    for one in (parent, child, grandchild, other, early):
        assert "part 0 of" not in "".join(await texts(tx, one)) and "part 0," not in "".join(await texts(tx, one))
    assert (await texts(tx, grandchild))[0] == "[forgotten]"
    assert await tx.fetchval("select count(*) from dialogue.compaction_entries") == 0


async def test_forgetting_behind_the_fork_leaves_the_branch_as_it_is(tx: Tx) -> None:
    parent = await session(tx, "parent", *TALK)
    child = await branch(tx, parent, "child", at=3)
    await append(tx, child, *turn(9, work=1))
    await keep(tx, child, entry(4, 7, text="of the branch"))
    before = await view(tx, child)
    await forgets(tx, parent, 4)
    assert await view(tx, child) == before
