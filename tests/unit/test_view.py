"""Views of logs: every line once, by itself or by what covers it; turns and pairs are found whatever stands between."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from newton.dialogue.compaction.strategies import CompactionBlock, ViewState, refusal_reason
from newton.dialogue.messages import Message, StoredMessage
from newton.dialogue.view import (
    CompactionEntry,
    EntryKind,
    InjectedText,
    ViewMessage,
    build_view,
    count_view_tokens,
    iter_tool_groups,
    outermost_entries,
    split_turns,
)
from tests.support import NOON
from tests.talks import calls, gives, logs, placed, says, turn


def entry(first: int, last: int, *, kind: EntryKind = "turn", number: int = 1) -> CompactionEntry:
    return CompactionEntry(
        entry_id=UUID(int=number),
        kind=kind,
        first=first,
        last=last,
        text=f"[{kind} {first}-{last}]",
        tokens=5,
        before=50,
        strategy="threshold",
        prompt="extract/1",
        model=None,
        made_at=NOON + timedelta(seconds=number),
    )


def places(view: Sequence[ViewMessage]) -> list[tuple[int, int]]:
    return [(item.first, item.last) for item in view]


TALK = placed([*turn(0, work=1), *turn(1, work=1), says("user", "And now?")])


def test_entries_stand_for_their_lines_where_the_first_stood() -> None:
    view = build_view(TALK, [])
    assert [(item.role, item.text, item.calls, item.tool_call_id) for item in view] == [
        (one.message.role, one.message.content, one.message.calls, one.message.tool_call_id) for one in TALK
    ]
    assert count_view_tokens(view) == sum(one.tokens + 4 for one in TALK)
    view = build_view(TALK, [entry(0, 3)])
    assert places(view) == [(0, 3), *((n, n) for n in range(4, 9))]
    assert (view[0].role, view[0].text, view[0].tokens) == ("user", "[turn 0-3]", 9)
    # what covers another counts and leaves the other behind it
    inner, outer = entry(1, 2, kind="tools", number=1), entry(0, 3, number=2)
    assert outermost_entries([inner, outer]) == [outer]
    assert outermost_entries([inner]) == [inner]
    assert places(build_view(TALK, [inner])) == [(0, 0), (1, 2), *((n, n) for n in range(3, 9))]
    # of two for the same lines the later counts
    old, new = entry(2, 2, kind="mask", number=1), entry(2, 2, kind="mask", number=2)
    assert outermost_entries([new, old]) == outermost_entries([old, new]) == [new]
    same_moment = replace(new, made_at=old.made_at)
    assert outermost_entries([old, same_moment]) == outermost_entries([same_moment, old]) == [same_moment]
    view = build_view(TALK, [entry(2, 2, kind="mask"), entry(1, 1, kind="mask", number=2)])
    assert (view[2].role, view[2].name, view[2].tool_call_id) == ("tool", "read_file", "c0.0")
    assert (view[1].role, view[1].calls) == ("assistant", TALK[1].message.calls)
    # a trimmed input still begins its turn
    # no block crosses a user turn, however long its input is
    view = build_view(TALK, [entry(4, 4, kind="mask")])
    assert [(one.first, one.last) for one in split_turns(view)] == [(0, 3), (4, 7), (8, 8)]
    assert all(one.has_input for one in split_turns(view))


def test_lines_of_another_branch_stand_behind_their_place_in_no_turn() -> None:
    view = build_view(TALK, [], [InjectedText(3, "[From other]\nUser: x", 6)])
    assert [(item.kind, item.first) for item in view[3:6]] == [("line", 3), ("injected", 3), ("line", 4)]
    # no turn holds lines of another branch
    view = build_view(TALK, [], [InjectedText(2, "[From other]\nUser: x", 6)])
    assert [places(one.items) for one in split_turns(view)] == [
        places(one.items) for one in split_turns(build_view(TALK, []))
    ]
    # what comes from others stands behind its place in their order
    texts = [InjectedText(8, "last", 3), InjectedText(2, "first", 3), InjectedText(2, "second", 3)]
    view = build_view(TALK, [entry(0, 3)], texts)
    assert [item.text for item in view if item.kind == "injected"] == ["first", "second", "last"]
    assert [item.text for item in view[:4]] == ["[turn 0-3]", "first", "second", TALK[4].message.content]


def test_lines_of_another_branch_are_shown_whatever_covers_their_place() -> None:
    aside = [InjectedText(2, "[From other]\nUser: x", 6)]
    tools, whole = [entry(1, 2, kind="tools")], [entry(0, 3)]
    assert [item.kind for item in build_view(TALK, whole, aside)][:3] == ["turn", "injected", "line"]
    assert [item.kind for item in build_view(TALK, tools, aside)][:4] == ["line", "tools", "injected", "line"]
    # as it is read from the database: of a block only its first line
    assert build_view([one for one in TALK if one.position != 2], tools, aside) == build_view(TALK, tools, aside)
    assert build_view([one for one in TALK if one.position not in (1, 2, 3)], whole, aside) == build_view(
        TALK, whole, aside
    )


def test_turns_go_from_an_input_to_the_next() -> None:
    view = build_view(placed([says("assistant", "Hello."), *turn(0, work=1), *turn(1, work=1)]), [entry(1, 4)])
    assert [(one.first, one.last, one.has_input) for one in split_turns(view)] == [
        (0, 0, False),
        (1, 4, True),
        (5, 8, True),
    ]
    view = build_view(placed([says("user", "Hi."), says("system", "Rules."), says("assistant", "Yes.")]), [])
    assert [(one.first, one.last, one.has_input) for one in split_turns(view)] == [(0, 0, True), (2, 2, False)]
    # runs of work end where somebody speaks
    lines = [says("user", "?"), calls("a"), gives("a", "x"), says("assistant", "Hm."), calls("b"), gives("b", "y")]
    whole, _ = split_turns(build_view(placed([*lines, calls("late"), says("user", "!"), gives("late", "z")]), []))
    assert [places(run) for run in iter_tool_groups(whole)] == [[(1, 1), (2, 2)]], (
        "a call of the second run is answered later"
    )


def test_calls_and_answers_belong_together() -> None:
    def whole(*lines: Message) -> list[bool]:
        return [one.is_complete for one in split_turns(build_view(placed([says("user", "?"), *lines]), []))]

    assert whole(calls("a"), gives("a", "x")) == [True]
    assert whole(calls("a", "b"), gives("b", "x"), gives("a", "y")) == [True]
    assert whole(calls("a"), gives("a", "x"), calls("a"), gives("a", "y")) == [True], "an id may come again"
    assert whole(gives(None, "x")) == [True], "a transcript's tool names no call"
    assert whole(calls("a"), says("user", "!"), gives("a", "x"), says("user", "Next.")) == [False, False, True]
    assert whole(calls("a", "b"), gives("b", "x"), says("user", "!"), gives("a", "y")) == [False, False]
    # a call that nobody answered has ended and so has an answer without a call
    lines = [says("user", "?"), calls("a", "b"), gives("b", "x"), says("user", "!"), calls("a"), gives("a", "y")]
    first, second = split_turns(build_view(placed(lines), []))
    assert first.is_complete and second.is_complete, "the same id in a later turn answers the later call"
    assert [places(run) for run in iter_tool_groups(first)] == [[(1, 1), (2, 2)]]
    (late,) = split_turns(build_view(placed([says("user", "?"), gives("gone", "x")]), []))
    assert late.is_complete


SPANS = st.lists(st.tuples(st.integers(0, 39), st.integers(0, 10)), max_size=12)


@given(logs(reused=False), SPANS, st.data())
def test_every_line_is_shown_once_or_covered_once(
    log: list[StoredMessage], spans: list[tuple[int, int]], data: st.DataObject
) -> None:
    entries = [entry(a, min(a + n, len(log) - 1), number=k) for k, (a, n) in enumerate(spans, 1) if a < len(log)]
    view = build_view(log, entries)
    assert [place for item in view for place in range(item.first, item.last + 1)] == list(range(len(log)))
    order = data.draw(st.permutations(entries))
    assert build_view(log, order) == view
    held = [item for one in split_turns(view) for item in one.items]
    assert held == [item for item in view if item.role != "system"]


def test_an_aside_and_a_long_entry_cost_nothing() -> None:
    said = [says("user", "One."), says("assistant", "Nothing."), says("user", "Two."), says("assistant", "Yes.")]
    log = placed(said)
    log[1] = replace(log[1], message=replace(log[1].message, is_notice=True))
    view = build_view(log, [])
    assert [(item.text, item.first, item.last) for item in view] == [("One.", 0, 1), ("Two.", 2, 2), ("Yes.", 3, 3)]
    assert build_view(log[1:2], []) == []
    # A walk over the positions that it covers would not end.
    view = build_view(TALK[:1], [entry(0, 10**15)], [InjectedText(10**14, "[From other]", 3)])
    assert places(view) == [(0, 10**15), (10**14, 10**14)]


def test_the_length_of_what_an_entry_covers_costs_nothing() -> None:
    """A walk over the positions that it covers would not end."""
    long = ViewMessage("user", "[goals]", 500, 0, 10**15, "goals")
    view = (long, ViewMessage("user", "And now?", 5, 10**15 + 1, 10**15 + 1))
    block = CompactionBlock("merged", (long,), max_tokens=10)
    assert "restored" not in (refusal_reason(block, ViewState(view, 1_000, frozenset({10**15 + 1}))) or "")
    assert "restored" in (refusal_reason(block, ViewState(view, 1_000, frozenset({7}))) or "")
