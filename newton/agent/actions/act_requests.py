"""Kinds of acts, such as to send or to pay: those that a person's own words ask for, and those of a tool. Pure.

A request has its verb where a request has it. So what a person asks about, denies, or tells of others asks for nothing.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from newton.agent.actions.outbound_rules import PromptTexts
from newton.content.yaml_files import parse_trusted
from newton.text.languages import ENGLISH, detect_languages, load_language
from newton.text.letters import fold, fold_characters, remove_accents
from newton.text.sentences import STOP_WORDS, split_sentences
from newton.text.stems import stem_word

MAX_ENDING = 6  # characters of a word behind its beginning
MAX_CONSENT_WORDS = 8
MAX_VOCATIVE_WORDS = 2  # before a colon: "Please: send it"
NAMED_BY = 3  # words behind a verb that may name its object
CRITICAL = ("delete", "pay", "share", "run")  # a tool with a word of one of these only is of this kind
UNSPACED = ("ja", "zh")  # languages without spaces between words

# What a message asks to do, by the kind of act.
ACTS = {
    "send": "send a message",
    "pay": "pay or order",
    "delete": "delete or cancel",
    "write": "write or change",
    "schedule": "schedule",
    "run": "run or install",
    "switch": "switch or set",
    "share": "share or publish",
}

_JOINT = re.compile(
    r"(?P<and>\s(?:and|und|y|e|et|en|и|or|oder|o|ou|of|или)\s)|[,;]\s|\s[-–—]\s|(?P<colon>[:：](?=\s|$))"
)
_CONTENT_COMMA = re.compile(r",\s+(?=(?:dass|dat|che)\s)", re.IGNORECASE)  # "Ich möchte, dass du"
_ENCLITIC = re.compile(r"(?:me|mi|moi|nos)$")  # "dime", "dis-moi"
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*|\d[\d.,]*|@?[\w.+-]+@[\w.-]+")
_LIST_MARK = re.compile(r"^[-*•\s]+(?:\[[^\]\n]*\]\s*)?")


@dataclass(frozen=True)
class AskedActs:
    """The kinds of acts that a text asks for, and the words that name what is to be done: verbs and objects."""

    kinds: frozenset[str] = frozenset()
    verbs: frozenset[str] = frozenset()
    objects: frozenset[str] = frozenset()

    def join(self, other: "AskedActs") -> "AskedActs":
        return AskedActs(self.kinds | other.kinds, self.verbs | other.verbs, self.objects | other.objects)

    def covers(self, name: str, description: str) -> bool:
        """Return whether the acts have the kind of a tool; of one without a known kind, the verb that it is called by.

        >>> acts = read_request("Send Vera the list and water the tomatoes.")
        >>> [acts.covers(one, "") for one in ("send_mail", "pay_bill", "water_bed", "tomato_shredder")]
        [True, False, True, False]
        """
        named = {stem_word(one) for one in split_name(name)}
        if kinds := find_tool_kinds(name, description):
            return not kinds.isdisjoint(self.kinds)
        first = next(iter(split_sentences(description)), "")
        words = named | {stem_word(one) for one in _WORD.findall(fold(first))}
        return not words.isdisjoint(self.verbs) or (bool(self.kinds) and not named.isdisjoint(self.objects))


@dataclass
class _SentenceReader:
    """Reads the clauses of one sentence in order."""

    languages: frozenset[str]
    is_question: bool
    is_polite: bool = False
    is_final: bool = False
    is_stated: bool = False
    found: AskedActs = field(default_factory=AskedActs)

    def read(self, text: str, joint: str) -> None:
        clause, is_final = self._open(text)
        words = _WORD.findall(clause)
        if joint != "and":
            self.is_stated = False
        first = fold(words[0]) if words else ""
        is_object = is_final and first in _load().articles
        if words and first in _load().subjects and not is_object:
            self.is_stated = True
        elif words and not self.is_stated and (self.is_polite or not self.is_question):
            self.found = self.found.join(_read_clause(words, self.languages, is_final=is_final))

    def _open(self, text: str) -> tuple[str, bool]:
        """Return a clause without its openings, which hold for the clauses behind it, too.

        Return with it whether its verb may be at its end.
        """
        lexicon, folded = _load(), fold_characters(text).strip(" ¿¡\"'(")
        is_opened = True
        while is_opened:
            is_opened = False
            for patterns, is_polite, is_final in lexicon.openings:
                if match := patterns.match(remove_accents(folded)):
                    folded, is_opened = folded[match.end() :].lstrip(" ,"), True
                    self.is_polite = self.is_polite or is_polite
                    self.is_final = self.is_final or is_final
        return folded, self.is_final or lexicon.final.search(folded) is not None


def read_request(text: str, *, whole: str = "") -> AskedActs:
    """Return the acts that a person's own words ask for; the language is that of the `whole` text, if it is given.

    >>> said = ("Send Vera the list.", "Should I send it?", "Don't send it.", "The mail says that I pay and send it.")
    >>> [sorted(read_request(one).kinds) for one in said]
    [['send'], [], [], []]
    """
    found, languages = AskedActs(), _find_languages(whole or text)
    for sentence in split_sentences(text):
        found = found.join(_read_sentence(_LIST_MARK.sub("", sentence), languages))
    return found


def _find_languages(text: str) -> frozenset[str]:
    """Return the languages that a text may be in; none, for all, if no word shows which one."""
    found = frozenset(detect_languages(text))
    is_shown = found != {ENGLISH} or any(one in load_language(ENGLISH).words for one in _WORD.findall(fold(text)))
    return found if is_shown else frozenset()


@lru_cache(maxsize=512)
def _read_sentence(sentence: str, languages: frozenset[str]) -> AskedActs:
    if _load().han.search(sentence):
        return _read_unspaced(sentence)
    sentence = _CONTENT_COMMA.sub(" ", sentence)
    is_question = sentence.rstrip(" \"'”»)").endswith("?")
    reader, start, joint = _SentenceReader(languages, is_question), 0, ""
    for match in [*_JOINT.finditer(sentence), None]:
        clause = sentence[start : match.start() if match else len(sentence)]
        if match is None and len(clause.split()) <= MAX_VOCATIVE_WORDS and start and clause.rstrip().endswith("?"):
            break  # a tag: "Send it, ok?"
        reader.read(clause, joint)
        if match and match["colon"] and len(clause.split()) > MAX_VOCATIVE_WORDS:
            break  # a text that the sentence presents
        start, joint = (match.end(), "and" if match["and"] else "") if match else (0, "")
    return reader.found


def _read_clause(words: Sequence[str], languages: frozenset[str], *, is_final: bool) -> AskedActs:
    """Return the acts of a clause whose verb is its first word or, if that may be at its end, one of its last."""
    lexicon = _load()
    plain = [fold(one) for one in words]
    told = next((n for n, word in enumerate(plain) if n and word in lexicon.contents), len(words))
    if not lexicon.negations.isdisjoint(plain[: 2 if ENGLISH in languages else told]):
        return AskedActs()
    verbs = [words[0], *(words[max(1, told - 2) : told] if is_final else ())]
    kinds = frozenset[str]().union(*(lexicon.find_kinds(one, languages) for one in verbs))
    said = plain[1 : NAMED_BY + 2]
    objects = [one for one in said if lexicon.find_nouns(one) or one not in STOP_WORDS | lexicon.subjects][:NAMED_BY]
    named = frozenset[str]().union(*map(lexicon.find_nouns, objects))
    if any(fold(word) in lexicon.light for word in verbs):
        kinds |= named
    if not lexicon.read.isdisjoint(objects[:1]):
        kinds -= {"switch"}
    if lexicon.me & {*plain[1:2]} or (ENGLISH not in languages and _ENCLITIC.search(plain[0])):
        kinds -= {"send", "write", "share"} - named
    named_by = frozenset(map(stem_word, objects if kinds else ()))
    return AskedActs(kinds, frozenset(stem_word(fold(one)) for one in verbs), named_by)


def _read_unspaced(sentence: str) -> AskedActs:
    """Return the acts that a sentence in Japanese or Chinese script asks for."""
    lexicon, kinds = _load(), set[str]()
    code = "ja" if re.search(r"[\u3040-\u30ff]", sentence) else "zh"
    rules = lexicon.unspaced[code]
    if re.search(rules["refusal"], sentence) or not re.search(rules["request"], sentence.rstrip("。！!. ")):
        return AskedActs()
    text = re.sub(rules["me"], " ", sentence)
    for kind, words in lexicon.stems[code].items():
        kinds |= {kind} if any(word in text for word in words) else set()
    return AskedActs(frozenset(kinds))


def is_consent(text: str) -> bool:
    """Return whether a message only agrees to what was proposed.

    >>> [is_consent(one) for one in ("Yes, please do that.", "Ja bitte", "What is that?", "Yes, but not Klaus.")]
    [True, True, False, False]
    """
    words = re.findall(r"[\w'’-]+", fold(text))
    lexicon = _load()
    is_short = 0 < len(words) <= MAX_CONSENT_WORDS and "?" not in text
    return is_short and not lexicon.yes.isdisjoint(words) and lexicon.yes | lexicon.also >= {*words}


def list_offers(text: str) -> frozenset[str]:
    """Return the kinds of acts in the questions of a reply of the assistant: "Shall I send her the list?"."""
    lexicon = _load()
    asked = [one for one in split_sentences(text) if one.rstrip().endswith(("?", "？"))]
    return frozenset(
        kind
        for one in asked
        for kind in (
            *(kind for word in _WORD.findall(fold_characters(one)) for kind in lexicon.find_kinds(word)),
            *(kind for code in UNSPACED for kind, words in lexicon.stems[code].items() if any(w in one for w in words)),
        )
    )


def names_act(word: str) -> bool:
    """Return whether a folded word is a verb or a noun of acts, or what is read: it names no item and no field."""
    lexicon = _load()
    return word in lexicon.read or bool(lexicon.find_nouns(word) or lexicon.find_kinds(word, (ENGLISH,)))


def split_name(name: str) -> list[str]:
    """Return the words of the name of a tool.

    >>> split_name("sendMail_to-user")
    ['send', 'mail', 'to', 'user']
    """
    return [fold(one) for one in re.findall(r"[^\W\d_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name))]


@lru_cache(maxsize=512)
def find_tool_kinds(name: str, description: str) -> frozenset[str]:
    """Return the kinds of acts of a tool, by its name, else by its description; any of them is enough.

    >>> sorted(find_tool_kinds("cancel_order", "")), sorted(find_tool_kinds("book_table", ""))
    (['delete'], ['pay', 'schedule'])
    """
    found = [_load().find_tool_word(word) for word in split_name(name)]
    if not any(found):
        sentence = next(iter(split_sentences(description)), "")
        found = [_read_sentence(sentence.rstrip("?"), frozenset((ENGLISH,))).kinds]
    for kind in CRITICAL:
        if frozenset((kind,)) in found:
            return frozenset((kind,))
    return frozenset[str]().union(*found)


def find_unasked(texts: PromptTexts, name: str, description: str) -> str | None:
    """Return why a call of a tool that acts is not what the person asks for; None if it is.

    Without text of others in the prompt, the model follows nobody else. To a short consent belong the message before it
    and what the assistant offers.
    """
    if not texts.foreign:
        return None
    asked = AskedActs()
    for text in texts.requests:
        asked = asked.join(read_request(text, whole=f"{text}\n{texts.asked}"))
    if texts.requests and is_consent(texts.requests[0]):
        asked = asked.join(read_request(texts.earlier)).join(AskedActs(list_offers(texts.offer)))
    if asked.covers(name, description):
        return None
    kinds = find_tool_kinds(name, description)
    what = " or ".join(ACTS[one] for one in ACTS if one in kinds) or f"what {name} does"
    return f"text of others is in the prompt, and your message does not ask to {what}"


@dataclass(frozen=True)
class _ActLexicon:
    """The words of requests, folded."""

    stems: Mapping[str, Mapping[str, tuple[str, ...]]]  # by language and kind
    nouns: Mapping[str, frozenset[str]]
    light: frozenset[str]
    subjects: frozenset[str]
    articles: frozenset[str]
    negations: frozenset[str]
    contents: frozenset[str]
    me: frozenset[str]
    read: frozenset[str]
    yes: frozenset[str]
    also: frozenset[str]
    past: Mapping[str, "re.Pattern[str]"]
    openings: Sequence[tuple["re.Pattern[str]", bool, bool]]
    final: "re.Pattern[str]"
    unspaced: Mapping[str, Mapping[str, str]]
    han: "re.Pattern[str]"

    def find_kinds(self, word: str, languages: Iterable[str] = ()) -> frozenset[str]:
        """Return the kinds of acts that a verb asks for, in some languages or, without them, in all."""
        folded = fold(word)
        return frozenset(
            kind
            for code in languages or self.stems
            if code not in UNSPACED and not (code in self.past and self.past[code].search(word))
            for kind, stems in self.stems.get(code, {}).items()
            if (folded in stems if code == ENGLISH else _begins(folded, stems))
        )

    def find_nouns(self, word: str) -> frozenset[str]:
        forms = (word, word.removesuffix("s"))
        return frozenset(kind for kind, words in self.nouns.items() if not words.isdisjoint(forms))

    def find_tool_word(self, word: str) -> frozenset[str]:
        """Return the kinds of a word of the name of a tool, as an English one if it is one."""
        return self.find_kinds(word, (ENGLISH,)) or self.find_nouns(word) or self.find_kinds(word)


def _begins(word: str, stems: Iterable[str]) -> bool:
    return any(word.startswith(one) and len(word) <= len(one) + (MAX_ENDING if len(one) > 3 else 2) for one in stems)


@cache
def _load() -> _ActLexicon:
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
    return _ActLexicon(
        stems={code: {kind: read(one[code], code) for kind, one in kinds.items()} for code in codes},
        nouns={kind: words(text) for kind, text in data["nouns"].items()},
        **{
            name: words(data[name]) for name in ("light", "subjects", "articles", "negations", "contents", "me", "read")
        },
        yes=words(data["consent"]["agree"]),
        also=words(data["consent"]["also"]),
        past={code: re.compile(text) for code, text in data["past"].items()},
        openings=[(patterns(name), polite, final) for name, polite, final in (*openings, ("final_polite", True, True))],
        final=re.compile(r"\b(?:bitte|graag|alsjeblieft)\b"),
        unspaced={code: data[code] for code in UNSPACED},
        han=re.compile(r"[\u3040-\u30ff\u3400-\u9fff]"),
    )
