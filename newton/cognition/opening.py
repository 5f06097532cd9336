"""What an input says without its polite opening: 'Hi, could you check the deploy?' says 'check the deploy?'. Pure."""

import re

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
_ONLY = re.compile(rf"\s*{_COURTESY}(?:[\s,.;:!?]+{_COURTESY})*[\s,.;:!?]*", re.IGNORECASE)
_ASKING = re.compile(
    r"\s*(?:(?:can|could|will) you (?:please |kindly |possibly |maybe |help me )?|please |pls "
    r"|would you (?:please|kindly) |would you be so kind (?:as )?to |would you mind (?=\w+ing)"
    r"|(?:any|is there any) chance (?:that )?you could |do you think you could "
    r"|(?:i'd|i would) (?:be (?:very |so )?grateful|appreciate it|love it) if you could "
    r"|i (?:was |am |'m )?(?:just )?wonder(?:ing)? (?:if|whether) you could )",
    re.IGNORECASE,
)


def substance(text: str) -> str:
    """The text without greeting, thanks and the words that make a request polite; all of it if nothing else is said."""
    rest = text
    for courtesy in (_OPENING, _ASKING):
        if found := courtesy.match(rest.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")):
            rest = rest[found.end() :]
    return rest if re.search(r"\w", rest) else text


def is_courtesy(text: str) -> bool:
    """Whether nothing is said but a greeting, thanks or a wish."""
    return _ONLY.fullmatch(text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")) is not None
