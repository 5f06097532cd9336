"""Contexts of plain rankings: the messages in order of rank, as far as they fit the maximum of tokens. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from bench.dataset import DatasetMessage
from newton.memory.memory import TokenCounter
from newton.memory.representations import make_short_forms, one_line, to_bullet

# whole messages, or with a long message in the short form in which Newton shows it
MessageForm: TypeAlias = Literal["whole", "short"]
MESSAGE_FORMS: tuple[MessageForm, ...] = ("whole", "short")


@dataclass(frozen=True, slots=True)
class RankedLine:
    """A message as a line of a context. `detail` is "summary": the least that counts for a long message."""

    refs: tuple[str, ...]
    text: str
    tokens: int
    detail: str = "summary"


def render_messages(
    messages: Sequence[DatasetMessage], form: MessageForm, *, count_tokens: TokenCounter
) -> list[RankedLine]:
    """Return each message as a line with its date and speaker."""

    def shorten(message: DatasetMessage) -> str:
        return make_short_forms(message.content, count_tokens=count_tokens, prefix=message.prefix).summary

    texts = [shorten(message) if form == "short" else _whole(message) for message in messages]
    return [
        RankedLine((message.ref,), text, count_tokens(to_bullet(text)))
        for message, text in zip(messages, texts, strict=True)
    ]


def _whole(message: DatasetMessage) -> str:
    return message.prefix + one_line(message.content)


def fill_context(lines: Sequence[RankedLine], ranking: Iterable[int], budget: int) -> list[RankedLine]:
    """Return the lines in order of rank. A line that does not fit is skipped, so that later ones may fill the rest."""
    chosen, used = list[RankedLine](), 0
    for number in ranking:
        if used + lines[number].tokens <= budget:
            chosen.append(lines[number])
            used += lines[number].tokens
    return chosen


def join_lines(lines: Iterable[RankedLine]) -> str:
    """Return the text of the context."""
    return "".join(to_bullet(line.text) for line in lines)
