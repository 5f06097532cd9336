"""Detection of text in a message that a person has pasted, marked as such by its form. Pure."""

import re

MASK = "¤"

# Code blocks, quoted lines, text between tags, lines of a chat with their speaker, rows of a table, and a forwarded
# mail or a letter below other text up to the end.
_PASTED = re.compile(
    r"```[\s\S]*?(?:```|\Z)"
    r"|^[ \t]*>[^\n]*$"
    r"|^[ \t]*<(?P<tag>[A-Za-z][\w-]{0,40})(?: [^<>\n]{0,200})?>[ \t]*\n[\s\S]*?(?:</(?P=tag)>|\Z)"
    r"|^[ \t]*[^\W\d][\w.-]*(?: \w+)?> [^\n]*$"
    r"|^(?:[^\n;]*;[^\n;]*;[^\n]*(?:\n|\Z)){2,}|^(?:[^\n\t]*\t[^\n\t]*\t[^\n]*(?:\n|\Z)){2,}"
    r"|^(?:-{2,} ?(?:forwarded|original) message ?-{2,}|begin forwarded message:|on [^\n]{5,120} wrote:)[\s\S]*\Z"
    r"|(?<=\n\n)(?:(?:hi|hey|hello|hola|bonjour|hallo) (?-i:[A-Z])|(?:dear|sehr geehrter?|estimad[oa]s?|chère?s?) \w)"
    r"[^\n,.!:]{0,40}[,.!:][\s\S]*\Z"
    r"|^from: [^\n]+\n(?:(?:(?:to|cc|date|sent|subject|reply-to): [^\n]*\n)+|\s*(?=dear |hi |hello ))[\s\S]*\Z",
    re.MULTILINE | re.IGNORECASE,
)

# Words by which a first paragraph says that somebody else wrote what comes below it, or that it was found.
_INTRODUCTION = re.compile(
    r"\b(?:(?:sen[dt]s?|forward(?:ed|s)|gave|handed|wrote|writes|got|found|received|posted|shared|look at|read)"
    r"(?: \w+){0,3} (?:this|these|the following)"
    r"|(?:this|these)(?: \w+)? (?:came|comes|arrived|landed|is from|are from|was (?:sent|posted|in))"
    r"|(?:das|dies|folgendes?)\b[^\n]{0,40}\b(?:kam|gekommen|bekommen|erhalten|geschickt|geschrieben|gefunden)"
    r"|(?:kam|schickte|schrieb|bekam|fand)\b[^\n]{0,30}\b(?:das hier|dies|folgendes?)"
    r"|(?:reçu|envoyé|trouvé|transmis)(?: \w+){0,2} (?:ceci|cela|ça)|(?:ceci|cela|ça) (?:vient|est arrivé)"
    r"|(?:mandó|mandaron|envió|enviaron|llegó|encontré|recibí) esto|esto (?:me |nos )?(?:llegó|vino|mandó))\b",
    re.IGNORECASE,
)
MIN_PRESENTED_WORDS = 20  # below the paragraph that presents them, else they may be the rest of its sentence
_PARAGRAPH_END = re.compile(r"\n[ \t]*\n")


def mask_pasted_text(text: str) -> str:
    r"""Replace the characters of pasted text, except for line ends, by a mask character. Offsets do not change.

    >>> mask_pasted_text("See:\n> I live in Rome.\nI don't.")
    "See:\n¤¤¤¤¤¤¤¤¤¤¤¤¤¤¤¤¤\nI don't."
    """
    return _PASTED.sub(mask_match, text[: (end := _find_presented_text(text))]) + re.sub(r"[^\n]", MASK, text[end:])


def _find_presented_text(text: str) -> int:
    r"""Return the offset of the text that the first paragraph presents as that of others, else the text's length.

    >>> notice = "This came from the council:\n\n" + "Bins are emptied on Mondays in all streets. " * 4
    >>> notice[_find_presented_text(notice):][:4]
    'Bins'
    """
    match = _PARAGRAPH_END.search(text)
    if match is None or not _INTRODUCTION.search(text, 0, match.start()):
        return len(text)
    return match.end() if len(text[match.end() :].split()) >= MIN_PRESENTED_WORDS else len(text)


def mask_match(match: "re.Match[str]") -> str:
    """Return the text of a match with its characters, except for line ends, replaced by a mask character."""
    return re.sub(r"[^\n]", MASK, match[0])
