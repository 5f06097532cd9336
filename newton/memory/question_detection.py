"""Whether words only ask, or only tell of asking: what answers them stands elsewhere. Pure."""

import re

_QUESTION = re.compile(r"[^.!?…]+\?\W*")
_SESSION_SUMMARY = re.compile(r" talked, \d+ lines\. (.+)")  # what a session came to, told without a model
_SENTENCE = re.compile(r"(?<=[.!?])\s+")


def is_only_question(text: str) -> bool:
    """Whether it is one sentence that asks.

    >>> is_only_question("Where are the keys?"), is_only_question("Where are the keys? I lost them.")
    (True, False)
    """
    return _QUESTION.fullmatch(text) is not None


def has_only_questions(summary: str) -> bool:
    """Whether a session came to nothing but questions.

    >>> has_only_questions("Who?: Ana talked, 4 lines. They came back to this: Where is it? It ended with Ana: Who?")
    True
    """
    told = _SESSION_SUMMARY.search(summary)
    # what is cut off has not said anything else yet
    return told is not None and all(s.rstrip("\"')]”’ ").endswith(("?", "…")) for s in _SENTENCE.split(told[1]))


def summarizes_session_starting_with(summary: str, text: str) -> bool:
    """Whether it is the account of a session that these words began.

    >>> summarizes_session_starting_with("Who left?: Ana talked, 4 lines. It ended with Ana: I do.", "who left?")
    True
    """
    return _SESSION_SUMMARY.search(summary) is not None and f"{text.casefold()}: " in summary.casefold()
