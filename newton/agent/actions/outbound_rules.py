"""Rules on what may leave in a link or in the arguments of a call, by comparison with the texts of the prompt. Pure.

A secret leaves in neither. A link carries no text of memory to a host that neither the person nor a memory of theirs
names.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import cast

from newton.agent.actions.link_text import (
    LinkParts,
    compact,
    find_links,
    shift_to_a,
    spell_digits,
    split_link,
    turn_forms,
)
from newton.memory.hygiene import find_labelled_secrets, has_secret
from newton.text.encoded_parts import list_decoded
from newton.text.letters import fold
from newton.text.sentences import STOP_WORDS
from newton.text.stems import stem_word
from newton.text.words import COMMON_WORDS, split_words

MIN_CODE_CHARS, MIN_PHONE_DIGITS = 4, 7
MIN_SPLIT_CHARS, MIN_GLUED_CHARS = 6, 8  # of a word of memory that is split over the parts of a link, or within one
MAX_NEW_CHARS = 5  # of short pieces that a link has beside the text in which its host is named
SHINGLE_CHARS, MIN_RUN_CHARS = 10, 12  # of words without separators
SPECIFIC, PLAIN = 2, 1  # the weight of a name or a number, and of another word
ENOUGH, ENOUGH_FOREIGN, ENOUGH_PUBLIC = 2, 1, 4  # weight of words of one memory that a link may not reach
MAX_NESTING = 2  # links in links
MAX_DECODED_CHARS, MAX_DEPTH, MAX_DECODED = 4_000, 3, 400  # of a text that is decoded, and the number of results

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


# A password of several words, behind its label
_PHRASE = re.compile(
    r"(?:passwor[dt]|passphrase|kennwort|mot de passe|contraseña|clave|parola d'ordine|senha|wachtwoord|пароль)"
    r"[^.!?:=\n]{0,40}?(?::|=|\b(?:is|ist|lautet|est|es|è|é|e|was|to)\b|—|-)\s*[\"'“„«]?"
    r"((?:[\w'-]+ ){1,7}[\w'-]+)(?=[\"'”“».,;!?\n]|$)",
    re.IGNORECASE,
)
EMAIL = re.compile(r"[\w.+-]{1,64}@(?:(?:[\w-]{1,63}\.)+[\w-]{2,24}|xn--[\w-]{2,60})")
HANDLE = re.compile(r"(?<![\w.@/])@[\w.-]{2,40}\b")
NUMBER = re.compile(r"(?<![\w.-])(?:\+\d[\d ()/-]{6,18}\d|0\d(?:[ ()/-]?\d){7,13})(?![\w-])")
_TO_NUMBER = re.compile(r"(?:tel|sms|smsto|callto|facetime):[-+\d().%\s]+", re.IGNORECASE)
CHANNEL = re.compile(r"(?<![\w&/])#[^\W\d][\w-]{1,40}")


@dataclass(frozen=True)
class PromptTexts:
    """The texts of a prompt by who they are from.

    `asked` is the message that the turn answers, and `pasted` the text of others in it; `said` are earlier messages of
    the person, `known` memories with the trust of a person, `system` the lines of the system prompt that are theirs,
    `memory` all text from memory, and `foreign` text of tools and the web. `reported` is text of assistants, of
    programs and of the definitions of tools: that of others for acts only. `outputs` are arguments of calls, each with
    the text that the call returned. `requests` are the person's own words that may ask for an act: those of the message
    without what it quotes, and their rules. To a short consent belong `earlier`, the message before it, and `offer`,
    the reply that it answers. `agreed` is what of that reply the message takes over, and `turn` are the texts by which
    the person names whom and what an act is for. `sent` are the arguments of the earlier calls of the session, of all
    and by tool.
    """

    asked: str = ""
    said: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    system: str = ""
    memory: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    reported: tuple[str, ...] = ()
    pasted: str = ""
    outputs: tuple[tuple[str, str], ...] = ()
    requests: tuple[str, ...] = ()
    earlier: str = ""
    offer: str = ""
    agreed: str = ""
    turn: tuple[str, ...] = ()
    sent: tuple[str, ...] = ()

    def count_chars(self) -> int:
        return sum(map(len, (self.asked, *self.said, *self.known, *self.memory, *self.foreign, *self.reported)))


@dataclass(frozen=True)
class OutboundRules:
    """The rules, for the texts of one prompt."""

    texts: PromptTexts

    def find_link_problem(self, url: str, *, nesting: int = 0) -> str | None:
        """Return why a link may not leave, in words that follow "because"; None if it may."""
        link = split_link(url)
        if self._repeats(url, self.trusted):
            return None
        joined = "".join(link.values)
        plain = set[str]().union(*map(decode, {*link.values, joined, " ".join(link.values), link.host}))
        forms = turn_forms(plain)
        spelled = spell_digits(" ".join((*link.values, link.host)))
        if self._has_secret(forms, joined, spelled) or any(map(has_secret, (url, *plain))):
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
            return any(host in fold(text) for text in self.trusted)
        names = _main_names(host)
        site = find_public_site(host)
        is_called = site is not None and site.split(".")[-2] in self.asked_words
        return is_called or not names.isdisjoint(self._named_hosts)

    def _find_memory_problem(self, link: LinkParts, forms: Iterable[str]) -> str | None:
        if self._carries_memory(link, forms):
            return f"it carries text from memory to {link.host}, which neither you nor your memory names"
        if self._is_composed(link):
            return f"it carries more than the text in which {link.host} is named, and you have not named this host"
        return None

    @cached_property
    def trusted(self) -> tuple[str, ...]:
        return (self.texts.asked, *self.texts.said, *self.texts.known, self.texts.system)

    @cached_property
    def foreign_text(self) -> str:
        return fold("\n".join(self.texts.foreign))

    @cached_property
    def _named_hosts(self) -> frozenset[str]:
        return find_hosts(self.trusted)

    @cached_property
    def asked_words(self) -> frozenset[str]:
        return frozenset(split_tokens(self.texts.asked))

    @cached_property
    def codes(self) -> frozenset[str]:
        """Return the secrets that the prompt has, without separators: codes of a household are kept in memory."""
        text = "\n".join((*self.trusted, *self.texts.memory, *self.texts.foreign))
        found = map(
            compact, (*find_secrets("\n".join((*self.trusted, *self.texts.memory))), *find_labelled_secrets(text))
        )
        return frozenset(code for code in found if len(code) >= MIN_CODE_CHARS)

    @cached_property
    def _weighed(self) -> list[dict[str, int]]:
        """Return the words of each line of memory, and of what was said before, with their weights."""
        lines = {line for text in (*self.texts.memory, *self.texts.said) for line in text.splitlines()}
        return [{word: n for word, n in _weigh(line) if word not in self.asked_words} for line in lines]

    @cached_property
    def _memories(self) -> list[dict[str, int]]:
        return [{stem_word(word): n for word, n in words.items()} for words in self._weighed if words]

    @cached_property
    def _shingles(self) -> frozenset[str]:
        lines = {line for text in (*self.texts.memory, *self.texts.said) for line in text.splitlines()}
        return frozenset(_shingle("\n".join(lines))) - frozenset(_shingle(self.texts.asked))

    @cached_property
    def _foreign_words(self) -> frozenset[str]:
        return frozenset(split_tokens(self.foreign_text))

    def _repeats(self, url: str, texts: Iterable[str]) -> bool:
        """Return whether a link stands in one of the texts as it is."""
        if _TO_NUMBER.fullmatch(url):
            number = re.sub(r"\D", "", url)
            return len(number) >= MIN_PHONE_DIGITS and any(number in re.sub(r"\D", "", text) for text in texts)
        pattern = re.compile(
            re.escape(re.sub(r"^(?:https://|(?:mailto|xmpp|sips?|callto|skype):)", "", url)) + r"(?![\w/?#&=%+~-])"
        )
        return any(pattern.search(text) for text in texts)

    def _has_secret(self, forms: Iterable[str], joined: str, spelled: Iterable[str]) -> bool:
        digits = (re.sub(r"\D", "", joined), *spelled)
        if any(code.isdigit() and code in one for code in self.codes for one in digits):
            return True
        return bool(self.codes) and any(code in text for text in map(compact, forms) for code in self.codes)

    def _carries_memory(self, link: LinkParts, forms: Iterable[str]) -> bool:
        base, labels = self._split_host(link.host)
        own = {stem_word(one) for one in (*split_tokens(base), *_URL_WORDS)}
        tokens = {stem_word(one) for form in {*forms, *labels} for one in split_tokens(form)} - own
        weights = [sum(words[one] for one in tokens & words.keys()) for words in self._memories]
        limit = self._find_limit(link.host, base)
        if max(weights, default=0) >= limit or (limit == ENOUGH_FOREIGN and self._hides_word(link, labels)):
            return True
        runs = {run for form in forms for run in (*_RUN.findall(fold(form)), *_join_short(form))}
        return any(not self._shingles.isdisjoint(_shingle(run)) for run in runs)

    def _find_limit(self, host: str, base: str) -> int:
        """Return the weight of words of one memory that a link to a host may not reach."""
        if find_public_site(host):
            return ENOUGH_PUBLIC
        return ENOUGH if host == "form" or (base in self._memory_hosts and base not in self._foreign_hosts) else 1

    def _split_host(self, host: str) -> tuple[str, tuple[str, ...]]:
        """Return the domain of a host, the longest that foreign text names, and the labels that may carry text."""
        local, _, domain = host.rpartition("@")
        labels = domain.split(".")
        ends = [".".join(labels[n:]) for n in range(len(labels) - 1)]
        base = next((one for one in ends if one in self._foreign_hosts), ".".join(labels[-2:]))
        extra = domain.removesuffix(base).rstrip(".").split(".")
        return base, tuple(one for one in (local, *extra) if one and not _USUAL_SUBDOMAIN.fullmatch(f"{one}."))

    @cached_property
    def _foreign_hosts(self) -> frozenset[str]:
        return find_hosts(self.texts.foreign)

    @cached_property
    def _memory_hosts(self) -> frozenset[str]:
        return find_hosts((*self.texts.memory, *self.texts.reported))

    @cached_property
    def _long_words(self) -> frozenset[str]:
        words = {word for line in self._weighed for word in line if len(word) >= MIN_SPLIT_CHARS and word.isalpha()}
        return frozenset(words) - _URL_WORDS

    @cached_property
    def _shifted_words(self) -> frozenset[str]:
        return frozenset(map(shift_to_a, self._long_words))

    def _hides_word(self, link: LinkParts, labels: Iterable[str]) -> bool:
        """Return whether a link has a word of memory with rotated letters, split over its parts, or glued to others."""
        tokens = {one for value in (*link.values, *labels) for one in split_tokens(value)}
        shifted = {shift_to_a(one) for one in tokens if len(one) >= MIN_SPLIT_CHARS and one.isalpha()}
        if not self._shifted_words.isdisjoint(shifted):
            return True
        joined = tuple(map(fold, (*link.joined, "".join(labels))))
        found = {word for word in self._long_words if any(word in one for one in joined)}
        return any(len(word) >= MIN_GLUED_CHARS or not any(word in one for one in tokens) for word in found)

    def _is_composed(self, link: LinkParts) -> bool:
        """Return whether a link to a host that only foreign text names has words that no text of the prompt has."""
        base, labels = self._split_host(link.host)
        if base not in self._foreign_hosts:
            return False
        known = self.asked_words | self._foreign_words | _URL_WORDS
        new = [one for value in (*link.values, *labels) for one in split_tokens(value) if one not in known]
        is_long = any(len(one) >= (3 if one.isdigit() else 4) for one in new)
        return is_long or sum(map(len, new)) > MAX_NEW_CHARS


def find_secrets(text: str) -> list[str]:
    """Return the secrets that a text of the person names by a label, also passwords of several words.

    >>> find_secrets("The Wi-Fi password is tulip harbour 55. Read the page.")
    ['tulip harbour 55']
    """
    return [*find_labelled_secrets(text), *(match[1].strip() for match in _PHRASE.finditer(text))]


def decode(text: str) -> list[str]:
    return list_decoded(text[:MAX_DECODED_CHARS], depth=MAX_DEPTH, limit=MAX_DECODED)


def find_hosts(texts: Iterable[str]) -> frozenset[str]:
    """Return the hosts that texts name."""
    return frozenset(host.removeprefix("www.") for text in texts for host in _HOST.findall(text.casefold()))


def stands_in(part: str, folded: str) -> bool:
    """Return whether a folded text has a part as whole words."""
    return re.search(rf"(?<!\w){re.escape(fold(part))}(?!\w)", folded) is not None


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
            weight = SPECIFIC if is_name else PLAIN * is_topic(word)
        if weight:
            yield word, weight


def is_topic(word: str) -> bool:
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


def iter_strings(value: object) -> Iterator[str]:
    """Yield the strings of a JSON value, and its numbers as strings."""
    return (text for _, text in iter_named_strings(value))


def iter_named_strings(value: object, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield the strings of a JSON value, and its numbers as strings, each with the name of its field in lower case."""
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, Mapping):
        for key, one in cast("Mapping[str, object]", value).items():
            yield from iter_named_strings(one, key.casefold())
    elif isinstance(value, list):
        for one in cast("list[object]", value):
            yield from iter_named_strings(one, name)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield name, json.dumps(value)
