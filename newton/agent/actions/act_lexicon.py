"""Words by which people ask for acts, in ten languages, from `act_words.yaml`. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from newton.content.yaml_files import parse_trusted
from newton.text.languages import ENGLISH
from newton.text.letters import fold

MAX_ENDING = 6  # characters of a word behind its beginning
UNSPACED = ("ja", "zh")  # languages without spaces between words
WORD_LISTS = (
    *("vague", "light", "topics", "replies", "tellings", "manners", "questions", "nouns_before", "told_by"),
    *(
        "subjects",
        "articles",
        "negations",
        "contents",
        "me",
        "read",
        "dates",
        "entrances",
        "first_persons",
        "locks",
        "calendars",
        "into",
    ),
)  # of the lexicon


@dataclass(frozen=True)
class ActLexicon:
    """The words of requests, folded. What they are for, the file says."""

    stems: Mapping[str, Mapping[str, tuple[str, ...]]]  # by language and kind
    nouns: Mapping[str, frozenset[str]]
    vague: frozenset[str]
    light: frozenset[str]
    topics: frozenset[str]
    replies: frozenset[str]
    tellings: frozenset[str]
    manners: frozenset[str]
    questions: frozenset[str]
    nouns_before: frozenset[str]
    told_by: frozenset[str]
    subjects: frozenset[str]
    articles: frozenset[str]
    negations: frozenset[str]
    contents: frozenset[str]
    me: frozenset[str]
    read: frozenset[str]
    dates: frozenset[str]
    entrances: frozenset[str]
    first_persons: frozenset[str]
    locks: frozenset[str]
    calendars: frozenset[str]
    into: frozenset[str]
    yes: frozenset[str]
    also: frozenset[str]
    joints: Mapping[str, Sequence[str]]
    past: Mapping[str, "re.Pattern[str]"]
    openings: Sequence[tuple["re.Pattern[str]", bool, bool]]
    final: "re.Pattern[str]"
    retold: "re.Pattern[str]"
    idioms: "re.Pattern[str]"
    admissions: "re.Pattern[str]"
    referring: "re.Pattern[str]"
    to_you: "re.Pattern[str]"
    unspaced: Mapping[str, Mapping[str, str]]
    han: "re.Pattern[str]"

    def find_kinds(self, word: str, languages: Iterable[str] = (), *, is_told: bool = False) -> frozenset[str]:
        """Return the kinds of acts that a verb asks for, or tells, in some languages or, without them, in all."""
        folded = fold(word)
        return frozenset(
            kind
            for code in languages or self.stems
            if code not in UNSPACED and (is_told or not (code in self.past and self.past[code].search(word)))
            for kind, stems in self.stems.get(code, {}).items()
            if (folded in stems if code == ENGLISH else _begins(folded, stems))
        )

    def is_no_request(self, words: Sequence[str], content_start: int, *, is_english: bool) -> bool:
        """Return whether a clause denies, has a noun in place of its verb, or asks for a reply in the chat."""
        if not self.negations.isdisjoint(words[: 2 if is_english else content_start]):
            return True
        is_noun = is_english and not self.nouns_before.isdisjoint(words[1:2])
        is_manner = not self.manners.isdisjoint(words[1:2]) and not {"to", "an"} & {*words}
        is_reply = (
            (content_start == 1 and self.first_persons.isdisjoint(words[2:3]))
            or is_manner
            or (content_start == 2 and len(words[1]) == 1)
            or not self.questions.isdisjoint(words)
        )
        is_alone = len(words) == 1 and words[0] in self.tellings
        return is_noun or is_alone or (len(words) > 1 and _begins(words[0], self.replies) and is_reply)

    def has_recipient(self, words: Sequence[str], languages: Iterable[str]) -> bool:
        """Return whether the words behind "write" say to whom: "Vera a mail", "to Vera", and not "a summary"."""
        to = {"to", "an", "aan"} | ({"a"} if ENGLISH not in languages else set())
        is_named = bool(words) and words[0] not in self.subjects | self.articles | self.contents
        return is_named or not to.isdisjoint(words)

    def has_read(self, word: str) -> bool:
        """Return whether a folded word is of what is read: a page, a mail."""
        return word in self.read or word.replace("-", "") in self.read

    def is_in_calendar(self, words: Sequence[str]) -> bool:
        """Return whether words end with a calendar as the place where something is to be put."""
        return words[-1] in self.calendars and not self.into.isdisjoint(words[-3:-1])

    def find_nouns(self, word: str) -> frozenset[str]:
        forms = (word, word.removesuffix("s"))
        return frozenset(kind for kind, words in self.nouns.items() if not words.isdisjoint(forms))

    def find_tool_word(self, word: str) -> frozenset[str]:
        """Return the kinds of a word of the name of a tool, as an English one if it is one."""
        return self.find_kinds(word, (ENGLISH,)) or self.find_nouns(word) or self.find_kinds(word)


def _begins(word: str, stems: Iterable[str]) -> bool:
    return any(word.startswith(one) and len(word) <= len(one) + (MAX_ENDING if len(one) > 3 else 2) for one in stems)


@cache
def load_lexicon() -> ActLexicon:
    """Return the words by which people ask for acts."""
    data: dict[str, Any] = parse_trusted(
        files("newton.agent.actions").joinpath("act_words.yaml").read_text(encoding="utf-8")
    )

    def words(text: str) -> frozenset[str]:
        return frozenset(fold(text).split())

    def read(text: str, code: str) -> tuple[str, ...]:
        return tuple((text if code in UNSPACED else fold(text)).split())

    def patterns(name: str) -> "re.Pattern[str]":
        return re.compile("|".join(data[name]))

    kinds: dict[str, dict[str, str]] = data["kinds"]
    codes = list(next(iter(kinds.values())))
    openings = [("openings", False, False), ("final_openings", False, True), ("polite", True, False)]
    return ActLexicon(
        stems={code: {kind: read(one[code], code) for kind, one in kinds.items()} for code in codes},
        nouns={kind: words(text) for kind, text in data["nouns"].items()},
        **{name: words(data[name]) for name in WORD_LISTS},
        yes=words(data["consent"]["agree"]),
        also=words(data["consent"]["also"]),
        joints={code: text.split() for code, text in data["joints"].items()},
        past={code: re.compile(text) for code, text in data["past"].items()},
        openings=[(patterns(name), polite, final) for name, polite, final in (*openings, ("final_polite", True, True))],
        final=re.compile(r"\b(?:bitte|graag|alsjeblieft)\b"),
        retold=patterns("retold"),
        idioms=patterns("idioms"),
        admissions=patterns("admissions"),
        referring=patterns("referring"),
        to_you=patterns("to_you"),
        unspaced={code: data[code] for code in UNSPACED},
        han=re.compile(r"[\u3040-\u30ff\u3400-\u9fff]"),
    )
