"""Newton's own secrets, recognized by their value: tokens, keys of models, the database password, session cookies.

A secret is kept as keyed hashes of the forms in which it can be written. A text is reduced to its letters and digits in
lower case, so a secret is also found in other case and split by spaces or punctuation. Encoded and reversed forms are
hashed like the secret itself.
"""

import base64
import codecs
import hashlib
import re
import secrets
from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import quote

import re2

from newton.memory.redaction.labelled_values import is_placeholder
from newton.memory.redaction.tally import SecretSpan, redact_spans
from newton.text.encoded_parts import find_encoded_parts

KIND, TOKEN_KIND = "newton-secret", "newton-token"
MAX_OF_GROUP = 200  # values of one group, such as the cookies of sessions; the oldest are forgotten
_MIN_CHARS = 8
_MIN_WORD_CHARS = 12  # of a password of letters only: shorter ones are words of other texts
_MIN_FORM_CHARS = 10  # of an encoded or reversed form
_MIN_SPLIT_CHARS = 20  # of a secret that is also recognized in pieces and in other case
_MIN_HALVED_CHARS = 32  # of a form that is also recognized by either half
_ANCHOR_CHARS = 4
_MIN_TOKEN_DIGITS, _MIN_TOKEN_CAPITALS = 4, 12  # of the 86 characters of an agent's token: it is no prose

_KEPT = frozenset(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
_DIGITS = frozenset(b"0123456789")
_DROPPED = bytes(code for code in range(256) if code not in _KEPT)
_LOWER = bytes(range(256)).lower()
_FULL_WIDTH = re.compile("[\uff01-\uff5e]")
_TO_ASCII = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}

# An agent's token, also in pieces: its prefix, and 86 letters and digits with up to two other characters between them.
_AGENT_TOKEN = re.compile(
    r"[nN](?<![A-Za-z0-9].)[\W_]{0,2}[wW][\W_]{0,2}[tT][\W_]{0,3}(?:[A-Za-z0-9][\W_]{0,2}){85}[A-Za-z0-9]={0,2}"
)
_ENCODED_STARTS = (b"bnd0x", b"53df", b"ud3rf", b"6e77745f")  # of "nwt_" in base64, by its position, and hexadecimal
_MIN_ENCODED_TOKEN = 100
_DIGIT, _CAPITAL = re.compile(r"\d"), re.compile("[A-Z]")


class _Form(NamedTuple):
    """One way to write a secret: the anchor in it and its offset, the length, and the keyed hash.

    `exact` is the hash of a short secret, to which a match must be equal; `lead` and `trail` are the numbers of its
    characters before the first and after the last letter or digit.
    """

    anchor: bytes
    offset: int
    length: int
    digest: bytes
    exact: bytes = b""
    lead: int = 0
    trail: int = 0


