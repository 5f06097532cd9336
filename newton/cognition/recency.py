"""Whether an input asks for what is of these days, so that no memory can know it. Pure."""

import re
from datetime import datetime

YEARS_AHEAD = 5  # a number further on is hardly a year

# What says by itself that news are wanted.
_NEWS = r"\b(?:news|headlines?|breaking|weather forecast|stock price|exchange rate|up[- ]to[- ]date)\b"
# What says when; of a person's own day, memory knows more than the web.
_WHEN = (
    r"\b(?:today(?:['’]s)?|tonight(?:['’]s)?|yesterday(?:['’]s)?|this (?:week|month|year|quarter)(?:['’]s)?|right now|"
    r"nowadays|these days|as of now|at the moment)\b"
)
# What says that the newest of something is wanted, unless it is the session's own, or the machine's.
_NEWEST = r"\b(?:latest|newest|most recent|current|currently|recently)\b"
_OWN_THING = (
    r"\b(?:latest|newest|most recent|current)\W+(?:\w+\W+){0,2}?(?:director(?:y|ies)|folders?|paths?|files?|"
    r"branch(?:es)?|"
    r"commits?|lines?|rows?|columns?|cursor|sessions?|conversations?|chats?|messages?|threads?|process(?:es)?|users?|"
    r"tasks?|steps?|goals?|plans?|topics?|subjects?|questions?|answers?|inputs?|outputs?|contexts?|values?|states?|"
    r"settings?|configurations?|config|implementations?|code|functions?|class(?:es)?|modules?|variables?|indexe?s?|"
    r"positions?|approach(?:es)?|designs?|drafts?|working|thing|things|one|ones)\b"
)
_TOLD = r"\b(?:latest|newest|most recent|current)\b(?:\W+\w+){0,4}?\W+(?:i|i['’]ve|we|we['’]ve|you|you['’]ve)\b"
_OWN = r"\b(?:my|our|your|its|their|his|her)\W+(?:\w+\W+)?(?:latest|newest|most recent|current)\b"
_PERSON = re.compile(r"\b(?:i|i['’](?:m|ve|ll|d)|we|we['’](?:re|ve|ll|d)|my|our|me|us)\b", re.IGNORECASE)
_YEAR = re.compile(
    r"(?<![\w.,#$€/-])(20\d\d)(?![\w%]|[.,]\d|\s*(?:tokens?|px|pixels?|[kmg]i?b|bytes?|ms|lines?|rows?)\b)"
)
_PLAIN, _DAYS, _LATEST = (re.compile(pattern, re.IGNORECASE) for pattern in (_NEWS, _WHEN, _NEWEST))
_LOCAL = re.compile("|".join((_OWN_THING, _TOLD, _OWN)), re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.!?…])\s+|\n")


def asks_for_news(text: str, *, now: datetime) -> bool:
    """Whether the words of an input ask for what is of these days. In doubt they do not: nothing leaves the machine
    for a word that may mean the folder one is in.

    >>> at = datetime(2026, 11, 21)
    >>> asks_for_news("What is the latest Python release?", now=at), asks_for_news("List the current directory", now=at)
    (True, False)
    """
    return any(_asks(sentence, now.year) for sentence in _SENTENCE.split(text))


def _asks(sentence: str, year: int) -> bool:
    if _PLAIN.search(sentence):
        return True
    if _PERSON.search(sentence):
        return False
    late = any(year <= int(said) <= year + YEARS_AHEAD for said in _YEAR.findall(sentence))
    return late or any(cue.search(words) for cue, words in ((_DAYS, sentence), (_LATEST, _LOCAL.sub(" ", sentence))))
