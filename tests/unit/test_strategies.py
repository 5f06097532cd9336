"""What is to be told shorter: never what is current, pinned or a system's; whole turns and whole pairs; and it ends."""

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.dialogue.compaction.presets import PRESETS
from newton.dialogue.compaction.strategies import (
    BatchTurns,
    CompactionBlock,
    CompactionStrategy,
    MaskOutputs,
    MergeSummaries,
    SummarizeOldest,
    SummarizeToolCalls,
    ViewState,
    refusal_reason,
)
from newton.dialogue.messages import Message, StoredMessage
from newton.dialogue.view import CompactionEntry, build_view, count_view_tokens, outermost_entries, split_turns
from newton.providers import token_counter
from tests.support import examples
from tests.talks import Told, calls, gives, logs, placed, says, turn, worked

DEFAULT = PRESETS["default"].strategies


def talk(number: int, **sizes: int) -> list[Message]:
    return [line for n in range(number) for line in turn(n, **sizes)]


def sight(lines: Sequence[Message], most: int, *, pinned: frozenset[int] = frozenset()) -> ViewState:
    return ViewState(build_view(placed(lines), []), most, pinned)


def spans(blocks: Sequence[CompactionBlock]) -> list[tuple[int, int]]:
    return [(block.first, block.last) for block in blocks]


def test_outputs_are_masked_once_they_are_large_and_the_view_is_rather_full() -> None:
    lines = talk(8, work=1, words=60)
    whole = count_view_tokens(build_view(placed(lines), []))
    assert MaskOutputs().plan(sight(lines, int(whole / 0.59))) == ()
    blocks = MaskOutputs().plan(sight(lines, int(whole / 0.61)))
    assert spans(blocks) == [(n * 4 + 2, n * 4 + 2) for n in range(5)], "the outputs of all but the last three turns"
    assert {block.kind for block in blocks} == {"mask"}
    lines = talk(8, work=1, words=5)
    assert MaskOutputs().plan(sight(lines, 100)) == ()
    # for little a view is not masked
    # one huge recent message does not fire compaction every turn
    lines = [*talk(5, work=1, words=30), says("user", "long " * 20_000)]
    assert MaskOutputs().plan(sight(lines, 25_000)) == ()
    assert SummarizeOldest().plan(sight(lines, 25_000)) == ()


def test_work_with_tools_is_told_of_by_its_age() -> None:
    # S003-3, S003-7, S003-29N
    assert SummarizeToolCalls().plan(sight(talk(10), 100_000)) == ()
    blocks = SummarizeToolCalls().plan(sight(talk(11), 100_000))
    assert spans(blocks) == [(n * 6 + 1, n * 6 + 4) for n in range(6)], "it reaches half as far back as it waits"
    assert {block.kind for block in blocks} == {"tools"}
    # it goes by age and never by how full the view is
    for most in (1, 1_000, 10**9):
        assert spans(SummarizeToolCalls().plan(sight(talk(11), most))) == spans(
            SummarizeToolCalls().plan(sight(talk(11), 100_000))
        )


def test_work_waits_in_a_buffer_until_it_is_told_of_in_one_go() -> None:
    # S003-A ADR-0015: in turns of four messages, enter at 20 messages old, run at >= 10 buffered or any >= 40 old
    lines, ran, told = [line for n in range(24) for line in turn(n, work=1)], list[int](), Told([])
    for end in range(4, len(lines) + 1, 4):
        told.log = placed(lines[:end])
        made = told.run((SummarizeToolCalls(),), 100_000)
        buffered = sum(entry.last - entry.first + 1 for entry in made)
        assert not made or (buffered >= 10 and all(end - entry.first >= 20 for entry in made))
        ran += [end] if made else []
        alone = [item for item in told.view if item.kind == "line" and item.is_tool_work]
        assert all(end - item.first <= 44 for item in alone), "and none is left that is older than 40 and a turn"
    assert ran == [44, 68, 92], "every six turns"


def test_what_is_said_to_the_person_or_unanswered_is_no_work_with_tools() -> None:
    # S003-A ADR-0018: results, questions to the person and talk are never told of as work
    asks_back = [says("assistant", "Shall I go on?"), says("user", "Yes."), says("assistant", "All of it is done.")]
    log = Told(placed([line for n in range(14) for line in [*turn(n), *asks_back]]))
    assert log.run((SummarizeToolCalls(age=1), MaskOutputs(share=0, turns=1)), 1_000)
    shown_lines = {item.first for item in log.view if item.kind == "line"}
    spoken = [one.position for one in log.log if one.message.role != "tool" and not one.message.calls]
    assert set(spoken) <= shown_lines
    # a turn whose call is answered in a later one is not told of
    lines = [says("user", "Look."), calls("a", "b"), gives("a", "x " * 900), says("assistant", "Hm."), *talk(9)]
    for strategy in (SummarizeToolCalls(age=1), SummarizeOldest(recent=1)):
        late = [*lines, gives("b", "y")]
        assert all(block.first > 3 for block in strategy.plan(sight(late, 100)))
        assert strategy.plan(sight(lines, 100))[0].first <= 1, "what nobody has answered has ended"


