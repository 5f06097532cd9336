"""Detect texts that only ask, or only summarize questions; the answers are in other memories. Pure."""

import re

_QUESTION = re.compile(r"[^.!?…]+\?\W*")
_SESSION_SUMMARY = re.compile(r" talked, \d+ lines\. (.+)")  # the template of `session_close.to_episode`
_SPLIT = re.compile(r"(?<=[.!?…])\s+|\n+")
_POLITE = r"\W*(?:(?:please|ok|okay|hey|hi|so|and|but)\W+)*(?:(?:can|could|will|would) you\W+)?(?:please\W+)?"
_EXPLANATION_REQUEST = re.compile(
    _POLITE + r"(?:explain|describe|why\b(?! (?:don't|not\b))|what (?:happens|would happen|if)\b"
    r"|how (?:come|do|does|would|can|could)\b|(?:tell|show|remind) (?:me|us) (?:about|what|why|how|whether|if)\b"
    r"|i wonder\b)",
    re.IGNORECASE,
)
_ACTION_REQUEST = re.compile(
    r"\b(?:can|could|will|would|won't) you\b|\bplease\b|\bwhy (?:don't|not)\b|\bhow about\b"
    r"|,\s*(?:ok|okay|right|yes)\W*$",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+")


def is_only_question(text: str) -> bool:
    """Return whether the text is a single question.

    >>> is_only_question("Where are the keys?"), is_only_question("Where are the keys? I lost them.")
    (True, False)
    """
    return _QUESTION.fullmatch(text) is not None


def remove_questions(text: str) -> str:
    """Return the text without its questions and requests for an explanation. A request to act remains.

    >>> remove_questions("Why may I not delete the logs?"), remove_questions("Can you delete the logs?")
    ('', 'Can you delete the logs?')
    """
    return " ".join(sentence for sentence in _SPLIT.split(text) if not _is_question(sentence))


def _is_question(sentence: str) -> bool:
    if _EXPLANATION_REQUEST.match(sentence):
        return True
    is_request = _ACTION_REQUEST.search(sentence) is not None
    return sentence.rstrip("\"')]”’ ").endswith("?") and not is_request


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
