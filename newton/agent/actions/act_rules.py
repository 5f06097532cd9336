"""Rules on whose word an act follows for its recipient and its content, by the texts of the prompt. Pure.

An act does not follow the text of anybody but the person under a permission that was given before.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from urllib.parse import unquote

from newton.agent.actions.act_lexicon import load_lexicon
from newton.agent.actions.act_requests import find_taken, names_nothing
from newton.agent.actions.link_text import find_links, split_link, turn_forms
from newton.agent.actions.named_fields import LABELS, NamedFields, TurnNames
from newton.agent.actions.outbound_rules import (
    CHANNEL,
    EMAIL,
    HANDLE,
    NUMBER,
    OutboundRules,
    is_topic,
    iter_named_strings,
    split_tokens,
    stands_in,
)
from newton.agent.actions.person_names import (
    FILE,
    MOMENT,
    NUMERAL,
    RECIPIENTS,
    PersonNames,
    list_numbers,
    normalize_path,
)
from newton.heart.reconciliation.citations import divide_by_trust
from newton.text.encoded_parts import list_decoded
from newton.text.letters import fold
from newton.text.sentences import split_sentences
from newton.text.stems import stem_word
from newton.text.time_expressions import find_mentioned_times, remove_times
from newton.text.words import split_words

RUN_WORDS = 5  # of a content that repeats another text
MAX_FIELD_WORDS = 15  # of a content that is named fields of what was read, such as a number and a title
MAX_LIST_WORDS = 6  # of an argument in which "at" may stand for the sign of an address

# Arguments that hold a text, and those that say how an act is done; others say to whom, where, when or how much.
_TEXTS = split_words("body caption comment content description html message note query subject summary text title")
_SETTINGS = split_words("base color format kind lang language level mode priority severity state status type unit")
_PLACES = re.compile(r"attach|dir|file|folder|path", re.IGNORECASE)  # in the names of arguments that are files

_PATH = re.compile(r"(?<![\w:/.])(?:~|\.{0,2}|[A-Za-z]:)?[\\/][^\s\"'<>|:*?]{3,400}|(?<![\w:/.@])[\w.-]+(?:/[\w.@-]+)+")
_ID = re.compile(r"(?<![\w.@/-])(?=[\w-]*\d)(?=[\w-]*[^\W\d_])[\w-]{5,80}(?![\w@])|(?<![\w.,:/-])\d{6,30}(?![\w.,:/-])")
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:[\d:.+Z-]*)?")
_LIST_MARK = re.compile(r"[;\n]|,(?!\d)|\s(?:and|und|y|et|e|en|и)\s")
_AT = re.compile(r"\s?[(\[{]\s?(?:at|@)\s?[)\]}]\s?", re.IGNORECASE)
_DOT = re.compile(r"\s?[(\[{]\s?(?:dot|\.)\s?[)\]}]\s?", re.IGNORECASE)
_WORD_AT = re.compile(r"(?<=\w) at (?=(?:[\w-]+\.)+[^\W\d_]{2,24}\b)", re.IGNORECASE)
# An address of which also the last sign is a word: "ann at mail dot example"
_SPELLED = re.compile(
    r"(?<![\w.+-])(?P<local>[\w.+-]{1,64})\s+(?:at|@|bei|chez|arroba|arobase|chiocciola|apenstaartje|собака)\s+"
    r"(?P<domain>(?:[\w-]{1,63}\s+(?:dot|\.|punkt|point|punto|ponto|punt|точка)\s+)+[^\W\d_]{2,24})\b",
    re.IGNORECASE,
)
_REPLY = re.compile(
    r"\b(?:reply|answer|respond|write back|antwort|beantwort|répon|respon|contest|rispon|antwoord|ответ)\w*|返信|回复",
    re.IGNORECASE,
)
# How a message names the writer of a mail: "to Vera", "Vera's mail", "Mail von Vera"
_WRITER = (
    r"(?:\b(?:to|from|by|von|vom|an|de|del|a|di|da|van|aan|от|reply|answer|antworte|reponds|responde|rispondi)\s+(?:\w+\s)?"
    r"{name}\b|\b{name}(?:['’]?s)\s+(?:\w+\s)?\w*(?:mail|message|nachricht|bericht|letter|brief)|{name}(?:さん)?(?:の|に)|{name}的)"
)
_FROM = re.compile(r"^[> \t]*(?:from|von|de): ([^\n]+)", re.IGNORECASE | re.MULTILINE)
_HEADER = re.compile(r"\s*(?:[\w-]+: [^\n]*\n){0,9}?(?:from|von|de): ([^\n]+)", re.IGNORECASE)
_FIELDS = re.compile(
    r"\b(?:its|the|their|his|her)(?: [\w-]+)?"
    r" (?:number|id|title|name|subject|headline|status|date|price|deadline|version)s?\b",
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
        named = list(iter_named_strings(arguments))
        fields, taken = NamedFields(texts.turn, texts.foreign), find_taken(texts)
        named = [one for one in named if not _is_taken(*one, taken)]
        values = [value for _, value in named]
        is_field = bool(_FIELDS.search(texts.asked)) and self._names_recipients(values)
        for name, value in named:
            is_asked = is_field and name in _TEXTS and _is_short(value)
            is_given = "date" in taken and not RECIPIENTS.search(name) and _is_short(value)
            recipient = self._find_foreign_recipient(value) or (None if is_given else self._find_unnamed(name, value))
            recipient = recipient or (None if is_asked else self._find_foreign_id(value))
            if recipient and not fields.describes(recipient):
                origin = FROM_FOREIGN if stands_in(recipient, self._foreign_text) else FROM_NOBODY
                return f"{recipient} {origin}"
        foreign = tuple(form for one in self._list_foreign(values) for form in turn_forms(list_decoded(one, depth=2)))
        is_short_taken = is_field or "date" in taken
        contents = (one for one in map(self._drop_names, values) if not (is_short_taken and _is_short(one)))
        return (
            f"its content {FROM_FOREIGN}" if any(self._is_foreign_content(one, foreign) for one in contents) else None
        )

    def find_unnamed_part(self, tool: str, description: str, arguments: Mapping[str, object]) -> str | None:
        """Return whom or what a call is for, if no words of this turn name it.

        Without text of others in the prompt, all words of the person name it, and only a recipient must be named.
        """
        texts, trusted = self.rules.texts, (*self.rules.trusted, self.rules.texts.agreed)
        fields, taken = NamedFields(texts.turn, texts.foreign), find_taken(texts)
        if not texts.foreign:
            own = (texts.asked, *texts.said, *texts.known, *texts.turn)
            names = TurnNames(replace(texts, turn=own), (self._trusted_text,), "")
            invented = names.find_invented(tool, description, list(iter_named_strings(arguments)))
            return f"{invented} {FROM_NOBODY}" if invented else None
        named = [
            (name, value)
            for name, value in iter_named_strings(arguments)
            if name not in (_TEXTS | _SETTINGS) - LABELS
            and not _is_time(value)
            and not _is_taken(name, value, taken)
            and not ("date" in taken and not RECIPIENTS.search(name))
            and not fields.describes(value)
            and fold(value) != fold(self._sender)
        ]
        found = TurnNames(texts, trusted, self._foreign_text).find_unnamed(tool, description, named)
        return f"your message does not name {found}" if found else None

    @cached_property
    def _names(self) -> PersonNames:
        texts = self.rules.texts
        return PersonNames(texts.asked, (texts.asked, texts.agreed, *texts.said, *texts.known), texts.system)

    @cached_property
    def _divided(self) -> tuple[str, str]:
        return divide_by_trust("\n".join((*self.rules.trusted, self.rules.texts.agreed)))

    @cached_property
    def _trusted_text(self) -> str:
        text = self._divided[0]
        return fold(f"{text}\n{read_addresses(text)}")

    @cached_property
    def _foreign_text(self) -> str:
        text = "\n".join((*self.rules.texts.foreign, *self.rules.texts.reported, self._divided[1]))
        return fold(f"{text}\n{read_addresses(text)}")

    @cached_property
    def _own_words(self) -> list[str]:
        return split_tokens(self._trusted_text)

    @cached_property
    def _sender(self) -> str:
        """Return the address of the mail that the person asks to reply to, pasted or named; "" if there is none.

        A mail is named by a name of its sender, as it is displayed; a page is no mail.
        """
        texts = self.rules.texts
        if not _REPLY.search(texts.asked):
            return ""
        is_open = names_nothing(texts.requests[0]) if texts.requests else False
        read = [text for argument, text in texts.outputs if not find_links(argument)]
        named = [match[1] for match in map(_HEADER.match, read) if match and self._names_sender(match[1])]
        if is_open and not named:  # "reply that I will come", after one mail
            named = [match[1] for match in map(_HEADER.match, read) if match and not self._is_known_otherwise(match[1])]
        senders = [*(match[1] for match in [_FROM.search(texts.pasted)] if match), *named]
        found = {next(iter(EMAIL.findall(one)), "") for one in senders}
        return found.pop() if len(found) == 1 else ""

    def _names_sender(self, header: str) -> bool:
        """Return whether the message names the sender of a mail as its writer, and memory has no other address."""
        shown, asked = (
            split_tokens(header.partition("<")[0]),
            fold("\n".join((self.rules.texts.asked, *self.rules.texts.turn))),
        )
        names = [one for one in shown if len(one) > 2 and re.search(_WRITER.format(name=re.escape(one)), asked)]
        return bool(names) and not self._is_known_otherwise(header, names)

    def _is_known_otherwise(self, header: str, names: Sequence[str] = ()) -> bool:
        """Return whether memory has another address of the sender of a mail."""
        names = names or [one for one in split_tokens(header.partition("<")[0]) if len(one) > 2]
        lines = [line for text in self.rules.trusted for line in fold(text).splitlines()]
        known = [line for line in lines if EMAIL.search(line) and any(stands_in(one, line) for one in names)]
        return any(one not in line for line in known for one in EMAIL.findall(fold(header)))

    def _names_recipients(self, values: Sequence[str]) -> bool:
        """Return whether a call has addresses, and the person or their memory names all of them."""
        found = [one for value in values for form in (EMAIL, HANDLE, CHANNEL) for one in form.findall(value)]
        return bool(found) and all(stands_in(one, self._trusted_text) for one in found)

    def _list_foreign(self, values: Sequence[str]) -> tuple[str, ...]:
        """Return the texts of others, without that of a file which the act writes and the person names."""
        named = {one for one in values if one in self.rules.texts.asked}
        own = {text for argument, text in self.rules.texts.outputs if argument in named and len(argument) > 3}
        return tuple(one for one in self.rules.texts.foreign if one not in own)

    def _find_foreign_recipient(self, value: str) -> str | None:
        """Return a recipient in an argument of an act that text of others gives, and no text of the person."""
        is_whole, said, value = len(value.split()) == 1, value, read_addresses(value)
        hosts = (split_link(one.url).host for one in find_links(value))
        addresses = (*EMAIL.findall(value), *HANDLE.findall(value), *NUMBER.findall(value))
        for one in (*addresses, *(host for host in hosts if not self.rules.names_host(host))):
            is_hidden = one in addresses and one not in said
            is_unknown = is_hidden or (bool(self.rules.texts.foreign) and (one in addresses or is_whole))
            is_known = stands_in(one, self._trusted_text) or fold(one) == fold(self._sender)
            if not is_known and (is_unknown or stands_in(one, self._foreign_text)):
                return one
        return None

    def _find_foreign_id(self, value: str) -> str | None:
        """Return a path or an id in an argument of an act that text of others gives, and no text of the person."""
        for one in _PATH.findall(value):
            if not self._names.has_path(one) and any(
                stands_in(form, self._foreign_text) for form in (one, normalize_path(one))
            ):
                return one
        ids = _ID.findall(_PATH.sub(" ", _DATE.sub(" ", value)))
        is_foreign = (not stands_in(one, self._trusted_text) and stands_in(one, self._foreign_text) for one in ids)
        return next((one for one, found in zip(ids, is_foreign, strict=True) if found), None)

    def _find_unnamed(self, name: str, value: str) -> str | None:
        """Return a name, a number, a time or a file in an argument that the person does not name.

        It stands in text of others. A file may also stand nowhere, such as one whose name was put together.
        """
        if name in _TEXTS | _SETTINGS or not self.rules.texts.foreign:
            return None
        parts = [one.strip() for one in _LIST_MARK.split(_DATE.sub(" ", value))]
        if any(len(split_tokens(one)) >= RUN_WORDS for one in parts):
            parts = []  # a text
        for part in parts:
            if not part or EMAIL.search(part) or HANDLE.search(part) or find_links(part):
                continue  # an address
            is_path = bool(_PATH.fullmatch(part)) and re.search(r"[^\W\d_]", part) is not None
            is_file = is_path or bool(_PLACES.search(name) and FILE.fullmatch(part))
            if is_file and not self._names.has_path(part, is_new=not stands_in(part, self._read_text)):
                return part
            is_recipient = RECIPIENTS.search(name) is not None and not NUMERAL.fullmatch(part)
            if is_recipient and not self._names.has_recipient(part, name):
                return part
            if not (is_file or is_recipient) and self._is_given(part) and not self._names.has_name(part):
                return part
        return None

    @cached_property
    def _read_text(self) -> str:
        return fold("\n".join(self.rules.texts.foreign))

    @cached_property
    def _read_numbers(self) -> frozenset[str]:
        return list_numbers(self.rules.texts.foreign)

    def _is_given(self, part: str) -> bool:
        """Return whether text of tools or the web has a short value, however its words are joined."""
        if NUMERAL.fullmatch(part):
            return not self._read_numbers.isdisjoint(list_numbers([part]))
        if _is_time(part) and not self._names.has_time:
            return False  # the time of what the person asks for
        words = r"[\s_.@-]?".join(map(re.escape, re.findall(r"[^\s_.@#-]+", fold(part))))
        return bool(words) and re.search(rf"(?<!\w){words}(?!\w)", self._read_text) is not None

    def _is_foreign_content(self, value: str, foreign: Sequence[str]) -> bool:
        """Return whether a text repeats text of others, word by word or most words of one sentence."""
        words, others = split_tokens(value), (*foreign, *self.rules.texts.reported)
        if len(words) < RUN_WORDS:
            says_much = len(words) > 2 or (len(words) > 1 and all(len(one) > 4 for one in words))
            stands = says_much and stands_in(value, fold("\n".join(foreign)))
            is_named = {*words} <= {*split_tokens(fold("\n".join(self.rules.texts.turn)))}
            return stands and not is_named and not stands_in(value, self._trusted_text)
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


def _is_time(part: str) -> bool:
    ranges = find_mentioned_times(part, moment=MOMENT)
    return bool(ranges) and not re.search(r"[^\W\d_]{3,}", remove_times(part, ranges))


def read_addresses(text: str) -> str:
    """Return a text with addresses in their usual form.

    >>> read_addresses("ann(at)mail.example, bob%40mail(dot)example, eve at mail.example, ian at mail dot example")
    'ann@mail.example, bob@mail.example, eve@mail.example, ian@mail.example'
    """
    plain = _DOT.sub(".", _AT.sub("@", unicodedata.normalize("NFKC", unquote(text))))
    plain = _SPELLED.sub(lambda match: f"{match['local']}@{'.'.join(match['domain'].split()[::2])}", plain)
    return _WORD_AT.sub("@", plain) if len(plain.split()) <= MAX_LIST_WORDS else plain


def _is_taken(name: str, value: str, taken: Set[str]) -> bool:
    """Return whether an argument is what the person's words leave open: the words of a summary, the door to open."""
    is_entrance = "entrance" in taken and {*split_tokens(fold(value))} <= load_lexicon().entrances
    return is_entrance or ("content" in taken and name in _TEXTS)


def _is_short(text: str) -> bool:
    return len(text.split()) <= MAX_FIELD_WORDS


def _runs(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return (tuple(words[n : n + RUN_WORDS]) for n in range(len(words) - RUN_WORDS + 1))