def test_what_sessions_of_work_are_made_of_has_its_size() -> None:
    # S003-28: a 2,000-line file about 8,000 tokens, a pair of call and answer 500 to 2,000, a diff 1,000 to 5,000
    file = "\n".join(f"a {n}" for n in range(2_000))
    pair = placed(turn(0, work=1, words=90)[1:3], by=token_counter.count)
    diff = "\n".join(f"{'+-'[n % 2]}    value_{n} = {n}" for n in range(300))
    assert 6_000 <= token_counter.count(file) <= 10_000
    assert 500 <= sum(one.tokens for one in pair) <= 2_000
    assert 1_000 <= token_counter.count(diff) <= 5_000
    lines = [
        says("user", "Go."),
        calls("f"),
        gives("f", file),
        calls("d"),
        gives("d", diff),
        says("assistant", "Well."),
    ]
    told = Told(placed([*lines, *talk(12)], by=token_counter.count))
    before = told.tokens
    told.run(DEFAULT, 100_000)
    assert told.tokens < before - 0.9 * (token_counter.count(file) + token_counter.count(diff)), "300 tokens at most"


def test_a_full_view_is_told_down_to_half_and_the_recent_turns_are_spared() -> None:
    # S003-5, S003-6, S003-16
    lines = talk(20, work=0, reply=40)
    whole = count_view_tokens(build_view(placed(lines), []))
    assert SummarizeOldest().plan(sight(lines, int(whole / 0.79))) == ()
    most = int(whole / 0.81)
    blocks = SummarizeOldest().plan(sight(lines, most))
    assert spans(blocks) == [(n * 2, n * 2 + 1) for n in range(len(blocks))], "the oldest turns, one by one"
    left = whole - sum(block.tokens - block.max_tokens for block in blocks)
    assert left <= 0.5 * most < left + blocks[-1].tokens, "no more of them than needed"
    blocks = SummarizeOldest().plan(sight(talk(6, work=0, reply=200), 1_000))
    assert spans(blocks) == [(0, 1), (2, 3)]


def told(*kinds: str) -> Told:
    """Turns that are told of already in blocks of these kinds; "" is one that is not."""
    log = Told(placed([*talk(len(kinds)), *talk(25, work=0, reply=1)]))
    for n, kind in enumerate(kinds):
        first, last = (n * 6 + 1, n * 6 + 4) if kind == "tools" else (n * 6, n * 6 + 5)
        if kind:
            items = tuple(item for item in log.view if first <= item.first <= last)
            log.lay(CompactionBlock(kind, items, max_tokens=100))  # pyright: ignore[reportArgumentType]  # a kind
    return log


def test_turns_told_of_become_accounts_and_these_are_merged() -> None:
    # S003-7, S003-F4
    # a completed turn has at least one block
    assert not BatchTurns().plan(ViewState(told("tools", "turn").view, 1))
    (block,) = BatchTurns().plan(ViewState(told("tools", "turn", "turn").view, 1))
    assert (block.kind, block.first) == ("goals", 0) and block.last >= 17
    blocks = BatchTurns().plan(ViewState(told(*["tools"] * 14).view, 10**9))
    assert [block.first for block in blocks] == [0, 36], "at most six turns in one; the last two wait for more"
    log = told("tools", "turn", "turn")
    (block,) = BatchTurns(back=30).plan(ViewState(log.view, 1))
    assert block.last < log.view[-30].first
    # accounts are merged so that they stay bounded
    # summaries of summaries
    assert not MergeSummaries().plan(ViewState(told(*["goals"] * 5).view, 500))
    (block,) = MergeSummaries().plan(ViewState(told(*["goals"] * 6).view, 500))
    assert (block.kind, block.first, block.last, block.max_tokens) == ("merged", 0, 17, 50)


@pytest.mark.parametrize(("held", "keep"), [(1, 3), (3, 3), (1, 0), (2, 1)])
def test_a_merge_takes_two_accounts_at_least(held: int, keep: int) -> None:
    for many in range(1, 6):
        for block in MergeSummaries(held=held, keep=keep).plan(ViewState(told(*["goals"] * many).view, 10_000)):
            assert len(block.items) >= 2


# --- what no block may be, whichever strategy names it ---


def refusal(log: Told, first: int, last: int, kind: str = "turn") -> str | None:
    items = tuple(item for item in log.view if first <= item.first and item.last <= last)
    return refusal_reason(CompactionBlock(kind, items, max_tokens=10), ViewState(log.view, 1_000, log.pinned))  # pyright: ignore[reportArgumentType]  # a kind


