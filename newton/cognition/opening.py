"""What an input says without its polite opening: 'Hi, could you check the deploy?' says 'check the deploy?'. Pure."""

import re

_HELLO = r"(?:hi|hello|hey|hiya|yo|dear \w+|good (?:morning|afternoon|evening|day)|morning|evening|greetings)"
_WHOM = r"(?: (?:there|again|all|everyone|everybody|team|folks|newton))?"
_WHAT_FOR = r"(?: (?:a lot|a million|again|so much|very much|for [^,.;!?]{1,40}))?"
_THANKS = rf"(?:many |big )?(?:thanks|thank you|thx|cheers){_WHAT_FOR}"
_WISHES = (
    r"(?:i )?hope (?:you're|you are|all is|you had|this finds you)[^,.;!?]{0,40}",
    r"(?:i'm )?sorry to (?:bother|disturb|interrupt)(?: you)?(?: again)?",
    r"how are you(?: (?:today|doing))?",
    r"excuse me",
    r"(?:just )?(?:a )?quick question",
    r"one more thing",
    r"(?:can|could|would) you (?:please )?help me(?: out)?(?: (?:with something|please))?",
    r"i (?:need|could use) (?:some|your) help",
)
_COURTESY = rf"(?:{_HELLO}{_WHOM}|{_THANKS}|{'|'.join(_WISHES)})"
_OPENING = re.compile(
    rf"\s*(?:(?:{_COURTESY}\s*[,.;:!?\u2013\u2014-]+\s*)+(?:(?:and|now|so|but|then)\b,?\s+)?"
    rf"|{_HELLO}(?: there)? (?=\w))",
    re.IGNORECASE,
)
_ASKING = re.compile(
    r"\s*(?:(?:can|could|will) you (?:please |kindly |possibly |help me )?|would you (?:please|kindly) |please |pls "
    r"|i (?:was wondering|wonder) (?:if|whether) you could )",
    re.IGNORECASE,
)


def substance(text: str) -> str:
    """The text without greeting, thanks and the words that make a request polite; all of it if nothing else is said."""
    rest = text
    for courtesy in (_OPENING, _ASKING):
        if found := courtesy.match(rest.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")):
            rest = rest[found.end() :]
    return rest if re.search(r"\w", rest) else text
