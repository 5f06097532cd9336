"""Division of a person's line into their own words and what they quote or paste. Pure."""

import re
from functools import lru_cache
from typing import NamedTuple

from newton.heart.identity.standing_wishes import mask_foreign_text
from newton.text.pasted_text import MASK

MAX_QUOTED_NAME = 3  # words of a quotation that is a name or a term of the person's own sentence

_QUOTATION = re.compile(rf"{MASK}+(?:\s*{MASK}+)*")
# A passage in Chinese or Japanese script in a line of another language.
_PASSAGE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff][\u3000-\u30ff\u3400-\u9fff\uff00-\uffef\d]{5,}")
# A list, with the line before it. Its items are the person's own if they are short and that line presents no text.
_LIST = re.compile(
    r"(?P<head>^(?![ \t]*(?:[-*•]|\d+[.)])[ \t])[^\n]*\n(?:[ \t]*\n)*)?"
    r"(?P<items>(?:^[ \t]*(?:[-*•]|\d+[.)])[ \t][^\n]*(?:\n|\Z))+)",
    re.MULTILINE,
)
_LIST_MARK = re.compile(r"^[ \t]*(?:[-*•]|\d+[.)])(?=[ \t])", re.MULTILINE)
# Words by which the sentence before a list presents the text of somebody else: where it is from, who wrote it, or what
# kind of text it is.
_OWN = r"(?<!\bmy )(?<!\bour )(?<!\bmine )(?<!\bmeine )(?<!\bmeinen )(?<!\bunsere )(?<!\bmis )(?<!\bmes )(?<!\bnos )"
_PRESENTING = re.compile(
    r"\b(?:(?:this|these)(?! (?:week|month|year|morning|evening|time|weekend|summer|winter|spring|autumn)\b)|following"
    r"|below|here|according|says?|said|wrote|writes?|sent|from(?! (?:my|our|me|us|you|home|now|today|here)\b)|page|site"
    r"|(?:e?mails?|messages?|texts?|letter|notice)(?! (?:to|for)\b)|articles?|contract|translate|summari[sz]e|rewrite"
    r"|proofread|review|check"
    r"|found|read|copied|pasted|printed|quot(?:ed?|es)|(?:was|were|been|got) (?:given|handed|told)"
    r"|(?:what|that|which) (?:I|we) (?:got|received|saw|heard)"
    rf"|\w+(?:['’]s|s['’]) (?:\w+ )?(?:lists?|notes?|points|words|answers?|recipe)"
    rf"|{_OWN}(?:(?:house |ground )?rules|regulations|guidelines?|instructions?|polic(?:y|ies)|manual|terms|conditions"
    r"|tips|advice|excerpts?|handout|leaflet|flyer|minutes|faq|guide)(?! (?:for|to) you\b)"
    r"|folgende\w*|hier|laut|sagte?|schrieb|steht|ge(?:schickt|schrieben|sagt|funden|lesen)|bekommen|kopiert|erhalten"
    rf"|{_OWN}(?:\w*ordnung|\w*regeln|anweisungen|vorschriften|richtlinien|hinweise|tipps|bedingungen|auszug)"
    r"|voici|ci-dessous|selon|dit|écrit|envoyé\w*|trouvé\w*|lue?s?|reçue?s?|copié\w*"
    rf"|{_OWN}(?:règle(?:s|ment)|consignes|conditions|conseils|extraits?)"
    r"|siguientes?|según|dice|dijo|escribió|envió|mandó|encontré|leí|copié|recibí|encontrado|leído|enviado"
    rf"|{_OWN}(?:normas|reglas|instrucciones|condiciones|consejos))\b",
    re.IGNORECASE,
)
# Words by which the sentence before a list asks the assistant itself for what the list says.
_ADDRESSING = re.compile(
    r"\b(?:you|your|please|from now on|(?:answers|replies|responses|antworten|respuestas|réponses)(?! from\b)"
    r"|I(?:['’]d| would)? (?:like|want|need|prefer|hate)|my (?:\w+ )?(?:rules|wishes"
    r"|preferences|instructions)|du|dich|dir|deine\w*|bitte|ich (?:will|möchte|hätte|mag)|meine (?:regeln|wünsche)|ti"
    r"|tus?|por favor|quiero|mis reglas|toi|vous|tes|vos|s['’]il (?:te|vous)|je veux|mes règles)\b",
    re.IGNORECASE,
)
_SPEAKER = re.compile(r"\b(?:I|my|we|our|ich|mein\w*|wir|unser\w*|je|j['’]ai|mes|mon|ma|nos|yo|mis?)\b", re.IGNORECASE)
MAX_ITEM_WORDS = 30
MAX_SHORT_SENTENCE = 2  # words of a sentence ("They are:") that says less than the one before it
_SENTENCE_END = re.compile(r"[.!?]\s+")
_LATIN_WORD = re.compile(r"\b[A-Za-zÀ-ɏ]{2,}\b")