def test_no_strategy_may_touch_system_messages_what_was_restored_or_several_outputs() -> None:
    log = Told(placed(talk(4)))
    assert refusal(log, 0, 5) is None
    assert refusal(log, 0, 11) is None
    assert refusal(log, 1, 4, "tools") is None
    assert refusal(log, 2, 2, "mask") is None
    # no strategy may touch a system message or what was restored
    lines = [says("system", "Rules."), *talk(3)]
    assert "system" in (refusal(Told(placed(lines)), 0, 0, "mask") or "")
    assert "system" in (refusal(Told(placed(lines)), 0, 6) or "")
    assert "restored" in (refusal(Told(placed(lines), pinned=frozenset({3})), 1, 6) or "")
    assert refusal(Told(placed(lines), pinned=frozenset({3})), 7, 12) is None
    log = Told(placed(talk(4)))
    refusals = {refusal(log, first, last, "mask") for first, last in ((0, 0), (1, 2), (5, 5))}
    assert refusals == {"it masks more than one tool output"}


@pytest.mark.parametrize(
    ("first", "last", "kind", "why"),
    [
        (0, 4, "turn", "splits a turn"),
        (1, 5, "turn", "splits a turn"),
        (5, 11, "turn", "splits a turn"),
        (1, 3, "tools", "call from its result"),
        (1, 4, "turn", "splits a turn"),
        (0, 5, "tools", "splits a turn"),
        (18, 23, "turn", "current turn"),
        (19, 22, "tools", "current turn"),
        (20, 20, "mask", "current turn"),
    ],
)
def test_no_strategy_may_cut_a_turn_or_a_pair_or_touch_the_current_one(
    first: int, last: int, kind: str, why: str
) -> None:
    assert why in (refusal(Told(placed(talk(4))), first, last, kind) or "")


def test_no_block_reaches_over_a_system_message() -> None:
    log = told("turn", "turn", "turn")
    lines = [one.message for one in log.log]
    log.log = placed([*lines[:12], says("system", "Rules."), *lines[12:]])
    log.entries = log.entries[:2]
    log.lay(CompactionBlock("turn", tuple(item for item in log.view if 13 <= item.first <= 18), max_tokens=100))
    assert BatchTurns().plan(ViewState(log.view, 1)) == []
    assert "system" in (refusal(log, 0, 11) or refusal(log, 0, 18) or "")
    turns_alone = tuple(item for item in log.view if item.first <= 18 and item.role != "system")
    block = CompactionBlock("goals", turns_alone, max_tokens=10)
    assert "system" in (refusal_reason(block, ViewState(log.view, 1_000)) or "")


# --- whatever the log and whatever the strategies ---

PARTS: dict[str, st.SearchStrategy[CompactionStrategy]] = {
    "mask": st.builds(
        MaskOutputs, share=st.floats(0, 1.2), turns=st.integers(0, 5), least=st.sampled_from([0, 1, 60, 200])
    ),
    "tools": st.builds(SummarizeToolCalls, age=st.integers(0, 12), most=st.sampled_from([1, 50, 300, 5_000])),
    "threshold": st.builds(
        SummarizeOldest,
        share=st.floats(0, 1.2),
        target=st.floats(0, 1),
        recent=st.integers(0, 6),
        most=st.sampled_from([1, 50, 400]),
    ),
    "batch": st.builds(
        BatchTurns,
        back=st.integers(0, 25),
        fewest=st.integers(0, 4),
        most_turns=st.integers(0, 8),
        most=st.sampled_from([1, 100, 700]),
    ),
    "merge": st.builds(MergeSummaries, held=st.integers(0, 7), keep=st.integers(0, 4), share=st.floats(0, 0.5)),
}
COMBINED = st.one_of(
    st.sampled_from([one.strategies for one in PRESETS.values()]), st.lists(st.one_of(*PARTS.values()), max_size=5)
)
LOGS = st.one_of(logs(most=60), worked(most=25))
MOST = st.sampled_from([1, 300, 1_500, 5_000, 20_000])


@given(LOGS, COMBINED, MOST, st.data())
@examples(48)
def test_compaction_keeps_to_its_bounds(
    log: list[StoredMessage], strategies: Sequence[CompactionStrategy], most: int, data: st.DataObject
) -> None:
    # S003-6, S003-11, S003-16; compaction lowers the token count; a restored message stays restored
    pinned = frozenset(data.draw(st.lists(st.integers(0, max(len(log) - 1, 0)), max_size=2)))
    story, told = Told(log, pinned=pinned), Told([], pinned=pinned)
    for end in sorted({len(log), *data.draw(st.lists(st.integers(0, len(log)), max_size=3))}):
        told.log = log[:end]
        before, shown_before = told.tokens, outermost_entries(told.entries)
        made = told.run(strategies, most)
        unharmed(told, made, story)
        assert told.tokens <= before - len(made), "each entry is shorter than what it stands for"
        in_place(shown_before, outermost_entries(told.entries))


