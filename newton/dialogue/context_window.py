"""Divide a model's context window between the answer, the context and the conversation. Pure."""

from typing import NamedTuple

REPLY_RESERVE = 16_000  # tokens of a large window reserved for the answer
REPLY_DIVISOR = 8  # a small window reserves this fraction
CONVERSATION_SHARE = 0.8  # of the usable tokens; the rest is for the context


class WindowShares(NamedTuple):
    """The maximum tokens of one call: of its whole input, and of two parts of it."""

    usable: int
    conversation: int
    context: int


def split_window(window: int, *, reply: int, conversation: int, context: int) -> WindowShares:
    """Divide the context window of a model between its reply, the conversation and the context from memory.

    All numbers are tokens. The reply keeps at least `reply`, and at least 16,000 or an eighth of the window, whichever
    is less. The conversation gets at most `conversation` and 80 % of the rest, the context at most `context` of what is
    left.

    >>> split_window(128_000, reply=1_000, conversation=100_000, context=8_000)
    WindowShares(usable=112000, conversation=89600, context=8000)
    >>> split_window(8_000, reply=500, conversation=100_000, context=8_000)
    WindowShares(usable=7000, conversation=5600, context=1400)
    """
    usable = max(window - max(reply, min(REPLY_RESERVE, window // REPLY_DIVISOR)), 0)
    talk_tokens = min(conversation, int(usable * CONVERSATION_SHARE))
    return WindowShares(usable, talk_tokens, min(context, usable - talk_tokens))
