"""A window is shared out: an answer has its room, the context at most a fifth, the conversation what is left."""

from hypothesis import given
from hypothesis import strategies as st

from newton.dialogue.context_window import split_window

TOKENS = st.integers(0, 300_000)


@given(TOKENS, TOKENS, TOKENS, TOKENS)
def test_the_parts_never_come_to_more_than_the_window(window: int, reply: int, conversation: int, context: int) -> None:
    room = split_window(window, reply=reply, conversation=conversation, context=context)
    assert min(room) >= 0
    assert room.conversation <= conversation and room.context <= context
    assert room.conversation + room.context <= room.usable
    assert room.usable + reply <= window or room.usable == 0


def test_the_shipped_settings_leave_headroom_and_a_small_window_a_smaller_part_for_the_answer() -> None:
    # S003-13
    # at most 100,000 of 128,000
    room = split_window(128_000, reply=4_000, conversation=100_000, context=8_000)
    assert (room.usable, room.conversation, room.context) == (112_000, 100_000, 8_000)
    assert split_window(200_000, reply=4_000, conversation=100_000, context=8_000).conversation == 100_000
    assert split_window(8_000, reply=500, conversation=100_000, context=8_000).usable == 7_000
    assert split_window(8_000, reply=2_000, conversation=100_000, context=8_000).usable == 6_000
    assert split_window(1_000, reply=2_000, conversation=100, context=100) == (0, 0, 0)
