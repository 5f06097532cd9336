"""Attribution of what a message says: to the user, a named participant, or a speaker of a pasted chat. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from newton.dialogue.message_queues import EpisodeMessage
from newton.heart.identity.standing_wishes import MAX_MESSAGE_CHARACTERS
from newton.memory.memory import lowest_trust
from newton.text.chat_lines import divide_message, is_same_name


def needs_names(messages: Sequence[EpisodeMessage]) -> bool:
    """Return whether it depends on the names of the user who says something in the messages."""
    return any(one.role == "user" and (one.name or divide_message(one.content).spoken) for one in messages)


def attribute_lines(messages: Sequence[EpisodeMessage], user_names: Sequence[str]) -> tuple[EpisodeMessage, ...]:
    """Return the messages, those with a pasted chat in parts: the own text, then each line with its speaker.

    What the user says has no name if several speak. What others say counts as reported: it never displaces what the
    user said. The only speaker that the agent hears is the user, unless the user is known by another name.
    """
    return tuple(part for message in messages for part in _divide(message, user_names))


def _divide(message: EpisodeMessage, user_names: Sequence[str]) -> Iterator[EpisodeMessage]:
    if message.role != "user":
        yield message
        return
    own, spoken = divide_message(message.content)
    is_user = not message.name or is_same_name(message.name, user_names)
    if is_user or not (message.is_group or user_names):
        message = replace(message, name=None) if message.is_group or user_names else message
    else:
        message = _report(message, message.name or "")
    if own.strip():
        is_short = len(message.content) <= MAX_MESSAGE_CHARACTERS  # its form then shows what is own
        yield (message if is_short else replace(message, content=own.strip()))
    for line in spoken:
        if line.name == "" or (line.name and is_same_name(line.name, [*user_names, *filter(None, [message.name])])):
            yield replace(message, content=line.text)
        elif line.name:
            yield _report(replace(message, content=line.text), line.name)


def _report(message: EpisodeMessage, name: str) -> EpisodeMessage:
    return replace(message, name=name, is_reported=True, trust=lowest_trust([message.trust, "agent"]))