class SecretRegistry:
    """The secrets of this process by group, such as those of the settings, and the search for them in texts."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self._groups: dict[str, deque[tuple[_Form, ...]]] = {}
        self._forms: dict[bytes, list[_Form]] = {}
        self._anchors: re2.Pattern | None = None

    def replace(self, group: str, values: Iterable[str]) -> None:
        """Make `values` the only secrets of a group. Values that could be ordinary words are left out."""
        self._groups[group] = deque((tuple(self._iter_forms(value.strip())) for value in values), MAX_OF_GROUP)
        self._compile()

    def add(self, group: str, value: str) -> None:
        """Add a secret to a group."""
        self._groups.setdefault(group, deque(maxlen=MAX_OF_GROUP)).append(tuple(self._iter_forms(value)))
        self._compile()

    def find(self, text: str, reduced: bytes) -> Iterator[SecretSpan]:
        """Yield the positions of secrets in a text, of which `reduced` has the letters and digits. They may overlap."""
        found = list(self._find_reduced(reduced))
        places = [place for place, code in enumerate(_to_bytes(text)) if code in _KEPT] if found else []
        for start, form in found:
            first, end = places[start] - form.lead, places[start + form.length - 1] + 1 + form.trail
            if not form.exact or (first >= 0 and self._is_exact(text, first, end, form.exact)):
                yield SecretSpan(first, end, KIND)

    def _find_reduced(self, reduced: bytes) -> Iterator[tuple[int, _Form]]:
        position = 0
        while self._anchors and (match := self._anchors.search(reduced, position)):
            position = match.start() + 1
            for form in self._forms[reduced[match.start() : match.start() + _ANCHOR_CHARS]]:
                start = match.start() - form.offset
                if start >= 0 and self._hash(reduced[start : start + form.length]) == form.digest:
                    yield start, form

    def _is_exact(self, text: str, start: int, end: int, digest: bytes) -> bool:
        around = text[max(start - 1, 0) : start] + text[end : end + 1]
        return not any(map(str.isalnum, around)) and self._hash(text[start:end].encode()) == digest

    def _hash(self, data: bytes) -> bytes:
        return hashlib.blake2b(data, key=self._key, digest_size=16).digest()

    def _iter_forms(self, value: str) -> Iterator[_Form]:
        reduced = _reduce(value)
        is_word = reduced.isalpha() and len(reduced) < _MIN_WORD_CHARS
        if len(value) < _MIN_CHARS or is_placeholder(value) or is_word:
            return
        is_short = len(reduced) < _MIN_SPLIT_CHARS
        if is_short and len(reduced) >= _ANCHOR_CHARS:
            edges = [place for place, code in enumerate(_to_bytes(value)) if code in _KEPT]
            exact, trail = self._hash(value.encode()), len(value) - edges[-1] - 1
            yield self._to_form(reduced)._replace(exact=exact, lead=edges[0], trail=trail)
        for written in {_reduce(one) for one in _iter_writings(value)} - ({reduced} if is_short else set()):
            if len(written) >= _MIN_FORM_CHARS:
                for directed in (written, written[::-1]):
                    yield from map(self._to_form, _halve(directed))

    def _to_form(self, written: bytes) -> _Form:
        starts = range(len(written) - _ANCHOR_CHARS + 1)
        # the part with most digits, which is rarest in texts
        offset = max(starts, key=lambda start: sum(map(_DIGITS.__contains__, written[start : start + _ANCHOR_CHARS])))
        return _Form(written[offset : offset + _ANCHOR_CHARS], offset, len(written), self._hash(written))

    def _compile(self) -> None:
        forms: dict[bytes, list[_Form]] = {}
        for form in (form for group in self._groups.values() for value in group for form in value):
            forms.setdefault(form.anchor, []).append(form)
        self._forms, self._anchors = forms, re2.compile(b"|".join(sorted(forms))) if forms else None


OWN_SECRETS = SecretRegistry()


def redact_own_secrets(text: str) -> str:
    """Return the text with secrets of Newton itself replaced by `[REDACTED:newton-secret]`, also disguised ones.

    These are the secrets of `OWN_SECRETS`, and tokens of agents by their form. They are added to the tally of the call.
    """
    return redact_spans(text, _merge(sorted(_find_all(text)), text))


def contains_own_secret(text: str) -> bool:
    """Return whether a text contains a secret of Newton itself, also disguised."""
    return any(_find_all(text))


def _find_all(text: str) -> Iterator[SecretSpan]:
    reduced = _reduce(text)
    yield from OWN_SECRETS.find(text, reduced)
    yield from _find_agent_tokens(text, reduced)


def _find_agent_tokens(text: str, reduced: bytes) -> Iterator[SecretSpan]:
    """Yield the positions of tokens of agents, stored as hashes only, by their form: also in pieces or reversed."""
    if b"nwt" in reduced:
        yield from (SecretSpan(start, end, TOKEN_KIND) for start, end in _find_in_pieces(text))
    if b"twn" in reduced:
        size = len(text)
        yield from (SecretSpan(size - end, size - start, TOKEN_KIND) for start, end in _find_in_pieces(text[::-1]))
    if any(start in reduced for start in _ENCODED_STARTS):
        for start, end, decoded in find_encoded_parts(text, min_chars=_MIN_ENCODED_TOKEN):
            if any(_find_in_pieces(decoded)):
                yield SecretSpan(start, end, TOKEN_KIND)


def _find_in_pieces(text: str) -> Iterator[tuple[int, int]]:
    for match in _AGENT_TOKEN.finditer(text):
        if (
            len(_DIGIT.findall(match[0])) >= _MIN_TOKEN_DIGITS
            and len(_CAPITAL.findall(match[0])) >= _MIN_TOKEN_CAPITALS
        ):
            yield match.span()


def _merge(spans: Iterable[SecretSpan], text: str) -> Iterator[SecretSpan]:
    """Yield the spans, those as one between which there is no letter or digit."""
    merged: SecretSpan | None = None
    for span in spans:
        if merged and not any(map(str.isalnum, text[merged.end : span.start])):
            merged = merged._replace(end=max(merged.end, span.end))
        else:
            if merged:
                yield merged
            merged = span
    if merged:
        yield merged


def _iter_writings(value: str) -> Iterator[str]:
    """Yield a secret and its encoded forms; in base64 only what does not depend on the text around the secret."""
    raw = value.encode()
    yield from (value, codecs.encode(value, "rot13"), quote(value, safe=""), raw.hex())
    yield base64.b32encode(raw).decode().rstrip("=")
    for shift, first in enumerate((0, 2, 3)):
        encoded = base64.b64encode(bytes(shift) + raw).decode()
        yield encoded[first : (shift + len(raw)) * 8 // 6]


def _halve(written: bytes) -> tuple[bytes, ...]:
    middle = len(written) // 2
    return (written,) if len(written) < _MIN_HALVED_CHARS else (written[:middle], written[middle:])


def _reduce(text: str) -> bytes:
    return _to_bytes(text).translate(_LOWER, _DROPPED)


def _to_bytes(text: str) -> bytes:
    """Return one byte for each character, so that positions are equal: letters that are not ASCII become "?"."""
    if not text.isascii() and _FULL_WIDTH.search(text):
        text = text.translate(_TO_ASCII)
    return text.encode("ascii", "replace")
