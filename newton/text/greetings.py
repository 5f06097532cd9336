"""Detection and removal of polite phrases: 'Hi, could you check the deploy?' becomes 'check the deploy?'. Pure."""

import re
from functools import lru_cache

MAX_CLOSING_CHARS = 120  # characters

_HELLO = r"(?:hi|hello|hey|hiya|yo|good (?:morning|afternoon|evening|day))"
_NAMED = rf"(?:{_HELLO}(?: (?:there|again|all|my friend|to you|[^\W\d_]+))?|dear \w+|morning|evening|greetings)"
_WHAT_FOR = r"(?: (?:a lot|a million|again|so much|very much|for [^,.;!?]{1,40}))?"
_THANKS = rf"(?:many |big )?(?:thanks|thank you|thx|cheers){_WHAT_FOR}"
_WISHES = (
    r"(?:i )?(?:really )?hope (?:you're|you|all|all's|everything|this|that|your|i'm not)(?![\w'])[^,.:;!?]{0,50}",
    r"(?:i'm )?(?:so )?sorry (?:to (?:bother|disturb|interrupt|trouble)|for (?:the|another|all))[^,.:;!?]{0,40}",
    r"(?:how are you|how's it going|how are things|nice to (?:see|hear from|meet) you)(?: (?:today|doing|again))?",
    r"(?:when|whenever|if) you (?:have|get|find|can spare) (?:a |some |the )?(?:free |spare |quick )?"
    r"(?:moment|minute|second|sec|chance|time)(?: (?:today|later|for me))?",
    r"if (?:you don't mind|possible|it's (?:not|no) (?:too much )?(?:of a )?(?:trouble|problem|bother))",
    r"(?:no rush|no hurry|not urgent|just wondering|(?:it's )?me again|much appreciated|(?:a )?quick one)(?: but)?",
    r"(?:can|could|may|might) i (?:just )?(?:quickly )?ask (?:you )?"
    r"(?:something|a (?:quick )?(?:question|favou?r)|for (?:a|your) \w+)",
    r"i have (?:a|another|one more) (?:quick |small |little )?(?:question|request|favou?r to ask)",
    r"excuse me",
    r"(?:just )?(?:a )?quick question",
    r"one more thing",
    r"(?:can|could|would) you (?:please )?help me(?: out)?(?: (?:with something|please))?",
    r"i (?:need|could use) (?:some|your) help",
)
_COURTESY = rf"(?:{_NAMED}|{_THANKS}|{'|'.join(_WISHES)})"
_OPENING = re.compile(
    rf"\s*(?:(?:{_COURTESY}\s*[,.;:!?\u2013\u2014-]+\s*)+(?:(?:and|now|so|but|then)\b,?\s+)?"
    rf"|{_HELLO}(?: there)? (?=\w))",
    re.IGNORECASE,
)
# Reports of a resolved problem. A plain statement may be any news, so most patterns require "now" or the like.
_IT = r"(?:it|that|this|all|everything|your [^,.;:!?]{1,30}|(?:the|my|our) [^,.;:!?]{1,30})"
_AGAIN = r"(?: (?:now|again|at last|finally|like a charm|as it should|as expected))"
_WELL = r"(?: (?:fine|perfectly|well|great|nicely))?"
_IS = r"(?: (?:is|are|has|have|just|now|all|finally|really)|'s|'re|'ve)"
_RIGHT = r"(?:works?|working|runs?|running|pass(?:es)?|passing|up)"
_SOLVED = r"(?:fixed|solved|resolved|sorted(?: out)?)"
_TROUBLE = r"(?:problem|issue|error|bug)"
_DONE = "|".join(
    [
        rf"(?:{_IT}{_IS}{{0,3}} )?{_RIGHT}{_WELL}{_AGAIN}{{1,3}}",
        rf"(?:{_IT}{_IS}{{0,3}} )?(?:now|finally) {_RIGHT}{_WELL}",
        rf"(?:(?:it|that|this|which|your [^,.;:!?]{{1,30}}){_IS}{{0,3}} )?(?:{_SOLVED}|did)"
        rf" (?:it|that|everything|the (?:trick|job|{_TROUBLE}))",
        rf"(?:it|that|this){_IS}{{0,3}} (?:worked|helped)",
        rf"(?:it|that|this|all|everything|(?:the )?{_TROUBLE}){_IS}{{0,3}} {_SOLVED}{_AGAIN}?",
        rf"(?:it{_IS}{{0,3}} |that{_IS}{{0,3}} )?all good{_AGAIN}?",
        rf"(?:(?:i|we){_IS}{{0,3}} )?got (?:it|that) (?:working|running){_AGAIN}?",
    ]
)
_CLOSED = rf"(?:(?:and|so|now) )?(?:{_DONE})"
_CHEER = r"(?:ok(?:ay)?|yes|yep|yay|great|perfect|nice|awesome|brilliant|super|cool|phew|wow|excellent|good)"
_PARTED = re.compile(r"[,.;:!\u2013\u2014]+\s*|\s+-\s+")
_CLOSING = re.compile(rf"(?:{_CHEER} )?{_CLOSED}(?: {_COURTESY})?", re.IGNORECASE)
_BESIDE = re.compile(rf"{_CHEER}|{_COURTESY}", re.IGNORECASE)
_ONLY = re.compile(rf"\s*{_COURTESY}(?:[\s,.;:!?]+{_COURTESY})*[\s,.;:!?]*", re.IGNORECASE)
_ASKING = re.compile(
    r"\s*(?:(?:can|could|will) you (?:please |kindly |possibly |maybe |help me )?|please |pls "
    r"|would you (?:please|kindly) |would you be so kind (?:as )?to |would you mind (?=\w+ing)"
    r"|(?:any|is there any) chance (?:that )?you could |do you think you could "
    r"|(?:i'd|i would) (?:be (?:very |so )?grateful|appreciate it|love it) if you could "
    r"|i (?:was |am |'m )?(?:just )?wonder(?:ing)? (?:if|whether) you could )",
    re.IGNORECASE,
)


@lru_cache(maxsize=64)  # several parts of a context look at the input without it
def strip_greeting(text: str) -> str:
    """Remove greeting, thanks and polite phrases from the start of a text.

    Return the text unchanged if nothing else would remain.
    """
    rest = text
    for courtesy in (_OPENING, _ASKING):
        if found := courtesy.match(_normalize_apostrophes(rest)):
            rest = rest[found.end() :]
    return rest if re.search(r"\w", rest) else text


def is_small_talk(text: str) -> bool:
    """Return True for a text that is only greeting, thanks, good wishes or a report that something is resolved."""
    return says_resolved(text) or is_courtesy(text)


def is_courtesy(text: str) -> bool:
    """Return True for a text that is only greeting, thanks or good wishes."""
    return _ONLY.fullmatch(_normalize_apostrophes(text)) is not None


@lru_cache(maxsize=64)
def says_resolved(text: str) -> bool:
    """Return True for a text that only reports that something is resolved (works now).

    >>> [says_resolved(text) for text in ("Thanks, that fixed it!", "It works now, but slowly.", "Does it work now?")]
    [True, False, False]
    """
    if len(text) > MAX_CLOSING_CHARS:
        return False
    parts = [part for part in _PARTED.split(_normalize_apostrophes(text).strip()) if part]
    closing = [_CLOSING.fullmatch(part) is not None for part in parts]
    return any(closing) and all(c or _BESIDE.fullmatch(part) for c, part in zip(closing, parts, strict=True))


def _normalize_apostrophes(text: str) -> str:
    return text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
