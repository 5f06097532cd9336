"""Rules on what may leave in a link or in the arguments of a call, by comparison with the texts of the prompt. Pure.

A secret leaves in neither. A link carries no text of memory to a host that neither the person nor a memory of theirs
names. An act does not follow a text of a tool or the web, for its recipient or its content, under a permission that was
given before.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

from newton.agent.actions.link_text import LinkParts, compact, decode_forms, find_links, fold, split_link, turn_forms
from newton.memory.hygiene import find_labelled_secrets, has_secret
from newton.text.sentences import STOP_WORDS, split_sentences
from newton.text.stems import stem_word
from newton.text.words import COMMON_WORDS, split_words

MIN_CODE_CHARS = 4
SHINGLE_CHARS, MIN_RUN_CHARS = 10, 12  # of words without separators
RUN_WORDS = 5  # of a content that repeats another text
SPECIFIC, PLAIN = 2, 1  # the weight of a name or a number, and of another word
ENOUGH, ENOUGH_FOREIGN, ENOUGH_PUBLIC = 2, 1, 4  # weight of words of one memory that a link may not reach
MAX_NESTING = 2  # links in links

# Public sites that a person names by a word. To them a link may carry a word that memory has too.
PUBLIC_SITES = split_words("""
wikipedia.org google.com bing.com duckduckgo.com youtube.com github.com gitlab.com openstreetmap.org amazon.com
idealo.de ebay.com imdb.com arxiv.org pypi.org npmjs.com crates.io docs.rs stackoverflow.com docs.python.org
developer.mozilla.org learn.microsoft.com postgresql.org readthedocs.io spotify.com reddit.com booking.com deepl.com
""")
_SITE_PART = re.compile(r"(?:www|m|maps|[a-z]{2})\.")  # a form at docs.google.com belongs to anybody
_USUAL_SUBDOMAIN = re.compile(r"(?:www|m|docs?|api|help|support|maps|shop|blog|developer|status|[a-z]{2})\.")
_URL_WORDS = split_words("""
api article articles asp blog com doc docs gif htm html http https image images img index item items jpg lang latest
list net news org page pages pdf php png post posts query search stable svg user users view wiki www
""")
_HOST = re.compile(
    r"(?<![\w@.-])(?:[\w-]{1,63}\.)+[^\W\d_]{2,24}(?![\w-])|\blocalhost\b|(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}\b"
)
_TOKEN = re.compile(r"\d[\d.,:'/-]*\d|\d|[^\W\d_]+")
_RUN = re.compile(rf"[^\W_]{{{MIN_RUN_CHARS},}}")
_YEAR = re.compile(r"(?:19|20)\d\d")
_EMAIL = re.compile(r"[\w.+-]{1,64}@(?:[\w-]{1,63}\.)+[\w-]{2,24}")
_HANDLE = re.compile(r"(?<![\w.@/])@[\w.-]{2,40}\b")
_PATH = re.compile(r"(?<![\w:/.])(?:~|\.{0,2}|[A-Za-z]:)?[\\/][^\s\"'<>|:*?]{3,400}|(?<![\w:/.@])[\w.-]+(?:/[\w.@-]+)+")
_NUMBER = re.compile(r"(?<![\w.-])(?:\+\d[\d ()/-]{6,18}\d|0\d(?:[ ()/-]?\d){7,13})(?![\w-])")
_ID = re.compile(r"(?<![\w.@/-])(?=[\w-]*\d)(?=[\w-]*[^\W\d_])[\w-]{5,80}(?![\w@])|(?<![\w.,:/-])\d{6,30}(?![\w.,:/-])")
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:T[\d:.+Z-]*)?")

FROM_FOREIGN = "stands in text of a tool or the web, and in no message or memory of the person"


@dataclass(frozen=True)
class PromptTexts:
    """The texts of a prompt by who they are from.

    `asked` is the message that the turn answers, `said` earlier messages of the person, `known` memories with the trust
    of a person, `memory` all text from memory, and `foreign` text of tools and the web.
    """

    asked: str = ""
    said: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    memory: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()

    def count_chars(self) -> int:
        return sum(map(len, (self.asked, *self.said, *self.known, *self.memory, *self.foreign)))


@dataclass(frozen=True)
class OutboundRules:
    """The rules, for the texts of one prompt."""

    texts: PromptTexts

    def find_link_problem(self, url: str, *, nesting: int = 0) -> str | None:
        """Return why a link may not leave, in words that follow "because"; None if it may."""
        link = split_link(url)
        if self._repeats(url, self._trusted):
            return None
        joined = "".join(link.values)
        plain = set[str]().union(*map(decode_forms, {*link.values, joined, " ".join(link.values), link.host}))
        forms = turn_forms(plain)
        if self._has_secret(forms, joined) or any(map(has_secret, (url, *plain))):
            return "it carries a secret or a code"
        inner = {one.url for form in forms for one in find_links(form)} - {url} if nesting < MAX_NESTING else ()
        problems = (self.find_link_problem(one, nesting=nesting + 1) for one in inner)
        if problem := next(filter(None, problems), None):
            return problem
        is_free = self.names_host(link.host) or self._repeats(url, self.texts.foreign)
        return None if is_free else self._find_memory_problem(link, forms)

    def names_host(self, host: str) -> bool:
        """Return whether the person or a memory of theirs names a host, or the domain of one of its usual parts."""
        if "@" in host:
            return any(host in fold(text) for text in self._trusted)
        names = _main_names(host)
        site = find_public_site(host)
        is_called = site is not None and site.split(".")[-2] in self._asked_words
        return is_called or not names.isdisjoint(self._named_hosts)

    def find_argument_problem(self, arguments: Mapping[str, object]) -> str | None:
        """Return why a call with these arguments, also one that only reads, is to be asked about; None if it is not."""
        values = list(iter_strings(arguments))
        texts = (*values, " ".join(values), json.dumps(arguments, ensure_ascii=False))
        if any(self._has_code_in_text(text) or has_secret(text) for text in texts):
            return "its arguments carry a secret or a code"
        for link in (link for value in values for link in find_links(value)):
            if problem := self.find_link_problem(link.url):
                return f"of the link to {split_link(link.url).host}: {problem}"
        return None

    def _find_memory_problem(self, link: LinkParts, forms: Iterable[str]) -> str | None:
        if self._carries_memory(link, forms):
            return f"it carries text from memory to {link.host}, which neither you nor your memory names"
        if self._is_composed(link):
            return f"it carries more than the text in which {link.host} is named, and you have not named this host"
        return None

    def find_foreign_part(self, arguments: Mapping[str, object]) -> str | None:
        """Return which part of an act foreign text gives, and no text of the person; None if there is none."""
        values = list(iter_strings(arguments)) if self.texts.foreign else ()
        recipient = next(filter(None, map(self._find_foreign_recipient, values)), None)
        if recipient:
            return f"{recipient} {FROM_FOREIGN}"
        return (
            f"its content {FROM_FOREIGN}" if any(self._is_foreign_content(_drop_names(one)) for one in values) else None
        )

    @cached_property
    def _trusted(self) -> tuple[str, ...]:
        return (self.texts.asked, *self.texts.said, *self.texts.known)

    @cached_property
    def _trusted_text(self) -> str:
        return fold("\n".join(self._trusted))

    @cached_property
    def _foreign_text(self) -> str:
        return fold("\n".join(self.texts.foreign))

    @cached_property
    def _named_hosts(self) -> frozenset[str]:
        return frozenset(host.removeprefix("www.") for text in self._trusted for host in _HOST.findall(text.casefold()))

    @cached_property
    def _asked_words(self) -> frozenset[str]:
        return frozenset(split_tokens(self.texts.asked))

    @cached_property
    def _codes(self) -> frozenset[str]:
        """Return the secrets that the prompt has, without separators: codes of a household are kept in memory."""
        text = "\n".join((*self._trusted, *self.texts.memory, *self.texts.foreign))
        found = map(compact, find_labelled_secrets(text))
        return frozenset(code for code in found if len(code) >= MIN_CODE_CHARS)

    @cached_property
    def _memories(self) -> list[dict[str, int]]:
        """Return the words of each line of memory, and of what was said before, with their weights."""
        lines = {line for text in (*self.texts.memory, *self.texts.said) for line in text.splitlines()}
        weighed = ({stem_word(word): n for word, n in _weigh(line) if word not in self._asked_words} for line in lines)
        return [words for words in weighed if words]

    @cached_property
    def _shingles(self) -> frozenset[str]:
        lines = {line for text in (*self.texts.memory, *self.texts.said) for line in text.splitlines()}
        return frozenset(_shingle("\n".join(lines))) - frozenset(_shingle(self.texts.asked))

    @cached_property
    def _foreign_words(self) -> frozenset[str]:
        return frozenset(split_tokens(self._foreign_text))

    def _repeats(self, url: str, texts: Iterable[str]) -> bool:
        """Return whether a link stands in one of the texts as it is."""
        pattern = re.compile(re.escape(url.removeprefix("https://").removeprefix("mailto:")) + r"(?![\w/?#&=%+~-])")
        return any(pattern.search(text) for text in texts)

    def _has_secret(self, forms: Iterable[str], joined: str) -> bool:
        digits = re.sub(r"\D", "", joined)
        if any(code.isdigit() and code in digits for code in self._codes):
            return True
        return bool(self._codes) and any(code in text for text in map(compact, forms) for code in self._codes)

    def _has_code_in_text(self, text: str) -> bool:
        """Return whether a text, or what it decodes to, has a code of the prompt, also with separators in it."""
        patterns = [r"(?<!\w)" + r"[\W_]{0,3}".join(map(re.escape, code)) + r"(?!\w)" for code in self._codes]
        forms = map(fold, turn_forms(decode_forms(text))) if patterns else ()
        return any(re.search(pattern, form) for form in forms for pattern in patterns)

    def _carries_memory(self, link: LinkParts, forms: Iterable[str]) -> bool:
        own = frozenset(split_tokens(link.host)) | _URL_WORDS
        tokens = {stem_word(one) for form in {*forms, link.host} for one in split_tokens(form)} - set(
            map(stem_word, own)
        )
        weights = [sum(words[one] for one in tokens & words.keys()) for words in self._memories]
        limit = ENOUGH_PUBLIC if find_public_site(link.host) else ENOUGH
        limit = ENOUGH_FOREIGN if link.host in self._foreign_text else limit
        if max(weights, default=0) >= limit:
            return True
        runs = {run for form in forms for run in (*_RUN.findall(fold(form)), *_join_short(form))}
        return any(not self._shingles.isdisjoint(_shingle(run)) for run in runs)

    def _is_composed(self, link: LinkParts) -> bool:
        """Return whether a link to a host that only foreign text names has words that no text of the prompt has."""
        if link.host not in self._foreign_text:
            return False
        known = self._asked_words | self._foreign_words | _URL_WORDS
        new = {one for value in link.values for one in split_tokens(value)} - known
        return any(len(one) >= (3 if one.isdigit() else 4) for one in new)

    def _find_foreign_recipient(self, value: str) -> str | None:
        """Return a recipient in an argument of an act that foreign text gives, and no text of the person."""
        is_whole = len(value.split()) == 1
        hosts = (split_link(one.url).host for one in find_links(value))
        addresses = (*_EMAIL.findall(value), *_HANDLE.findall(value), *_NUMBER.findall(value))
        for one in (*addresses, *(host for host in hosts if not self.names_host(host))):
            is_address = one in addresses or is_whole
            if not self._stands(one, self._trusted_text) and (is_address or self._stands(one, self._foreign_text)):
                return one
        for one in (*_PATH.findall(value), *_ID.findall(_DATE.sub(" ", value))):
            name = re.split(r"[\\/]", one.rstrip("/\\"))[-1]
            is_given = self._stands(one, self._trusted_text) or self._stands(name, self._trusted_text)
            if not (is_given or self._describes(name)) and self._stands(one, self._foreign_text):
                return one
        return None

    def _describes(self, name: str) -> bool:
        """Return whether all long words in the name of a file are in the message that the turn answers."""
        words = {one for one in split_tokens(name.partition(".")[0]) if len(one) > 3 and one.isalpha()}
        return bool(words) and "." in name and words <= self._asked_words

    @staticmethod
    def _stands(part: str, text: str) -> bool:
        return re.search(rf"(?<!\w){re.escape(fold(part))}(?!\w)", text) is not None

    def _is_foreign_content(self, value: str) -> bool:
        """Return whether a text repeats foreign text, word by word or most words of one sentence."""
        words = split_tokens(value)
        ours = f"{self._trusted_text}\n{fold(chr(10).join(self.texts.memory))}"
        if len(words) < RUN_WORDS:
            says_much = len(words) > 2 or (len(words) > 1 and all(len(one) > 4 for one in words))
            return says_much and self._stands(value, self._foreign_text) and not self._stands(value, ours)
        own_words = split_tokens(ours)
        if set(_runs(words)) & set(_runs(split_tokens(self._foreign_text))) - set(_runs(own_words)):
            return True
        topics = {stem_word(one) for one in words if _is_topic(one)}
        sentences = (
            set(map(stem_word, split_tokens(one))) for text in self.texts.foreign for one in split_sentences(text)
        )
        own = set(map(stem_word, own_words))
        return any(len(found := topics & one - own) >= 4 and 2 * len(found) >= len(topics) for one in sentences)


def find_public_site(host: str) -> str | None:
    """Return the public site to which a host belongs; None if it is none.

    >>> find_public_site("en.wikipedia.org"), find_public_site("wikipedia.org.evil.example")
    ('wikipedia.org', None)
    """
    names = {host, _SITE_PART.sub("", host, count=1)}
    return next((site for site in PUBLIC_SITES if site in names), None)


def _main_names(host: str) -> frozenset[str]:
    """Return a host, and the domain of which it is a usual part, such as "docs" or "en"."""
    plain = host.removeprefix("www.")
    return frozenset((plain, _USUAL_SUBDOMAIN.sub("", plain, count=1)))


def split_tokens(text: str) -> list[str]:
    """Return the words and numbers of a text in lower case, without separators in numbers; camel case is split.

    >>> split_tokens("anaTakes 95,000-Euros_now")
    ['ana', 'takes', '95000', 'euros', 'now']
    """
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text)
    return [re.sub(r"[\W_]", "", one) for one in _TOKEN.findall(fold(spaced))]


def _weigh(line: str) -> Iterator[tuple[str, int]]:
    """Yield the words of a line of memory that say something, with their weights."""
    for raw in _TOKEN.findall(line):
        (word,) = split_tokens(raw.casefold()) or ("",)
        if word.isdigit():
            weight = SPECIFIC if len(word) >= MIN_CODE_CHARS and not _YEAR.fullmatch(word) else PLAIN * (len(word) > 1)
        else:
            is_name = raw[0].isupper() and len(word) > 2 and word not in COMMON_WORDS
            weight = SPECIFIC if is_name else PLAIN * _is_topic(word)
        if weight:
            yield word, weight


def _is_topic(word: str) -> bool:
    return len(word) > 3 and word not in STOP_WORDS and word not in COMMON_WORDS


def _shingle(text: str) -> Iterator[str]:
    for line in text.splitlines():
        run = compact(line)
        yield from (run[n : n + SHINGLE_CHARS] for n in range(len(run) - SHINGLE_CHARS + 1))


def _join_short(form: str) -> Iterator[str]:
    """Yield a text without separators if it consists of very short pieces, such as letters."""
    pieces = re.findall(r"[^\W_]+", form)
    if len(pieces) >= 4 and sum(map(len, pieces)) <= 2.5 * len(pieces):
        yield compact(form)


def _runs(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return (tuple(words[n : n + RUN_WORDS]) for n in range(len(words) - RUN_WORDS + 1))


def _drop_names(text: str) -> str:
    """Return a text without addresses, paths, numbers and dates, which are recipients and not content."""
    for pattern in (_DATE, _EMAIL, _HANDLE, _PATH, _ID, _NUMBER):
        text = pattern.sub(" ", text)
    return text.strip()


def iter_strings(value: object) -> Iterator[str]:
    """Yield the strings of a JSON value, and its numbers as strings."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for one in cast("Mapping[str, object]", value).values():
            yield from iter_strings(one)
    elif isinstance(value, list):
        for one in cast("list[object]", value):
            yield from iter_strings(one)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield json.dumps(value)
