"""Division of a model's context window between the reply, the context and the conversation. Pure."""

from typing import NamedTuple

REPLY_RESERVE = 16_000  # tokens of a large window reserved for the answer
REPLY_DIVISOR = 8  # a small window reserves this fraction
MIN_CONVERSATION_SHARE = 0.8  # of the usable tokens; the context gets at most the rest


class WindowShares(NamedTuple):
    """Maximum tokens of a model call: `usable` for the whole input, and its parts conversation and context."""

    usable: int
    conversation: int
    context: int


def split_window(window: int, *, reply: int, conversation: int, context: int) -> WindowShares:
    """Divide a model's context window between its reply, the conversation and the context from memory.

    All numbers are tokens. The reply keeps at least `reply`, and at least the smaller of 16,000 and an eighth of the
    window. The context gets at most `context` and at most 20 % of the rest; the conversation gets at most
    `conversation` of what then remains.

    >>> split_window(128_000, reply=1_000, conversation=100_000, context=8_000)
    WindowShares(usable=112000, conversation=100000, context=8000)
    >>> split_window(8_000, reply=500, conversation=100_000, context=8_000)
    WindowShares(usable=7000, conversation=5600, context=1400)
    """
    usable = max(window - max(reply, min(REPLY_RESERVE, window // REPLY_DIVISOR)), 0)
    context_limit = min(context, usable - int(usable * MIN_CONVERSATION_SHARE))
    conversation_limit = min(conversation, usable - context_limit)
    return WindowShares(usable, conversation_limit, min(context, usable - conversation_limit))
