"""Selection of the messages of a conversation that one kind of turn sends. Pure."""

from collections.abc import Iterable

from newton.agent.prompt_records.spans import SEPARATOR
from newton.dialogue.view import MESSAGE_TOKENS, ViewMessage
from newton.memory.memory import TokenCounter


def select_dialogue(
    view: Iterable[ViewMessage], *, keeps_work: bool = False, count_tokens: TokenCounter
) -> list[ViewMessage]:
    """Return the messages of the user and the assistant that have text, as a model is sent them.

    Tool calls that the caller ran, their quarantined outputs and system messages are dropped. With `keeps_work`, the
    calls that Newton ran and their results stay where they were sent.
    """
    return [
        item._replace(calls=(), tokens=count_tokens(item.text) + MESSAGE_TOKENS)
        if item.calls and not item.is_own_work
        else item
        for item in select_for_caller(view, keeps_work=keeps_work, count_tokens=count_tokens)
        if item.is_own_work or (item.role in ("user", "assistant") and item.text)
    ]


def select_for_caller(
    view: Iterable[ViewMessage], *, keeps_work: bool = False, count_tokens: TokenCounter
) -> list[ViewMessage]:
    """Return the messages of a session for an API caller: without system messages and calls that Newton ran.

    A reply is kept without the texts before such calls, which were sent with the calls. With `keeps_work`, the calls
    stay.
    """
    kept: list[ViewMessage] = []
    sent_before = ""
    for item in view:
        if item.role == "system" or not (item.text or item.calls) or (item.is_own_work and not keeps_work):
            continue
        if item.is_own_work:
            sent_before += f"{item.text}{SEPARATOR}" if item.calls and item.text else ""
        elif item.is_input:
            sent_before = ""
        elif item.role == "assistant" and sent_before and item.text.startswith(sent_before):
            rest = item._replace(
                text=item.text.removeprefix(sent_before), tokens=item.tokens - count_tokens(sent_before)
            )
            kept.append(rest)
            continue
        kept.append(item)
    return kept
