"""What an input is for, which events may help with that, and the times that it asks for. Pure."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal

from newton.cognition.opening import is_courtesy
from newton.cognition.refresh import BRIEF, own_words
from newton.memory.spans import Span, spans, without

Intent = Literal["question", "action", "fix", "explain", "other"]

# The types of events that may help with each intent, the most telling first.
RELEVANT: Mapping[Intent, tuple[str, ...]] = {
    "fix": ("error", "shell_exec", "file_write"),
    "explain": ("file_read", "document_read", "message"),
    "question": ("message", "file_read", "search"),
    "action": ("file_write", "shell_exec", "file_read"),
    "other": (),
}

# What people do at any time, and call what they did.
_EVER_DONE = own_words(
    "agree agreed agreement appointment arrange choose chose choice conclude conclusion decide decision discuss"
    " discussion do event learn learnt meet meeting met plan planned say schedule scheduled settle speak spoke talk"
    " talked work worked write wrote"
)
_FIX = re.compile(r"\b(?:fix(?:e[sd]|ing)?|errors?|bugs?)\b", re.IGNORECASE)
_EXPLAIN = re.compile(r"\b(?:explain(?:s|ed|ing)?|how (?:does|do|did)|what(?: is| are|'s|’s))\b", re.IGNORECASE)


def intent(text: str) -> Intent:
    """What the text is for, by the first rule that holds, on whole words: 'prefix' and 'debug' are no fix.

    >>> [intent(text) for text in ("Fix the bug", "How does it work?", "Who is Ana?", "Sort the prefixes", "Thanks!")]
    ['fix', 'explain', 'question', 'action', 'other']
    """
    if not re.search(r"\w", text) or is_courtesy(text):
        return "question" if "?" in text else "other"
    if _FIX.search(text):
        return "fix"
    if _EXPLAIN.search(text):
        return "explain"
    return "question" if "?" in text else "action"


def relevant_events(intent: Intent, types: Sequence[str] = ()) -> tuple[str, ...]:
    """The types of events that may help: the intent's, then those of a pack that belong to no other intent."""
    if intent == "other":
        return ()
    elsewhere = {each for purpose, listed in RELEVANT.items() if purpose != intent for each in listed}
    return tuple(dict.fromkeys((*RELEVANT[intent], *(each for each in types if each not in elsewhere))))


def times(text: str, *, now: datetime) -> tuple[Span, ...]:
    """The times that an input asks for, read as at `now`; a greeting asks for none.

    >>> now = datetime(2024, 5, 15)
    >>> [len(times(text, now=now)) for text in ("What broke yesterday?", "How are you today?", "What broke?")]
    [1, 0, 0]
    """
    found = tuple(spans(text, now=now))
    return () if found and is_courtesy(without(text, found)) else found


def only_asks_when(text: str, asked: Sequence[Span]) -> bool:
    """Whether beside the times that it asks for an input says so little that whatever is of them may be meant.

    >>> now = datetime(2024, 5, 15)
    >>> texts = "What did we decide last week?", "What did we decide about the cache last week?"
    >>> [only_asks_when(text, times(text, now=now)) for text in texts]
    [True, False]
    """
    return bool(asked) and len(own_words(without(text, asked))) <= BRIEF


def asks_for_all_of(text: str, asked: Sequence[Span]) -> bool:
    """Whether an input has no subject beside the times that it asks for, so that what is of others is no answer.

    >>> now = datetime(2024, 5, 15)
    >>> texts = "What did we decide last week?", "Where were the keys last week?"
    >>> [asks_for_all_of(text, times(text, now=now)) for text in texts]
    [True, False]
    """
    return bool(asked) and own_words(without(text, asked)) <= _EVER_DONE
