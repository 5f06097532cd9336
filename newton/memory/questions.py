"""Whether words only ask, or only tell of asking: what answers them stands elsewhere. Pure."""

import re

_ASKING = re.compile(r"[^.!?…]+\?\W*")
_ACCOUNT = re.compile(r" talked, \d+ lines\. (.+)")  # what a session came to, told without a model
_SENTENCE = re.compile(r"(?<=[.!?])\s+")


def only_asks(said: str) -> bool:
    """Whether it is one sentence that asks.

    >>> only_asks("Where are the keys?"), only_asks("Where are the keys? I lost them.")
    (True, False)
    """
    return _ASKING.fullmatch(said) is not None


def tells_of_asking(account: str) -> bool:
    """Whether a session came to nothing but questions.

    >>> tells_of_asking("Who?: Ana talked, 4 lines. They came back to this: Where is it? It ended with Ana: Who?")
    True
    """
    told = _ACCOUNT.search(account)
    # what is cut off has not said anything else yet
    return told is not None and all(s.rstrip("\"')]”’ ").endswith(("?", "…")) for s in _SENTENCE.split(told[1]))


def began_with(account: str, said: str) -> bool:
    """Whether it is the account of a session that these words began.

    >>> began_with("Who left?: Ana talked, 4 lines. It ended with Ana: I do.", "who left?")
    True
    """
    return _ACCOUNT.search(account) is not None and f"{said.casefold()}: " in account.casefold()
