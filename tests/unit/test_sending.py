"""What a model is sent: each answer right behind its call, and never more than there is room for."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from newton.agent.sending import messages, spoken
from newton.dialogue.compaction.fitting import fitted
from newton.dialogue.lines import Placed
from newton.dialogue.view import Injected, shown
from newton.providers.chat import ChatMessage
from tests.support import count
from tests.talks import calls, gives, logs, placed, says


def readable(sent: Sequence[ChatMessage]) -> bool:
    """Whether a model reads it: calls and answers match, and nothing stands between them."""
    open_: set[str] = set()
    for one in sent:
        if one.role == "tool":
            if one.answers not in open_:
                return False
            open_.discard(one.answers or "")
        elif open_:
            return False
        open_ |= {call.id for call in one.calls}
    return not open_


@given(log=st.one_of(logs(), logs(reused=True)), most=st.integers(0, 2_000), place=st.integers(0, 40))
def test_whatever_is_in_a_view_a_model_can_read_it(log: list[Placed], most: int, place: int) -> None:
    view = shown(log, [], [Injected(place, "[From other]", 3)])
    assert readable(messages(view))
    assert readable(messages(fitted(view, most=most, count=count)))
    assert "tool" not in {one.role for one in messages(spoken(view, count=count))}
    assert not any(one.calls for one in messages(spoken(view, count=count)))


def test_what_was_said_while_a_tool_worked_stands_behind_its_answer() -> None:
    lines = [says("user", "Look."), calls("a", "b"), says("user", "Faster!"), gives("b", "y"), gives("a", "x")]
    sent = messages(shown(placed(lines), []))
    assert [(one.role, one.text) for one in sent] == [
        ("user", "Look."),
        ("assistant", ""),
        ("tool", "y"),
        ("tool", "x"),
        ("user", "Faster!"),
    ]


def test_a_call_that_nobody_answered_is_left_out_and_a_lost_answer_is_a_report() -> None:
    lines = [gives("gone", "x"), calls("a", "b", text="I look."), gives("b", "y"), calls("open"), says("user", "So?")]
    sent = messages(shown(placed(lines), []))
    assert [(one.role, one.text, [call.id for call in one.calls]) for one in sent] == [
        ("user", "[read_file]\nx", []),
        ("assistant", "I look.", ["b"]),
        ("tool", "y", []),
        ("user", "So?", []),
    ]


def test_messages_of_one_role_in_a_row_become_one() -> None:
    lines = [says("user", "One."), says("user", "Two."), says("assistant", "A."), calls("a"), gives("a", "x")]
    sent = messages(shown(placed(lines), []))
    assert [(one.role, one.text) for one in sent] == [("user", "One.\n\nTwo."), ("assistant", "A."), ("tool", "x")]
    assert [call.id for call in sent[1].calls] == ["a"]
