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
    r"|(?<=\n\n)(?:hi|hey|hello|dear) (?-i:[A-Z])[^\n,.!:]{0,40}[,.!:][\s\S]*\Z"
    r"|^from: [^\n]+\n(?:(?:to|cc|date|sent|subject|reply-to): [^\n]*\n)+[\s\S]*\Z",
    re.MULTILINE | re.IGNORECASE,
)


def mask_pasted_text(text: str) -> str:
    r"""Mask the characters of pasted text, except for line ends. Offsets do not change.

    >>> mask_pasted_text("See:\n> I live in Rome.\nI don't.")
    "See:\n¤¤¤¤¤¤¤¤¤¤¤¤¤¤¤¤¤\nI don't."
    """
    return _PASTED.sub(mask_match, text)


def mask_match(match: "re.Match[str]") -> str:
    """Return the text of a match with its characters masked, except for line ends."""
    return re.sub(r"[^\n]", MASK, match[0])
