"""Rules on whose word an act follows for its recipient and its content, by the texts of the prompt. Pure.

An act does not follow the text of anybody but the person under a permission that was given before.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import unquote

from newton.agent.actions.link_text import find_links, split_link
from newton.agent.actions.outbound_rules import (
    EMAIL,
    HANDLE,
    NUMBER,
    OutboundRules,
    is_topic,
    iter_strings,
    split_tokens,
    stands_in,
)
from newton.text.letters import fold
from newton.text.sentences import split_sentences
from newton.text.stems import stem_word

RUN_WORDS = 5  # of a content that repeats another text
MAX_FIELD_WORDS = 15  # of a content that is named fields of what was read, such as a number and a title
MAX_LIST_WORDS = 6  # of an argument in which "at" may stand for the sign of an address

_PATH = re.compile(r"(?<![\w:/.])(?:~|\.{0,2}|[A-Za-z]:)?[\\/][^\s\"'<>|:*?]{3,400}|(?<![\w:/.@])[\w.-]+(?:/[\w.@-]+)+")
_ID = re.compile(r"(?<![\w.@/-])(?=[\w-]*\d)(?=[\w-]*[^\W\d_])[\w-]{5,80}(?![\w@])|(?<![\w.,:/-])\d{6,30}(?![\w.,:/-])")
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:T[\d:.+Z-]*)?")
_AT = re.compile(r"\s?[(\[{]\s?(?:at|@)\s?[)\]}]\s?", re.IGNORECASE)
_DOT = re.compile(r"\s?[(\[{]\s?(?:dot|\.)\s?[)\]}]\s?", re.IGNORECASE)
_WORD_AT = re.compile(r"(?<=\w) at (?=(?:[\w-]+\.)+[^\W\d_]{2,24}\b)", re.IGNORECASE)
_REPLY = re.compile(r"\b(?:reply|answer|respond|write back|antworte|beantworte|réponds|responde)\b", re.IGNORECASE)
_FROM = re.compile(r"^[> \t]*(?:from|von|de): ([^\n]+)", re.IGNORECASE | re.MULTILINE)
_FIELDS = re.compile(
    r"\b(?:its|the|their|his|her) (?:number|id|title|name|subject|headline|status|date|price|deadline|version)s?\b",
    re.IGNORECASE,
)

FROM_FOREIGN = "stands in text of a tool, a program or the web, and in no message or memory of yours in this prompt"
FROM_NOBODY = "stands in no message of yours, and in no memory of yours in this prompt"


@dataclass(frozen=True)
class ActRules:
    """The rules on acts, for the texts of one prompt."""

    rules: OutboundRules

    def find_foreign_part(self, arguments: Mapping[str, object]) -> str | None:
        """Return which part of an act text of others gives, and no text of the person; None if there is none."""
        texts = self.rules.texts
        values = list(iter_strings(arguments)) if texts.foreign or texts.reported else ()
        for value in values:
            if recipient := self._find_foreign_recipient(value):
                origin = FROM_FOREIGN if stands_in(recipient, self._foreign_text) else FROM_NOBODY
                return f"{recipient} {origin}"
        foreign = self._list_foreign(values)
        is_field = _FIELDS.search(texts.asked) and self.rules.names_recipients(values)
        contents = (one for one in map(self._drop_names, values) if not (is_field and _is_short(one)))
        return (
            f"its content {FROM_FOREIGN}" if any(self._is_foreign_content(one, foreign) for one in contents) else None
        )

    @cached_property
    def _trusted_text(self) -> str:
        text = "\n".join(self.rules.trusted)
        return fold(f"{text}\n{read_addresses(text)}")

    @cached_property
    def _foreign_text(self) -> str:
        return fold("\n".join((*self.rules.texts.foreign, *self.rules.texts.reported)))

    @cached_property
    def _own_words(self) -> list[str]:
        return split_tokens(self._trusted_text)

    @cached_property
    def _sender(self) -> str:
        """Return the address of the pasted mail that the person asks to reply to; an empty text if there is none."""
        texts = self.rules.texts
        match = _FROM.search(texts.pasted) if _REPLY.search(texts.asked) else None
        return next(iter(EMAIL.findall(match[1])), "") if match else ""

    def _list_foreign(self, values: Sequence[str]) -> tuple[str, ...]:
        """Return the texts of others, without that of a file which the act writes and the person names."""
        named = {one for one in values if one in self.rules.texts.asked}
        own = {text for argument, text in self.rules.texts.outputs if argument in named and len(argument) > 3}
        return tuple(one for one in self.rules.texts.foreign if one not in own)

    def _find_foreign_recipient(self, value: str) -> str | None:
        """Return a recipient in an argument of an act that text of others gives, and no text of the person."""
        is_whole, value = len(value.split()) == 1, read_addresses(value)
        hosts = (split_link(one.url).host for one in find_links(value))
        addresses = (*EMAIL.findall(value), *HANDLE.findall(value), *NUMBER.findall(value))
        for one in (*addresses, *(host for host in hosts if not self.rules.names_host(host))):
            is_unknown = bool(self.rules.texts.foreign) and (one in addresses or is_whole)
            is_known = stands_in(one, self._trusted_text) or fold(one) == fold(self._sender)
            if not is_known and (is_unknown or stands_in(one, self._foreign_text)):
                return one
        for one in (*_PATH.findall(value), *_ID.findall(_DATE.sub(" ", value))):
            name = re.split(r"[\\/]", one.rstrip("/\\"))[-1]
            is_given = stands_in(one, self._trusted_text) or stands_in(name, self._trusted_text)
            if not (is_given or self._describes(name)) and stands_in(one, self._foreign_text):
                return one
        return None

    def _describes(self, name: str) -> bool:
        """Return whether all long words in the name of a file are in the message that the turn answers."""
        words = {one for one in split_tokens(name.partition(".")[0]) if len(one) > 3 and one.isalpha()}
        return bool(words) and "." in name and words <= self.rules.asked_words

    def _is_foreign_content(self, value: str, foreign: Sequence[str]) -> bool:
        """Return whether a text repeats text of others, word by word or most words of one sentence."""
        words, others = split_tokens(value), (*foreign, *self.rules.texts.reported)
        if len(words) < RUN_WORDS:
            says_much = len(words) > 2 or (len(words) > 1 and all(len(one) > 4 for one in words))
            stands = says_much and stands_in(value, fold("\n".join(foreign)))
            return stands and not stands_in(value, self._trusted_text)
        theirs = set(_runs(words)) - set(_runs(self._own_words))
        if theirs and any(not theirs.isdisjoint(_runs(split_tokens(one))) for one in others):
            return True
        topics = {stem_word(one) for one in words if is_topic(one)}
        own = set(map(stem_word, self._own_words))
        sentences = (set(map(stem_word, split_tokens(one))) for text in foreign for one in split_sentences(text))
        return any(len(found := topics & one - own) >= 4 and 2 * len(found) >= len(topics) for one in sentences)

    def _drop_names(self, text: str) -> str:
        """Return a text without what is a recipient and no content: addresses, paths, numbers, dates, named links."""
        for link in reversed(find_links(text)):
            if self.rules.names_host(split_link(link.url).host):
                text = f"{text[: link.start]} {text[link.end :]}"
        for pattern in (_DATE, EMAIL, HANDLE, _PATH, _ID, NUMBER):
            text = pattern.sub(" ", text)
        return text.strip()


def read_addresses(text: str) -> str:
    """Return a text with addresses in their usual form.

    >>> read_addresses("ann(at)mail.example, bob%40mail(dot)example, eve at mail.example")
    'ann@mail.example, bob@mail.example, eve@mail.example'
    """
    plain = _DOT.sub(".", _AT.sub("@", unicodedata.normalize("NFKC", unquote(text))))
    return _WORD_AT.sub("@", plain) if len(plain.split()) <= MAX_LIST_WORDS else plain


def _is_short(text: str) -> bool:
    return len(text.split()) <= MAX_FIELD_WORDS


def _runs(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return (tuple(words[n : n + RUN_WORDS]) for n in range(len(words) - RUN_WORDS + 1))
