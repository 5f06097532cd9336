"""What is sent is never above its ceiling, whatever is in the view, and a model can read it."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from newton.dialogue.compaction.strategies import CompactionBlock
from newton.dialogue.compaction.view_budget import MIN_INPUT_TOKENS, fit_to_budget
from newton.dialogue.messages import Message, StoredMessage
from newton.dialogue.view import MESSAGE_TOKENS, InjectedText, ViewMessage, build_view, count_view_tokens
from newton.memory.memory import TokenCounter
from newton.providers import token_counter
from tests.support import count, examples
from tests.talks import Told, calls, gives, logs, placed, says, turn, worked
from tests.unit.test_strategies import DEFAULT

TURNS = placed([says("system", "Keep to the rules."), *[line for n in range(6) for line in turn(n, words=80)]])


def plain(text: str) -> int:
    """A tokenizer to which nothing costs nothing."""
    return (len(text) + 2) // 3


COUNTS = [count, plain, token_counter.count]
GIVEN = ['{"path": "src/app.py"}', json.dumps({"text": "x = 1\n" * 2_000}), json.dumps([7] * 3_000), "no JSON " * 900]


@st.composite
def burdened(draw: st.DrawFn) -> list[StoredMessage]:
    """A log of which some calls give very much to their tools."""
    log = draw(st.one_of(logs(), logs(reused=True), worked(most=8)))
    lines = [one.message for one in log]
    for n, line in enumerate(lines):
        if line.calls:
            given = draw(st.sampled_from(GIVEN))
            lines[n] = replace(line, calls=tuple(call._replace(arguments=given) for call in line.calls))
    return placed(lines)


def unmatched(view: Sequence[ViewMessage]) -> tuple[set[str], set[str]]:
    """The calls without an answer, and the answers without a call before them."""
    open_: set[str] = set()
    lost: set[str] = set()
    for item in view:
        if item.role == "tool" and item.tool_call_id:
            if item.tool_call_id in open_:
                open_.discard(item.tool_call_id)
            else:
                lost.add(item.tool_call_id)
        open_ |= {call.id for call in item.calls}
    return open_, lost


def shown_with(log: list[StoredMessage], by: TokenCounter, *, compacted: bool) -> list[ViewMessage]:
    told = Told(placed([one.message for one in log], by=by))
    if compacted:
        told.run(DEFAULT, 2_000)
    aside = "[From other]\nUser: x"
    return build_view(told.log, told.entries, [InjectedText(len(log) // 2, aside, by(aside))])


def asked(view: Sequence[ViewMessage]) -> ViewMessage | None:
    return next((item for item in reversed(view) if item.is_input), None)


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@given(
    log=st.one_of(logs(), logs(reused=True), worked(most=8), burdened()),
    most=st.one_of(st.integers(0, 60), st.integers(0, 3_000)),
    by=st.sampled_from(COUNTS),
    spared=st.integers(0, 3),
    compacted=st.booleans(),
)
@examples(40)
@example(log=placed([says("user", "")] * 30), most=0, by=plain, spared=0, compacted=False)
@example(log=placed([says("system", "a" * 500)] * 3), most=100, by=count, spared=1, compacted=False)
@example(log=placed([says("user", "Go."), calls("c", arguments=GIVEN[1])]), most=90, by=count, spared=1, compacted=True)
def test_no_view_is_above_its_ceiling(
    log: list[StoredMessage], most: int, by: TokenCounter, spared: int, *, compacted: bool
) -> None:
    # S003-16, S003-19
    view = shown_with(log, by, compacted=compacted)
    sent = fit_to_budget(view, max_tokens=most, count_tokens=by, protected_turns=spared)
    person = asked(view) if spared else None
    assert count_view_tokens(sent) <= (max(most, MIN_INPUT_TOKENS) if person else most)
    if person:
        assert person.first in {item.first for item in sent if item.is_input}, "the input stays to the last"
    if person and person.text and most >= MIN_INPUT_TOKENS:
        assert any(item.text and item.text[0] == person.text[0] for item in sent if item.first == person.first)
    assert fit_to_budget(sent, max_tokens=most, count_tokens=by, protected_turns=spared) == sent, "twice is once"
    given = {call.id: call.arguments for item in view for call in item.calls}
    for call in (call for item in sent for call in item.calls):
        assert is_json(call.arguments) or call.arguments in given.values()
    for item in sent:
        worded = by(item.text) if item.text else 0
        assert item.tokens >= worded or item.kind != "line", "no message says less than it costs"
    assert unmatched(sent)[1] <= unmatched(view)[1], "no answer loses its call"
    assert unmatched(sent)[0] <= unmatched(view)[0], "no call loses its answer"
    said = [item.first for item in sent if item.kind != "left_out"]
    assert said == sorted(said), "the order stays"
    if count_view_tokens(view) <= most:
        assert sent == view


def test_outputs_go_first_then_whole_turns_and_the_last_stays_longest() -> None:
    view = build_view(TURNS, [])
    assert fit_to_budget(view, max_tokens=count_view_tokens(view), count_tokens=count) == view
    # outputs go first and the oldest of them first
    view = build_view(TURNS, [])
    sent = fit_to_budget(view, max_tokens=count_view_tokens(view) - 300, count_tokens=count)
    left_out = [item.first for item in sent if item.text.startswith("[output left out")]
    assert left_out == [3], "one is enough"
    assert [i.first for i in sent] == [i.first for i in view]
    # then whole turns go and what is left says so
    view = build_view(TURNS, [])
    sent = fit_to_budget(view, max_tokens=1_000, count_tokens=count)
    assert sent[0].text == "Keep to the rules."
    assert sent[1].text.endswith("earlier turns are not shown here]") and sent[1].role == "user"
    assert [i.first for i in sent[2:]] == list(range(sent[1].last + 1, len(TURNS)))
    assert sent[2].role == "user", "a turn is there whole or not at all"
    sent = fit_to_budget(build_view(TURNS, []), max_tokens=420, count_tokens=count)
    assert sent[0].text == "Keep to the rules."
    assert "Please look at part 5 of the importer." in {item.text for item in sent}
    # a huge message is cut in its middle
    text = "\n".join(f"line {n} of the log" for n in range(10_000))
    sent = fit_to_budget(build_view(placed([says("user", text)]), []), max_tokens=500, count_tokens=count)
    assert sent[0].text.startswith("line 0 of") and sent[0].text.endswith("line 9999 of the log")
    assert "left out" in sent[0].text and count_view_tokens(sent) > 300


def test_a_call_goes_with_its_own_answer() -> None:
    # S003-16
    # some endpoints number calls from the beginning in each turn
    lines = [says("user", "a" * 900), calls("c0", arguments="x" * 900), gives("c0", "y"), says("user", "More.")]
    lines += [calls("c0"), gives("c0", "z"), says("assistant", "Done.")]
    sent = fit_to_budget(build_view(placed(lines), []), max_tokens=80, count_tokens=count, protected_turns=2)
    assert unmatched(sent) == (set(), set())
    assert "z" in {item.text for item in sent}
    lines = [says("user", "a" * 900), calls("c0"), says("user", "Faster!"), gives("c0", "y"), says("assistant", "Yes.")]
    sent = fit_to_budget(build_view(placed(lines), []), max_tokens=60, count_tokens=count)
    assert unmatched(sent) == (set(), set())
    # a turn that a system s line cuts in two is one
    lines = [*turn(0), says("user", "Look."), says("system", "Be brief."), says("assistant", "I look. " * 200)]
    sent = fit_to_budget(build_view(placed(lines), []), max_tokens=150, count_tokens=count)
    assert [item.text for item in sent][:2] == ["Look.", "Be brief."]
    assert sent[2].text.startswith("I look.") and sent[2].kind == "mask"


@pytest.mark.parametrize("most", [0, 1, 3, 4, 5, 8])
def test_where_there_is_no_room_at_all_only_the_beginning_of_the_input_is_sent(most: int) -> None:
    assert fit_to_budget(build_view(TURNS, []), max_tokens=most, count_tokens=count, protected_turns=0) == []
    (item,) = fit_to_budget(build_view(TURNS, []), max_tokens=most, count_tokens=count)
    assert "Please look at part 5".startswith(item.text) and item.text and count_view_tokens([item]) <= MIN_INPUT_TOKENS


def big(marker: str, *, lines: int = 250) -> str:
    return "\n".join(f"{marker} line {n} says {n * n}" for n in range(lines))


@pytest.mark.parametrize("later", [[], [says("assistant", "Now the second.")]])
def test_what_a_tool_was_given_is_shown_in_short_and_its_input_stays(later: list[Message]) -> None:
    # S003-16: the current task; a file of twenty thousand tokens that is written, with what to keep to before it
    file = json.dumps({"path": "src/app.py", "content": "x = 1\n" * 14_000})
    lines = [says("user", "Write the big file. Never touch prod."), calls("w", arguments=file), gives("w", "written")]
    sent = fit_to_budget(build_view(placed([*lines, *later]), []), max_tokens=6_000, count_tokens=count)
    assert sent[0].text == "Write the big file. Never touch prod."
    assert [item.role for item in sent][1:3] == ["assistant", "tool"] and len(sent) == 3 + len(later)
    (call,) = sent[1].calls
    given = json.loads(call.arguments)
    assert given["path"] == "src/app.py" and "characters are left out" in given["content"]
    assert 2_000 < count_view_tokens(sent) <= 6_000, "as much of it as there is room for"


def test_calls_that_cannot_be_shown_in_short_go_and_the_input_is_cut_at_last() -> None:
    # S003-16
    ids = [f"call_{n}" for n in range(40)]
    lines = [says("user", "Please do all of it. " * 30), calls(*ids), *(gives(one, "done") for one in ids)]
    view = build_view(placed(lines), [])
    (item,) = fit_to_budget(view, max_tokens=200, count_tokens=count)
    assert item.text == view[0].text, "it fits beside nothing else"
    (item,) = fit_to_budget(view, max_tokens=60, count_tokens=count)
    assert item.text.startswith("Please do all") and count_view_tokens([item]) <= 60


def test_small_talk_goes_before_what_was_just_read() -> None:
    # S003-16: recent activity and the current task are there until nothing older is left
    old = [
        line for n in range(40) for line in (says("user", f"small talk {n} " * 9), says("assistant", "Indeed. " * 20))
    ]
    now = [says("user", "Which port?"), calls("a"), gives("a", big("older")), calls("b"), gives("b", big("newer"))]
    view = build_view(placed([*turn(0, words=200), *old, *now]), [])
    first = count_view_tokens([item for item in view if item.role == "tool"][:1]) // 2

    sent = fit_to_budget(view, max_tokens=count_view_tokens(view) - first, count_tokens=count)
    assert [item.kind for item in sent].count("mask") == 1 and sent[2].kind == "mask", "the oldest output first"
    sent = fit_to_budget(view, max_tokens=count_view_tokens(view) - 3_000, count_tokens=count)
    assert sent[-5:] == view[-5:], "then old turns"
    sent = fit_to_budget(view, max_tokens=count_view_tokens(view[-5:]) - 100, count_tokens=count)
    assert sent[0].kind == "left_out" and len(sent) == 6
    assert sent[3].text.startswith("[output left out"), "then what this turn read earlier"
    assert sent[5] == view[-1]
    sent = fit_to_budget(view, max_tokens=1_500, count_tokens=count)
    assert count_view_tokens(sent) > 1_300, "and of what was read last as much as there is room for"
    assert sent[-1].text.startswith("newer line 0 ") and sent[-1].text.endswith("newer line 249 says 62001")


@pytest.mark.parametrize("joint", [" ", "\n"])
def test_what_is_cut_keeps_its_beginning_and_its_end_and_fills_its_room(joint: str) -> None:
    # S003-16: an input may be one line, and what is asked stands at its end
    text = joint.join(["Here is the log.", *(f"step {n} is done;" for n in range(1_500)), "What went wrong?"])
    (item,) = fit_to_budget(build_view(placed([says("user", text)]), []), max_tokens=800, count_tokens=count)
    assert item.text.startswith("Here is the log.") and item.text.endswith("What went wrong?")
    assert count_view_tokens([item]) > 700


TOLD = re.compile(r"\[(?P<least>At least )?(?P<turns>\d+) earlier turns? (is|are) not shown here\]")


@given(
    log=st.one_of(logs(), worked(most=12)),
    most=st.integers(300, 3_000),
    part=st.floats(0.3, 1),
    spared=st.integers(0, 1),
)
def test_the_note_counts_the_turns_that_are_not_shown(
    log: list[StoredMessage], most: int, part: float, spared: int
) -> None:
    # S003-16, S003-26
    view = build_view(log, [])
    once = fit_to_budget(view, max_tokens=most, count_tokens=count, protected_turns=spared)
    twice = fit_to_budget(once, max_tokens=int(most * part), count_tokens=count, protected_turns=spared)
    for sent in (once, twice):
        notes = [item for item in sent if item.kind == "left_out"]
        left = sum(item.is_input for item in view) - sum(item.is_input for item in sent)
        if not left:
            assert not notes
        if notes:
            (note,) = notes
            found = TOLD.fullmatch(note.text)
            assert found and int(found["turns"]) == left and not found["least"]


def test_one_turn_and_several_turns_are_counted() -> None:
    # S003-26
    view = build_view(TURNS, [])
    one = fit_to_budget(view, max_tokens=count_view_tokens(view[7:]) - 1_000, count_tokens=count)
    texts = {
        fit_to_budget(view, max_tokens=most, count_tokens=count)[1].text
        for most in range(900, count_view_tokens(one), 10)
    }
    texts = {text for text in texts if "not shown" in text}
    assert "[1 earlier turn is not shown here]" in texts and "[2 earlier turns are not shown here]" in texts
    # an account of several turns counts as one at least
    told = Told(placed([line for n in range(30) for line in turn(n, words=80)]))
    told.lay(CompactionBlock("goals", tuple(told.view[:18]), max_tokens=300))
    sent = fit_to_budget(told.view, max_tokens=1_200, count_tokens=count)
    assert re.match(r"\[At least \d+ earlier turns are not shown here\]", sent[0].text)


@given(log=st.one_of(logs(), worked(most=8)), most=st.integers(MIN_INPUT_TOKENS + 20, 1_500), marks=st.integers(0, 30))
def test_the_marks_of_a_model_around_each_message_count(log: list[StoredMessage], most: int, marks: int) -> None:
    # S003-1, S003-19
    sent = fit_to_budget(build_view(log, []), max_tokens=most, count_tokens=count, overhead=marks)
    assert count_view_tokens(sent) + (marks - MESSAGE_TOKENS) * len(sent) <= most
