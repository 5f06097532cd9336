"""Division of a model's context window between the reply, the context and the conversation. Pure."""

from typing import NamedTuple

REPLY_RESERVE = 16_000  # tokens of a large window reserved for the answer
REPLY_DIVISOR = 8  # a small window reserves this fraction
CONVERSATION_SHARE = 0.8  # of the usable tokens; the rest is for the context


class WindowShares(NamedTuple):
    """Maximum tokens of a model call: `usable` for the whole input, and its parts conversation and context."""

    usable: int
    conversation: int
    context: int


def split_window(window: int, *, reply: int, conversation: int, context: int) -> WindowShares:
    """Divide a model's context window between its reply, the conversation and the context from memory.

    All numbers are tokens. The reply keeps at least `reply`, and at least the smaller of 16,000 and an eighth of the
    window. The conversation gets at most `conversation` and at most 80 % of the rest; the context gets at most
    `context` of what then remains.

    >>> split_window(128_000, reply=1_000, conversation=100_000, context=8_000)
    WindowShares(usable=112000, conversation=89600, context=8000)
    >>> split_window(8_000, reply=500, conversation=100_000, context=8_000)
    WindowShares(usable=7000, conversation=5600, context=1400)
    """
    usable = max(window - max(reply, min(REPLY_RESERVE, window // REPLY_DIVISOR)), 0)
    talk_tokens = min(conversation, int(usable * CONVERSATION_SHARE))
    return WindowShares(usable, talk_tokens, min(context, usable - talk_tokens))
