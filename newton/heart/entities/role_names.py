"""Roles by which a person calls somebody theirs, such as "my girlfriend" and "meine Freundin", and who has them. Pure.

`role_words.yaml` has the words of ten languages. A role has one name in all of them: that in English with "my".
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from importlib.resources import files
from itertools import chain
from typing import Any, NamedTuple

from newton.content.yaml_files import parse_trusted
from newton.text.languages import load_known_words, load_language
from newton.text.pasted_text import mask_pasted_text
from newton.text.words import COMMON_WORDS

_CAPITAL = r"(?-i:[^\W\d_a-zа-яёß-öø-ÿ])"
_NAME = rf"(?P<name>{_CAPITAL}[\w’-]+(?: {_CAPITAL}[\w’-]+)?)(?!\w)"
_KANA = r"[\u30a0-\u30ff・]{2,}"
_UNSPACED_NAME = (
    rf"(?P<name>[A-Za-zÀ-ɏ][A-Za-zÀ-ɏ'-]*|{_KANA}|[\u4e00-\u9fff]{{2,3}}?(?=$|[，。、,.\s]|です|という|さん))"
)
GERMAN, NO_WORDS = "de", frozenset[str]()
_GROUPS = ("ended", "name", "named")
_ADJECTIVES = ("ung", "heit", "keit", "ish", "ian", "ese")  # endings of words that are no names


class RoleHolder(NamedTuple):
    """A name to which a text gives a role, or whose role it says to be over; a shared role may have several holders."""

    role: str
    name: str
    is_over: bool
    is_shared: bool


class _RolePatterns(NamedTuple):
    """The patterns of a language, and words that are no names behind a role without more."""

    mention: re.Pattern[str]
    holders: tuple[re.Pattern[str], ...]
    nouns: frozenset[str]


@lru_cache(maxsize=256)
def find_roles(text: str) -> tuple[str, ...]:
    """Return the roles that a text names, without those that have ended.

    >>> find_roles("Was schenke ich meiner Freundin?"), find_roles("My ex-girlfriend called, and Ana's wife.")
    (('my girlfriend',), ())
    """
    matches = (match for one in _load_patterns() for match in one.mention.finditer(text))
    return tuple(dict.fromkeys(_name_role(match) for match in matches if not match["ended"]))


def name_role(text: str) -> str:
    """Return the role that a text is, in its common form; a text that is no role as it is.

    >>> name_role("meiner Freundin"), name_role("Lien")
    ('my girlfriend', 'Lien')
    """
    matches = (one.mention.fullmatch(text.strip()) for one in _load_patterns())
    return next((_name_role(match) for match in matches if match and not match["ended"]), text)


def find_holders(text: str) -> list[RoleHolder]:
    """Return who has a role of the writer by a text, without what is pasted into it.

    >>> [tuple(one)[:3] for one in find_holders("Meine neue Freundin heißt Sarah. Lien is my ex-girlfriend.")]
    [('my girlfriend', 'Lien', True), ('my girlfriend', 'Sarah', False)]
    >>> find_holders("My wife is Belgian. Mit meiner Freundin Sport machen.")
    []
    """
    return list(dict.fromkeys(_iter_holders(mask_pasted_text(text))))


def _iter_holders(text: str) -> Iterator[RoleHolder]:
    for patterns in _load_patterns():
        if not patterns.mention.search(text):
            continue
        for match in (one for pattern in patterns.holders for one in pattern.finditer(text)):
            role, name = _name_role(match), " ".join(match["name"].split())
            is_bare = match.groupdict().get("named") == ""
            if not _is_word(name, known=patterns.nouns if is_bare else NO_WORDS):
                is_shared = role.removeprefix("my ") in _read_data()["shared"].split()
                yield RoleHolder(role, name, bool(match["ended"]), is_shared)


def _name_role(match: re.Match[str]) -> str:
    return next(f"my {name}" for name, said in match.groupdict().items() if said and name not in _GROUPS)


def _is_word(name: str, *, known: frozenset[str]) -> bool:
    """Return whether what may be a name is an ordinary word."""
    return any(one in COMMON_WORDS or one in known or one.endswith(_ADJECTIVES) for one in name.casefold().split())


@cache
def _read_data() -> Mapping[str, Any]:
    return parse_trusted(files("newton.heart.entities").joinpath("role_words.yaml").read_text(encoding="utf-8"))


@cache
def _load_patterns() -> tuple[_RolePatterns, ...]:
    """Return the patterns of each language."""
    languages = _read_data()["languages"].items()
    return tuple(_compile_words(words, code) for code, words in languages)


def _compile_words(words: Mapping[str, Any], code: str) -> _RolePatterns:
    is_spaced = load_language(code).is_spaced
    gap, name = (" ", _NAME) if is_spaced else ("", _UNSPACED_NAME)
    roles = "|".join(f"(?P<{role}>{form})" for role, form in words["roles"].items())
    role = rf"(?:{words['own']}){gap}(?:(?:{words['new']}){gap})?(?P<ended>{words['ended']})?(?:{roles})"
    role = rf"(?<!\w){role}(?!\w)" if is_spaced else role
    forms = [
        rf"{role}(?P<named>{words['named']}){gap}{name}",
        rf"{role}(?:{words.get('equals', words['is'])}){gap}{name}(?=\s*[.,!;]|$)",
        rf"{name}(?:,|{words['is']}){gap}{role}",
    ]
    forms = [one for one in forms if is_spaced or one != forms[2]]
    holders = tuple(re.compile(one, re.IGNORECASE) for one in forms)
    known = chain.from_iterable(load_known_words().values()) if code == GERMAN else ()  # nouns have a capital
    return _RolePatterns(re.compile(role, re.IGNORECASE), holders, frozenset((*known, *load_language(code).words)))
