"""Links in a text as a browser would read them, and what the characters of a link may stand for. Pure.

A link is found in any form that a client may fetch: a URL, a destination in Markdown, an attribute in HTML. All
patterns take linear time.
"""

import codecs
import html
import re
import unicodedata
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import unquote_plus, urlsplit

from newton.text.letters import fold

_SCHEME = r"[A-Za-z][A-Za-z0-9+.-]{1,20}:"
_ADDRESS_SCHEME = r"(?:mailto|xmpp|sips?|sms(?:to)?|callto|skype|tel|geo):"  # without slashes
_ANY_SCHEME = r"[A-Za-z][A-Za-z0-9+-]{1,20}:"  # of a link that is marked as such
_PLAIN = re.compile(
    rf"(?:(?<![A-Za-z0-9+.-])(?:{_SCHEME}[\\/]{{1,4}}|https?:(?=[\w-]))|:[\\/]{{2,4}}|(?<![\w:/\\.])[\\/]{{2}}(?=[\w-]+\.)"
    rf"|(?<![\w.@-])www\.|\bmailto:|(?<![\w.-]){_ADDRESS_SCHEME}(?=[^\s:])"
    r"|(?<![\w.@/\\-])(?:[\w-]{1,63}\.)+[^\W\d_]{2,24}(?::\d{1,5})?[/?](?=\S))[^\s<>\"'`|]+",
    re.IGNORECASE,
)
_MARKED = re.compile(
    r"\]\(\s{0,3}(?:<(?P<angled>[^<>\n]{1,20000})>|(?P<destination>[^\s()<>]{1,20000}(?:\([^\s()]{0,500}\)[^\s()]{0,2000})?))"
    r"|\b(?:src|href|srcset|action|poster|background|data|cite|formaction|ping)\s{0,3}=\s{0,3}"
    r"(?:\"(?P<double>[^\"]{1,20000})\"|'(?P<single>[^']{1,20000})'|(?P<bare>[^\s\"'<>]{1,20000}))"
    r"|\burl\(\s{0,3}[\"']?(?P<style>[^\"')\n]{1,20000})"
    rf"|<(?P<angle>(?:{_SCHEME}|//)[^<>\n]{{1,20000}})>",
    re.IGNORECASE,
)
# The end of a text may be the beginning of a link: after an opener without its end, or a word with a sign of URLs.
_OPENERS = (("](", ")\n"), ("<", ">\n"), ("url(", ")\n"), ('="', '"'), ("='", "'"))
_OPENED = re.compile(r"\]\(|<(?:[A-Za-z/]|\Z)|url\(|=[\"']")
_ATTRIBUTE = re.compile(
    r"\b(?:src|href|srcset|action|poster|background|data|cite|formaction|ping)\s{0,3}\Z", re.IGNORECASE
)
_FIELD = re.compile(r"<(?:input|button|option|param|data)\b(?P<field>[^<>]{1,4000})>", re.IGNORECASE)  # of a form
_VALUE = re.compile(r"\bvalue\s{0,3}=\s{0,3}(\"[^\"]{1,2000}\"|'[^']{1,2000}'|[^\s\"'<>]{1,2000})", re.IGNORECASE)
_HINT = re.compile(r"[/\\:&?]|www|value", re.IGNORECASE)  # in every link
MAX_OPEN_CHARS = 8_000  # of an unfinished link; a longer one is judged as far as it has come
_SENTENCE_MARKS = ".,:;!?"
_SIGN = re.compile(r"[:./\\&%?@=#]")
_NAMES = ("https", "ftp", "mailto", "xmpp", "sips", "smsto", "callto", "skype", "tel", "geo", "www")
_BEGINNINGS = re.compile(  # a word that is the beginning of one of the names
    rf"(?<![^\W_])(?:{'|'.join(sorted({one[:n] for one in _NAMES for n in range(1, len(one) + 1)}, reverse=True))})\Z",
    re.IGNORECASE,
)
_ABSOLUTE = re.compile(rf"(?:https?:|{_SCHEME}[\\/]|[\\/]{{2}}|www\.|form:|{_ANY_SCHEME})", re.IGNORECASE)
_CONTROL = re.compile("[\x00-\x1f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


class TextLink(NamedTuple):
    """A link, from `start` to `end` of a text; `url` is as a browser would read it."""

    start: int
    end: int
    url: str


class LinkParts(NamedTuple):
    """The host of a link, and everything else in it that can carry text.

    `joined` are the parts of its path, and the values of its query, each without separators.
    """

    host: str
    values: tuple[str, ...]
    joined: tuple[str, ...] = ()


def find_links(text: str) -> list[TextLink]:
    """Return the links in a text, in order; links within a link are not listed.

    >>> [one.url for one in find_links("See ![](//a.example/x), www.b.example. and 1/2.")]
    ['https://a.example/x', 'https://www.b.example']
    """
    found: list[TextLink] = []
    if not _HINT.search(text):
        return found
    for match in _MARKED.finditer(text):
        group = match.lastgroup or ""
        url = to_url(match[group])
        inner = () if _ABSOLUTE.match(url) else (to_url(one[0]) for one in _PLAIN.finditer(html.unescape(match[group])))
        urls = [url] if _ABSOLUTE.match(url) else list(inner)
        found += [TextLink(*match.span(group), one) for one in urls]
    for match in _FIELD.finditer(text):
        if values := " ".join(one.strip("\"'") for one in _VALUE.findall(match["field"])):
            found.append(TextLink(*match.span(), f"form:{values}"))
    taken = [(one.start, one.end) for one in found]
    for match in _PLAIN.finditer(text):
        raw = _trim(match[0])
        if not any(start <= match.start() < end for start, end in taken):
            found.append(TextLink(match.start(), match.start() + len(raw), to_url(raw)))
    return sorted(found)


def find_open_end(text: str) -> int:
    """Return where the end of a text that may be an unfinished link begins; its length if there is none.

    >>> [find_open_end(text) for text in ("It is so", "See (http", "It is http", "A [b](y", "1 < 2 is", "<a b='x y")]
    [8, 4, 6, 4, 8, 0]
    """
    word = max(text.rfind(mark) for mark in (" ", "\n", "\t")) + 1
    tag = text.rfind("<", max(word - MAX_OPEN_CHARS, 0), word)
    if tag >= 0 and text.find(">", tag, word) < 0 and _OPENED.match(text, tag):
        word = tag  # a tag is judged as a whole
    inner = len(text.rstrip(_SENTENCE_MARKS))  # a mark at the end is that of a sentence, or of a link that has begun
    is_begun = _SIGN.search(text, word, inner) or _BEGINNINGS.search(text, max(word, inner - 8), inner)
    start = min(word if is_begun else len(text), len(text) - text.endswith("]"))
    if not _OPENED.search(text):
        return start
    for opener, closers in _OPENERS:
        place = text.rfind(opener, -MAX_OPEN_CHARS)
        is_open = place >= 0 and _OPENED.match(text, place) and all(text.find(one, place + 2) < 0 for one in closers)
        if is_open and (opener[0] != "=" or _ATTRIBUTE.search(text, max(place - 20, 0), place)):
            start = min(start, place)
    return start


def to_url(text: str) -> str:
    """Return a link as a browser reads it: without entities, control characters and backslashes."""
    url = _CONTROL.sub("", html.unescape(html.unescape(text))).strip().lstrip(":").replace("\\", "/")
    match = re.match(rf"({_SCHEME})/+|(https?:)", url, re.IGNORECASE)
    if match:
        return f"{(match[1] or match[2]).lower()}//{url[match.end() :]}"
    if url.startswith("//"):
        return f"https:{url}"
    is_bare = not re.match(_SCHEME, url) and re.match(r"(?:[\w-]{1,63}\.)+[^\W\d_]{2,24}(?::\d+)?(?:[/?#]|$)", url)
    return f"https://{url}" if is_bare else url


def split_link(url: str) -> LinkParts:
    """Return the host and the other parts of a URL.

    Of an address, such as that of `mailto:`, the host is the address; of a number or a form, it is the scheme.
    """
    scheme, _, rest = url.partition(":")
    if re.fullmatch(_ANY_SCHEME, f"{scheme}:") and not rest.startswith("//"):
        address, *query = re.split(r"[?;&=,]", unquote_plus(rest))
        is_address = "@" in address
        host = address.casefold() if is_address else scheme.lower()
        return LinkParts(host, tuple(filter(None, query if is_address else [address, *query])))
    try:
        parts = urlsplit(url)
        host, port = unicodedata.normalize("NFKC", parts.hostname or ""), parts.netloc.rpartition("@")
        number = re.search(r":(\d+)$", port[2])
    except ValueError:
        return LinkParts("", (url,))
    values = (port[0], number[1] if number else "", *parts.path.split("/"), *re.split(r"[&=;]", parts.query))
    query_values = "".join(one.rpartition("=")[2] for one in re.split(r"[&;]", parts.query))
    joined = (re.sub(r"[\W_]+", "", parts.path), re.sub(r"[\W_]+", "", query_values))
    return LinkParts(host.rstrip("."), tuple(filter(None, (*values, parts.fragment))), joined)


def _trim(url: str) -> str:
    """Return a URL without the marks that end a sentence, and without a bracket that it does not open."""
    while url and (url[-1] in ".,;:!?*_~" or (url[-1] in ")]}" and url.count(url[-1]) > url.count(_pair(url[-1])))):
        url = url[:-1]
    return url


def _pair(bracket: str) -> str:
    return {")": "(", "]": "[", "}": "{"}[bracket]


def compact(text: str) -> str:
    """Return the letters and digits of a text in lower case; words for digits are digits.

    >>> compact("Ana's: 4-7, one ONE")
    'anas4711'
    """
    words = re.sub(r"[a-z]+", lambda word: _DIGITS.get(word[0], word[0]), fold(text))
    return re.sub(r"[\W_]+", "", words)


_DIGITS = {
    word: str(digit)
    for digit, word in enumerate(("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"))
}


_ROMAN = {one: str(n) for n, one in enumerate(("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix"), 1)}
_GLUED = re.compile("|".join(_DIGITS))
_LETTERS = {ord(letter): str(n % 10) for n, letter in enumerate("abcdefghij", 1)}


def spell_digits(text: str) -> set[str]:
    """Return a text with the digits that its words, Roman numerals or letters may stand for.

    >>> [any("7391" in one for one in spell_digits(text)) for text in ("vii/iii/ix/i", "seventhreenineone", "GCIA")]
    [True, True, True]
    """
    pieces = re.findall(r"[a-z]+|\d+", fold(text))
    romans = "".join(_ROMAN.get(one, one if one.isdigit() else " ") for one in pieces)
    glued = _GLUED.sub(lambda word: _DIGITS[word[0]], "".join(pieces))
    return {romans, glued, "".join(pieces).translate(_LETTERS)}


def shift_to_a(word: str) -> str:
    """Return a word with its letters rotated so that it begins with "a": the same for all rotations of a word.

    >>> shift_to_a("metoprolol") == shift_to_a("nfupqspmpm")
    True
    """
    first = ord(word[0])
    return "".join(chr((ord(one) - first) % 26 + 97) for one in word)


def turn_forms(forms: Iterable[str]) -> set[str]:
    """Return texts as they are, reversed, and with letters rotated by 13.

    >>> sorted(turn_forms(["on"]))
    ['ba', 'no', 'on']
    """
    return {turned for one in forms for turned in (one, one[::-1], codecs.encode(one, "rot13"))}