def unharmed(told: Told, made: Sequence[CompactionEntry], story: Told) -> None:
    view, log = told.view, told.log
    assert [p for item in view for p in range(item.first, item.last + 1)] == list(range(len(log))), "each line once"
    alone = {item.first: item for item in view if item.kind == "line"}
    held = split_turns(story.view[: len(log)])
    current = range(held[-1].first, len(log)) if held else range(0)
    known = [one for one in told.entries if one not in made and one.kind != "mask"]
    covered = {place for one in known for place in range(one.first, one.last + 1)}
    for place, one in enumerate(log):
        if one.message.role == "system" or place in current or place in told.pinned:
            assert alone[place].text == one.message.content
    for entry in made:
        inside = range(entry.first, entry.last + 1)
        if entry.kind == "mask":
            assert len(inside) == 1 and log[entry.first].message.role == "tool"
            continue
        for first, last in pairs(log):
            late = first in covered and last not in covered  # nobody had answered it when it was told of
            assert late or (first in inside) == (last in inside), "a call and its answer are never split"
        cut = [one for one in held if {*range(one.first, one.last + 1)} & {*inside}]
        if entry.kind == "tools":
            assert len(cut) == 1
        else:
            assert (cut[0].first, cut[-1].last) == (entry.first, entry.last), "no block crosses part of a turn"


def pairs(log: Sequence[StoredMessage]) -> list[tuple[int, int]]:
    """The places of each call and its answer."""
    open_: dict[str, int] = {}
    found: list[tuple[int, int]] = []
    for one in log:
        if one.message.tool_call_id in open_:
            found.append((open_.pop(one.message.tool_call_id), one.position))
        open_ |= {call.id: one.position for call in one.message.calls}
    return found


def in_place(before: Sequence[CompactionEntry], after: Sequence[CompactionEntry]) -> None:
    """What was shown is shown still, or is told of as a whole."""
    for entry in before:
        assert any(
            one == entry or (one.first <= entry.first and entry.last <= one.last and one.made_at > entry.made_at)
            for one in after
        ), "a second compaction keeps the first block in place"


@pytest.mark.parametrize("kind", PARTS)
@given(log=worked(most=25), data=st.data(), most=MOST)
@examples(16)
def test_compaction_comes_to_an_end(kind: str, log: list[StoredMessage], data: st.DataObject, most: int) -> None:
    # a floor above the threshold ends; a watermark makes a second run a no-op
    strategies = data.draw(st.lists(PARTS[kind], min_size=1, max_size=2))
    told = Told(log)
    if kind in ("batch", "merge"):
        told.run((SummarizeToolCalls(age=1), SummarizeOldest(share=0, target=0, recent=1, most=100)), most)
    if kind == "merge":
        told.run((BatchTurns(back=0, fewest=1, most_turns=1),), most)
    runs = 0
    while told.run(strategies, most):
        runs += 1
        assert runs < 12
    assert told.plans(strategies, most) == [], "what comes out no shorter is not tried again at every turn"


@pytest.mark.parametrize("name", PRESETS)
@given(log=LOGS, most=MOST)
@examples(10)
def test_with_a_preset_a_second_run_right_after_the_first_plans_nothing(
    name: str, log: list[StoredMessage], most: int
) -> None:
    told = Told(log)
    told.run(PRESETS[name].strategies, most)
    assert told.plans(PRESETS[name].strategies, most) == []


def test_it_does_not_run_at_every_turn() -> None:
    # S003-29N; one huge recent message does not fire compaction every turn
    lines = [*talk(12), says("user", "Read this: " + "word " * 6_000), *talk(40)]
    told, ran = Told([]), Counter[bool]()
    for end in (n for n, line in enumerate(lines) if line.role == "user"):
        told.log = placed(lines)[:end]
        ran[bool(told.run(DEFAULT, 8_000))] += 1
    assert ran[True] <= sum(ran.values()) / 3


@pytest.mark.slow
def test_a_conversation_stays_below_its_bound_for_ever() -> None:
    # S003-7: without the batch a floor of blocks grows until nothing helps
    lines, most, told, bare = talk(100), 6_000, Told([]), Told([])
    for end in range(0, len(lines), 6):
        told.log = bare.log = placed(lines[: end + 6])
        told.run(DEFAULT, most)
        bare.run((SummarizeToolCalls(), SummarizeOldest()), most)
        assert told.tokens < most
    assert bare.tokens > most
    kinds = Counter(item.kind for item in told.view)
    assert kinds["merged"] == 1 and kinds["goals"] <= 6
