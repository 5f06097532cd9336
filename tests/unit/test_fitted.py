"""What is sent is never above its ceiling, whatever is in the view, and a model can read it."""

from collections.abc import Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from newton.dialogue.compaction.fitting import fitted
from newton.dialogue.lines import Placed
from newton.dialogue.view import Injected, Shown, cost, shown
from newton.memory.representations import Count
from newton.providers import tokens
from tests.support import count
from tests.talks import Told, calls, gives, logs, placed, says, turn, worked
from tests.unit.test_strategies import DEFAULT

TURNS = placed([says("system", "Keep to the rules."), *[line for n in range(6) for line in turn(n, words=80)]])


def plain(text: str) -> int:
    """A tokenizer to which nothing costs nothing."""
    return (len(text) + 2) // 3


COUNTS = [count, plain, tokens.count]


def unmatched(view: Sequence[Shown]) -> tuple[set[str], set[str]]:
    """The calls without an answer, and the answers without a call before them."""
    open_: set[str] = set()
    lost: set[str] = set()
    for item in view:
        if item.role == "tool" and item.answers:
            if item.answers in open_:
                open_.discard(item.answers)
            else:
                lost.add(item.answers)
        open_ |= {call.id for call in item.calls}
    return open_, lost


@given(
    log=st.one_of(logs(most=40), logs(most=40, reused=True), worked(most=8)),
    most=st.one_of(st.integers(0, 60), st.integers(0, 3_000)),
    by=st.sampled_from(COUNTS),
    spared=st.integers(0, 3),
    compacted=st.booleans(),
)
@settings(max_examples=100)
@example(log=placed([says("user", "")] * 30), most=0, by=plain, spared=0, compacted=False)
@example(log=placed([says("system", "a" * 500)] * 3), most=100, by=count, spared=1, compacted=False)
def test_no_view_is_above_its_ceiling(log: list[Placed], most: int, by: Count, spared: int, *, compacted: bool) -> None:
    told = Told(placed([one.line for one in log], by=by))
    if compacted:
        told.run(DEFAULT, 2_000)
    view = shown(
        told.log, told.entries, [Injected(len(log) // 2, "[From other]\nUser: x", by("[From other]\nUser: x"))]
    )
    sent = fitted(view, most=most, count=by, spared=spared)
    assert cost(sent) <= most
    for item in sent:
        worded = by(item.text) if item.text else 0
        assert item.tokens >= worded or item.kind != "line", "no message says less than it costs"
    assert unmatched(sent)[1] <= unmatched(view)[1], "no answer loses its call"
    assert unmatched(sent)[0] <= unmatched(view)[0], "no call loses its answer"
    said = [item.first for item in sent if "not shown here" not in item.text]
    assert said == sorted(said), "the order stays"
    if cost(view) <= most:
        assert sent == view


def test_what_fits_is_sent_as_it_is() -> None:
    view = shown(TURNS, [])
    assert fitted(view, most=cost(view), count=count) == view


def test_outputs_go_first_and_the_oldest_of_them_first() -> None:
    view = shown(TURNS, [])
    sent = fitted(view, most=cost(view) - 300, count=count)
    left_out = [item.first for item in sent if item.text.startswith("[output left out")]
    assert left_out == [3], "one is enough"
    assert [i.first for i in sent] == [i.first for i in view]


def test_then_whole_turns_go_and_what_is_left_says_so() -> None:
    view = shown(TURNS, [])
    sent = fitted(view, most=1_000, count=count)
    assert sent[0].text == "Keep to the rules."
    assert sent[1].text.endswith("earlier turns are not shown here]") and sent[1].role == "user"
    assert [i.first for i in sent[2:]] == list(range(sent[1].last + 1, len(TURNS)))
    assert sent[2].role == "user", "a turn is there whole or not at all"


def test_system_messages_and_the_last_turn_stay_longest() -> None:
    sent = fitted(shown(TURNS, []), most=420, count=count)
    assert sent[0].text == "Keep to the rules."
    assert "Please look at part 5 of the importer." in {item.text for item in sent}


def test_a_huge_message_is_cut_in_its_middle() -> None:
    text = "\n".join(f"line {n} of the log" for n in range(10_000))
    sent = fitted(shown(placed([says("user", text)]), []), most=500, count=count)
    assert sent[0].text.startswith("line 0 of") and sent[0].text.endswith("line 9999 of the log")
    assert "left out" in sent[0].text and cost(sent) > 300


def test_a_call_that_goes_takes_its_own_answer_with_it_and_no_other() -> None:
    # some endpoints number calls from the beginning in each turn
    lines = [says("user", "a" * 900), calls("c0", arguments="x" * 900), gives("c0", "y"), says("user", "More.")]
    lines += [calls("c0"), gives("c0", "z"), says("assistant", "Done.")]
    sent = fitted(shown(placed(lines), []), most=80, count=count, spared=2)
    assert unmatched(sent) == (set(), set())
    assert "z" in {item.text for item in sent}


def test_a_turn_that_was_cut_by_a_persons_words_goes_with_its_answer() -> None:
    lines = [says("user", "a" * 900), calls("c0"), says("user", "Faster!"), gives("c0", "y"), says("assistant", "Yes.")]
    sent = fitted(shown(placed(lines), []), most=60, count=count)
    assert unmatched(sent) == (set(), set())


@pytest.mark.parametrize("most", [0, 1, 3, 4, 5, 8])
def test_where_there_is_no_room_at_all_nothing_is_sent(most: int) -> None:
    assert cost(fitted(shown(TURNS, []), most=most, count=count)) <= most
