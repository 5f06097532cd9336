"""What an input tells beside its meaning: keywords, what it is for, whom it names, the times it speaks of. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from newton.cognition.cues import GRAMMAR
from newton.cognition.opening import is_courtesy
from newton.cognition.spans import Span, spans
from newton.heart.naming import Index

Intent = Literal["question", "action", "fix", "explain", "other"]

MOST_KEYWORDS = 20

# The types of events that may help with each intent, the most telling first.
RELEVANT: Mapping[Intent, tuple[str, ...]] = {
    "fix": ("error", "shell_exec", "file_write"),
    "explain": ("file_read", "document_read", "message"),
    "question": ("message", "file_read", "search"),
    "action": ("file_write", "shell_exec", "file_read"),
    "other": (),
}

_KEYWORD = re.compile(r"\w+(?:[.\-/:@]\w+)*")  # config.yaml, api/v2 and re-index stay whole
_FIX = re.compile(r"\b(?:fix(?:e[sd]|ing)?|errors?|bugs?)\b", re.IGNORECASE)
_EXPLAIN = re.compile(r"\b(?:explain(?:s|ed|ing)?|how (?:does|do|did)|what(?: is| are|'s|’s))\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """What was read from an input: `entities` are those it names, `times` are read as at its moment."""

    keywords: tuple[str, ...]
    intent: Intent
    events: tuple[str, ...]
    entities: tuple[UUID, ...]
    times: tuple[Span, ...]


def read(text: str, *, now: datetime, known: Index | None = None, types: Sequence[str] = ()) -> Signals:
    """The signals of a text. `known` are the entities there are, `types` those of events that a pack counts besides."""
    purpose = intent(text)
    return Signals(
        keywords=keywords(text),
        intent=purpose,
        events=relevant_events(purpose, types),
        entities=tuple(known.mentioned(text)) if known else (),
        times=tuple(spans(text, now=now)),
    )


def keywords(text: str) -> tuple[str, ...]:
    """The words that say what it is about, in lower case and in their order, each once.

    >>> keywords("Why does the build of api/v2 fail in the build?")
    ('build', 'api/v2', 'fail')
    """
    words = (word.lower() for word in _KEYWORD.findall(text.replace("’", "'")))
    return tuple(dict.fromkeys(word for word in words if len(word) > 1 and word not in GRAMMAR))[:MOST_KEYWORDS]


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
