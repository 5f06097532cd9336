"""How a model's window is shared out among the answer, the context and the conversation. Pure."""

from typing import NamedTuple

REPLY_RESERVE = 16_000  # tokens that a large window keeps for the answer
REPLY_DIVISOR = 8  # a small one keeps this part of it
CONVERSATION_SHARE = 0.8  # of what is usable; the rest is for the context


class WindowShares(NamedTuple):
    """Tokens of one call as this model counts them: what may go in, and how much of that is whose at most."""

    usable: int
    conversation: int
    context: int


def split_window(window: int, *, reply: int, conversation: int, context: int) -> WindowShares:
    """Shares out a window. `reply`, `conversation` and `context` are the most that each may have.

    >>> split_window(128_000, reply=1_000, conversation=100_000, context=8_000)
    WindowShares(usable=112000, conversation=89600, context=8000)
    >>> split_window(8_000, reply=500, conversation=100_000, context=8_000)
    WindowShares(usable=7000, conversation=5600, context=1400)
    """
    usable = max(window - max(reply, min(REPLY_RESERVE, window // REPLY_DIVISOR)), 0)
    talk = min(conversation, int(usable * CONVERSATION_SHARE))
    return WindowShares(usable, talk, min(context, usable - talk))
