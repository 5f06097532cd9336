"""Detect texts that only ask, or only summarize questions; the answers are in other memories. Pure."""

import re

_QUESTION = re.compile(r"[^.!?…]+\?\W*")
_SESSION_SUMMARY = re.compile(r" talked, \d+ lines\. (.+)")  # the template of `session_close.to_episode`
_SENTENCE = re.compile(r"(?<=[.!?])\s+")


def is_only_question(text: str) -> bool:
    """Return whether the text is a single question.

    >>> is_only_question("Where are the keys?"), is_only_question("Where are the keys? I lost them.")
    (True, False)
    """
    return _QUESTION.fullmatch(text) is not None


def has_only_questions(summary: str) -> bool:
    """Return whether the summary of a session contains nothing but questions.

    >>> has_only_questions("Who?: Ana talked, 4 lines. They came back to this: Where is it? It ended with Ana: Who?")
    True
    """
    found = _SESSION_SUMMARY.search(summary)
    # a truncated sentence counts as a question
    return found is not None and all(s.rstrip("\"')]”’ ").endswith(("?", "…")) for s in _SENTENCE.split(found[1]))


def summarizes_session_starting_with(summary: str, text: str) -> bool:
    """Return whether this is the summary of a session whose first message is `text`.

    >>> summarizes_session_starting_with("Who left?: Ana talked, 4 lines. It ended with Ana: I do.", "who left?")
    True
    """
    return _SESSION_SUMMARY.search(summary) is not None and f"{text.casefold()}: " in summary.casefold()
