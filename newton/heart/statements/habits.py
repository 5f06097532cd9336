"""Detection of statements on what recurs, and of statements on a single event, which change no habit. Pure."""

import re

_DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_MONTH = "(?:january|february|march|april|may|june|july|august|september|october|november|december)"
_RECURRENCES = (
    r"\b(?:every|each) \w+",
    rf"\b(?:on |at )?(?:{_DAY}s|weekends|weekdays)\b",
    r"\b(?:once|twice|\w+ times) (?:an?|per|every) \w+",
    r"\b(?:daily|weekly|monthly|yearly|hourly|nightly|quarterly|usually|always)\b",
)
_SINGLE_TIMES = (
    rf"\bon (?:the )?\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH}\b",
    rf"\bon {_MONTH} \d",
    rf"\bin {_MONTH}\b",
    rf"\bon {_DAY}(?: \w+)?\b",
    rf"\b(?:last|this) (?:{_DAY}|night|week|weekend|month|year|spring|summer|autumn|winter)\b",
    r"\byesterday\b",
    r"\b\w+ ago\b",
)
# What ends or replaces a habit, though it may be said with a date.
_CHANGES = (
    r"no longer|any ?more|instead|now|new|from \w+(?: \w+)? on|since|until|as of|starting|set to|turn(?:s|ed) out|will",
    r"mov(?:ed?|ing)|chang\w+|replac\w+|switch\w+|migrat\w+|upgraded|shift\w*|reschedul\w*|postpon\w*|decided|agreed",
    r"stopp?\w*|quit|g[ai]ven? up|cancel\w*|end(?:ed|s)|abolish\w*|scrap\w*|discontinu\w*",
    r"clos(?:ed|es) down|sold|retired|died",
    r"increas\w+|reduc\w+|extend\w*|shorten\w*|raised|lowered",
)
_RECURRENCE = re.compile("|".join(_RECURRENCES), re.IGNORECASE)
_SINGLE_TIME = re.compile("|".join(_SINGLE_TIMES), re.IGNORECASE)
_CHANGE = re.compile(rf"\b(?:{'|'.join(_CHANGES)})\b", re.IGNORECASE)


def is_single_event(older: str, newer: str) -> bool:
    """Return whether the newer statement tells of a single event, which leaves the habit that the older one states.

    >>> habit = "The lift is serviced every six months."
    >>> [is_single_event(habit, one) for one in ("On Monday the lift got stuck.", "The lift is now serviced each May.")]
    [True, False]
    """
    if not _RECURRENCE.search(older) or _RECURRENCE.search(newer):
        return False
    return _SINGLE_TIME.search(newer) is not None and _CHANGE.search(newer) is None