class OwnWords(NamedTuple):
    """The words of a person, and the text of others in the same line."""

    own: str
    foreign: str


@lru_cache(maxsize=1_024)
def split_own_words(text: str) -> OwnWords:
    r"""Divide a line into the person's own words and quoted or pasted text. A quoted name or term is an own word.

    >>> split_own_words('Scale this: "I have three kids, and Pia adores mushrooms." It is for "Erik".')
    OwnWords(own='Scale this:   It is for "Erik".', foreign='"I have three kids, and Pia adores mushrooms."')
    >>> split_own_words("Done, last night:\n- prod moved to OVH").foreign
    ''
    >>> split_own_words("From the terms:\n- Guests pay in cash").foreign
    '- Guests pay in cash'
    """
    masked = _mask(text)
    foreign = [text[len(masked) :]]
    parts, start = list[str](), 0
    for match in _QUOTATION.finditer(masked):
        quoted = text[match.start() : match.end()]
        is_name = len(quoted.split()) <= MAX_QUOTED_NAME and "\n" not in quoted
        parts += [masked[start : match.start()], quoted if is_name else " "]
        foreign += [] if is_name else [quoted]
        start = match.end()
    own = "".join([*parts, masked[start:]])
    if len(_LATIN_WORD.findall(own)) >= MAX_QUOTED_NAME:
        foreign += _PASSAGE.findall(own)
        own = _PASSAGE.sub(" ", own)
    return OwnWords(own, "\n".join(filter(str.strip, foreign)))


def mask_quotations(text: str) -> str:
    """Return a text without its quotations, code and pasted parts, which are not the person's own words."""
    return _mask(text).replace(MASK, " ")


def is_quoted(part: str, text: str) -> bool:
    """Return whether a part of a text is, for the most part, a quotation, code or pasted.

    A list counts as quoted unless the line before it asks the assistant for it: its items are no rules of the person.

    >>> said = "I am Ana, please, 'doctora Ibarra' is for the College. My boss says: 'Never mention prices to him.'"
    >>> is_quoted("I am Ana, please, 'doctora Ibarra' is for the College.", said)
    False
    >>> is_quoted("Never mention prices", said)
    True
    """
    found = re.search(r"\s+".join(map(re.escape, part.split())), text) if part.strip() else None
    if found is None:
        return False
    masked = _mask(text, must_address=True)
    # the rest of a paragraph ("Shorten this letter. And always sign with M.") can be the person's, pasted lines are not
    is_pasted = "\n" in text[max(0, len(masked) - 1) :].strip(" ") or masked.rstrip().endswith(":")
    kept = masked[found.start() : found.end()]
    cut = found.end() - found.start() - len(kept) if is_pasted else 0
    return (kept.count(MASK) + cut) * 2 > found.end() - found.start()


def _mask(text: str, *, must_address: bool = False) -> str:
    # a single line is no transcript, though it begins with a word and a colon: "Gdansk: registered and paid."
    mark = "" if "\n" in text.strip() else "· "
    parts, start, was_foreign = list[str](), 0, False
    for match in _LIST.finditer(text):
        head = _last_sentence(match["head"] or "")
        was_foreign = _is_foreign_list(match, head) or (was_foreign and not _SPEAKER.search(head))
        own = _unmark_list(match)
        if must_address and not _ADDRESSING.search(head):
            kept = len(match["head"] or "")
            own = own[:kept] + MASK * (len(own) - kept - 1) + own[-1]
        parts += [text[start : match.start()], match[0] if was_foreign else own]
        start = match.end()
    return mask_foreign_text("".join([mark, *parts, text[start:]]))[len(mark) :]


def _last_sentence(head: str) -> str:
    """Return the last sentence of a text; if it is short, with the sentence before it."""
    sentences = _SENTENCE_END.split(head.rstrip())
    return " ".join(sentences[-2:] if len(sentences[-1].split()) <= MAX_SHORT_SENTENCE else sentences[-1:])


def _is_foreign_list(match: "re.Match[str]", head: str) -> bool:
    """Return whether the sentence before a list presents it as a text of others, or its items are long."""
    is_long = any(len(one.split()) > MAX_ITEM_WORDS for one in match["items"].splitlines())
    return is_long or bool(_PRESENTING.search(head))


def _unmark_list(match: "re.Match[str]") -> str:
    """Return a list without its marks and the colon before it, at the same offsets."""
    head = re.sub(r":(?=\s*\Z)", ".", match["head"] or "")
    return head + _LIST_MARK.sub(lambda mark: " " * len(mark[0]), match["items"])
