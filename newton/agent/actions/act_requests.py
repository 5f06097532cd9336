"""Kinds of acts, such as to send or to pay: those that a person's own words ask for, and those of a tool. Pure.

A request has its verb where a request has it. So what a person asks about, denies, or tells of others asks for nothing.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from newton.agent.actions.act_lexicon import UNSPACED, load_lexicon
from newton.agent.actions.outbound_rules import PromptTexts
from newton.text.languages import ENGLISH, detect_languages, load_language
from newton.text.letters import fold, fold_characters, remove_accents
from newton.text.sentences import STOP_WORDS, split_sentences
from newton.text.stems import stem_word

MAX_CONSENT_WORDS = 8
MAX_VOCATIVE_WORDS = 2  # before a colon: "Please: send it"
TO_PERSON = frozenset(("send", "write", "share"))  # what the reply does, if it is for the person: "give me the list"
CRITICAL = ("delete", "pay", "share", "run")  # a tool with a word of one of these only is of this kind

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

_CONTENT_COMMA = re.compile(r",\s+(?=(?:dass|dat|che)\s)", re.IGNORECASE)  # "Ich möchte, dass du"
_ENCLITIC = re.compile(r"(?:me|mi|moi|nos)$")  # "dime", "dis-moi"
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*|\d[\d.,]*|@?[\w.+-]+@[\w.-]+")
_ELISION = re.compile(r"(?<!\w)(?:j|l|n|m|s|d|c|qu)['’](?=\w)")  # "j'envoie"
_MONEY = re.compile(r"[€$£]|\b(?:euros?|eur|dollars?|pounds?|francs?|franken|рубл\w*)\b")  # "send Tom 30 euros"
_LIST_MARK = re.compile(r"^[-*•\s]+(?:\[[^\]\n]*\]\s*)?")


@dataclass(frozen=True)
class AskedActs:
    """The kinds of acts that a text asks for, and the words that name what is to be done: verbs and objects.

    `vague` are kinds for which also the object must be that of a call: "turn it off", but "turn it into a table".
    """

    kinds: frozenset[str] = frozenset()
    vague: frozenset[str] = frozenset()
    verbs: frozenset[str] = frozenset()
    objects: frozenset[str] = frozenset()

    def join(self, other: "AskedActs") -> "AskedActs":
        return AskedActs(
            self.kinds | other.kinds, self.vague | other.vague, self.verbs | other.verbs, self.objects | other.objects
        )

    def covers(self, name: str, description: str, values: Iterable[str] = ()) -> bool:
        """Return whether the acts have the kind of a tool; of one without a known kind, the verb that it is called by.

        `values` are the arguments of the call.

        >>> acts = read_request("Send Vera the list and water the tomatoes.")
        >>> [acts.covers(one, "") for one in ("send_mail", "pay_bill", "water_bed", "tomato_shredder")]
        [True, False, True, False]
        """
        named = {stem_word(one) for one in split_name(name)}
        if kinds := find_tool_kinds(name, description):
            touched = named | {stem_word(one) for value in values for one in _WORD.findall(fold(value))}
            is_touched = not self.objects.isdisjoint(touched)
            return not kinds.isdisjoint(self.kinds) or (is_touched and not kinds.isdisjoint(self.vague))
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
    is_me: bool = False
    found: AskedActs = field(default_factory=AskedActs)

    def read(self, text: str, joint: str) -> None:
        clause, is_final = self._open(text)
        words = _WORD.findall(clause)
        if joint != "and":
            self.is_stated = False
        first = fold(words[0]) if words else ""
        is_object = is_final and first in load_lexicon().articles
        if words and first in load_lexicon().subjects and not is_object:
            self.is_stated = True
        elif words and not self.is_stated and (self.is_polite or not self.is_question):
            self.found = self.found.join(_read_clause(words, self.languages, is_final=is_final, is_me=self.is_me))

    def _open(self, text: str) -> tuple[str, bool]:
        """Return a clause without its openings, which hold for the clauses behind it, too.

        Return with it whether its verb may be at its end.
        """
        lexicon, folded = load_lexicon(), fold_characters(text).strip(" ¿¡\"'(")
        is_opened = True
        self.is_me = False
        while is_opened:
            is_opened = False
            for patterns, is_polite, is_final in lexicon.openings:
                if match := patterns.match(remove_accents(folded)):
                    self.is_me = self.is_me or not lexicon.me.isdisjoint(match[0].split())
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
    if load_lexicon().han.search(sentence):
        return _read_unspaced(sentence)
    sentence = _CONTENT_COMMA.sub(" ", sentence)
    is_question = sentence.rstrip(" \"'”»)").endswith("?")
    reader, start, joint = _SentenceReader(languages, is_question), 0, ""
    for match in [*_compile_joints(languages).finditer(sentence), None]:
        clause = sentence[start : match.start() if match else len(sentence)]
        if match is None and len(clause.split()) <= MAX_VOCATIVE_WORDS and start and clause.rstrip().endswith("?"):
            break  # a tag: "Send it, ok?"
        reader.read(clause, joint)
        if match and match["colon"] and len(clause.split()) > MAX_VOCATIVE_WORDS:
            break  # a text that the sentence presents
        start, joint = (match.end(), "and" if match["and"] else "") if match else (0, "")
    return reader.found


@lru_cache(maxsize=64)
def _compile_joints(languages: frozenset[str]) -> "re.Pattern[str]":
    """Return a pattern of what is between two clauses in some languages, or in all."""
    words = "|".join(
        word for code, words in load_lexicon().joints.items() if code in languages or not languages for word in words
    )
    return re.compile(rf"(?P<and>\s(?:{words})\s)|[,;]\s|\s[-–—]\s|(?P<colon>[:：](?=\s|$))")


def _read_clause(words: Sequence[str], languages: frozenset[str], *, is_final: bool, is_me: bool) -> AskedActs:
    """Return the acts of a clause whose verb is its first word or, if that may be at its end, its last.

    With `is_me`, what is asked for goes to the person.
    """
    lexicon = load_lexicon()
    plain = [fold(one) for one in words]
    told = next((n for n, word in enumerate(plain) if n and word in lexicon.contents), len(words))
    clause = " ".join(one for one in plain if one not in lexicon.also - {"in", "so", "for"})
    if lexicon.admissions.match(clause):
        return AskedActs(frozenset(("switch",)), objects=frozenset(map(stem_word, lexicon.entrances)))
    if lexicon.idioms.match(clause) or lexicon.is_no_request(plain, told, is_english=ENGLISH in languages):
        return AskedActs()
    verbs = [words[0], *(words[max(1, told - 1) : told] if is_final else ())]
    kinds = frozenset[str]().union(*(lexicon.find_kinds(one, languages) for one in verbs))
    topic = next((n for n, word in enumerate(plain) if n > 1 and word in lexicon.topics), told)
    objects = [one for one in plain[1:told] if one not in STOP_WORDS | lexicon.subjects]
    named = frozenset[str]().union(*map(lexicon.find_nouns, plain[1 : min(told, topic)]))
    if any(lexicon.is_in_calendar(plain[:n]) for n in range(2, told + 1)):
        named |= {"schedule"}
    vague = frozenset[str]()
    if any(fold(word) in lexicon.vague for word in verbs):
        is_told = not lexicon.told_by.isdisjoint(plain)
        named &= kinds if lexicon.light.isdisjoint(map(fold, verbs)) else named
        kinds, vague = named | (frozenset(("send",)) if is_told else frozenset()), kinds
    if {"send", "write"} <= kinds and not vague and not lexicon.has_recipient(plain[1:told], languages):
        kinds -= {"send"}
    if is_me or lexicon.me & {*plain[:2]} or (ENGLISH not in languages and _ENCLITIC.search(plain[0])):
        kinds, vague = kinds - (TO_PERSON - named), vague - TO_PERSON
    kinds |= {"pay"} if "send" in kinds and _MONEY.search(" ".join(plain[1 : min(told, topic)])) else set()
    named_by = frozenset(map(stem_word, objects if kinds | vague else ()))
    return AskedActs(kinds, vague, frozenset(stem_word(fold(one)) for one in verbs), named_by)


def _read_unspaced(sentence: str) -> AskedActs:
    """Return the acts that a sentence in Japanese or Chinese script asks for."""
    lexicon, kinds = load_lexicon(), set[str]()
    code = "ja" if re.search(r"[\u3040-\u30ff]", sentence) else "zh"
    rules = lexicon.unspaced[code]
    if re.search(rules["refusal"], sentence) or not (
        re.search(rules["request"], sentence.rstrip("。！!. "))
        or (code == "zh" and any(sentence.startswith(word) for words in lexicon.stems[code].values() for word in words))
    ):
        return AskedActs()
    if re.search(rules["me"], sentence):
        return AskedActs()
    for kind, words in lexicon.stems[code].items():
        kinds |= {kind} if any(word in sentence for word in words) else set()
    return AskedActs(frozenset(kinds))


def is_consent(text: str) -> bool:
    """Return whether a message only agrees to what was proposed.

    >>> [is_consent(one) for one in ("Yes, please do that.", "Ja bitte", "What is that?", "Yes, but not Klaus.")]
    [True, True, False, False]
    """
    words = re.findall(r"[\w'’-]+", fold(text))
    lexicon = load_lexicon()
    is_short = 0 < len(words) <= MAX_CONSENT_WORDS and "?" not in text
    return is_short and not lexicon.yes.isdisjoint(words) and lexicon.yes | lexicon.also >= {*words}


def names_nothing(text: str) -> bool:
    """Return whether a message asks for acts and does not say with which one: "Delete them.", "Pay the bill."."""
    acts, lexicon = read_request(text), load_lexicon()
    nouns = (lexicon.nouns[kind] for kind in ("send", "pay", "delete", "schedule"))
    filler = set(map(stem_word, lexicon.yes.union(lexicon.also, lexicon.read, lexicon.me, *nouns)))
    return bool(acts.kinds or acts.vague) and acts.objects <= filler and not lexicon.han.search(text)


def find_agreed(text: str, reply: str) -> str:
    """Return what of the reply before it a message takes over as the person's own words.

    A consent takes the questions, each with the sentence before it; "delete them", and "the two that you listed", all.

    >>> find_agreed("Yes, please.", "It is late. Tom is 5. Shall I write to him?")
    'Tom is 5. Shall I write to him?'
    """
    if not is_consent(text):
        return reply if names_nothing(text) or load_lexicon().referring.search(fold(text)) else ""
    told = split_sentences(reply)
    asked = {n for n, one in enumerate(told) if _is_question(one)}
    return " ".join(one.strip() for n, one in enumerate(told) if not asked.isdisjoint((n, n + 1)))


def find_taken(texts: PromptTexts) -> frozenset[str]:
    """Return what an act has without a name, by the person's words: content or a date of what was read, an entrance.

    A summary, a translation and what is forwarded are in the words of others by nature.
    """
    lexicon, taken = load_lexicon(), set[str]()
    asked = [fold(one) for one in (texts.asked, texts.agreed, texts.earlier) if one and one in texts.turn]
    words = {word for one in asked for word in _WORD.findall(one)}
    if any(lexicon.retold.search(one) for one in asked):
        taken.add("content")
    if words & lexicon.dates and any(lexicon.has_read(one) for one in words):
        taken.add("date")
    if any(frozenset(map(stem_word, lexicon.entrances)) <= read_request(one).objects for one in asked):
        taken.add("entrance")
    return frozenset(taken)


def _is_question(sentence: str) -> bool:
    return sentence.rstrip(" \"'”»)").endswith(("?", "？"))


def list_offers(text: str) -> frozenset[str]:
    """Return the kinds of acts in the questions of a reply of the assistant.

    >>> [sorted(list_offers(one)) for one in ("Shall I send her the list?", "Shall I send you the rest?")]
    [['send'], []]
    """
    return frozenset(kind for one in split_sentences(text) if _is_question(one) for kind in _list_offered(one))


def _list_offered(sentence: str) -> frozenset[str]:
    """Return the kinds of acts in a question of the assistant; what is for the person, its reply does."""
    lexicon, words = load_lexicon(), _WORD.findall(_ELISION.sub("", fold_characters(sentence)))
    kinds = frozenset(kind for word in words for kind in lexicon.find_kinds(word, is_told=True))
    kinds |= {
        kind for code in UNSPACED for kind, stems in lexicon.stems[code].items() if any(w in sentence for w in stems)
    }
    kinds |= {"pay"} if "send" in kinds and _MONEY.search(fold(sentence)) else set()
    return kinds - TO_PERSON if lexicon.to_you.search(fold(sentence)) else kinds


def names_act(word: str) -> bool:
    """Return whether a folded word is a verb or a noun of acts, or what is read: it names no item and no field."""
    lexicon = load_lexicon()
    return lexicon.has_read(word) or bool(lexicon.find_nouns(word) or lexicon.find_kinds(word, (ENGLISH,)))


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
    found = [load_lexicon().find_tool_word(word) for word in split_name(name)]
    if not any(found):
        sentence = next(iter(split_sentences(description)), "")
        found = [_read_sentence(sentence.rstrip("?"), frozenset((ENGLISH,))).kinds]
    for kind in CRITICAL:
        if frozenset((kind,)) in found:
            return frozenset((kind,))
    return frozenset[str]().union(*found)


def find_unasked(texts: PromptTexts, name: str, description: str, values: Iterable[str] = ()) -> str | None:
    """Return why a call of a tool that acts, with these arguments, is not what the person asks for; None if it is.

    Without text of others in the prompt, the model follows nobody else, so only what cannot be taken back is asked for,
    and what a short consent is to: to it belong the message before it and what the assistant offers.
    """
    is_alone, is_critical = not texts.foreign, _is_critical(name, description)
    is_agreed = bool(texts.requests) and is_consent(texts.requests[0])
    if is_alone and not is_critical and not is_agreed:
        return None
    asked = AskedActs()
    for text in texts.requests:
        asked = asked.join(read_request(text, whole=f"{text}\n{texts.asked}"))
    if is_agreed or (texts.requests and is_alone and _is_question(texts.offer)):
        asked = asked.join(read_request(texts.earlier)).join(AskedActs(list_offers(texts.offer)))
    if is_alone and not is_critical:
        asked = asked.join(_read_offer(texts))
    if asked.covers(name, description, values):
        return None
    kinds = find_tool_kinds(name, description)
    what = " or ".join(ACTS[one] for one in ACTS if one in kinds) or f"what {name} does"
    return ("" if is_alone else "text of others is in the prompt, and ") + f"your message does not ask to {what}"


def _read_offer(texts: PromptTexts) -> AskedActs:
    """Return what a consent may be to without text of others: also what a plain sentence offers, in any words."""
    said = _WORD.findall(fold(f"{texts.agreed}\n{texts.earlier}"))
    words = frozenset(stem_word(one) for one in said if one not in STOP_WORDS)
    kinds = frozenset(kind for one in split_sentences(texts.offer) for kind in _list_offered(one))
    return AskedActs(kinds, frozenset(ACTS), words, words)


def _is_critical(name: str, description: str) -> bool:
    """Return whether a tool needs a request also without text of others: to pay, delete, share or open a lock."""
    kinds = find_tool_kinds(name, description)
    is_lock = "switch" in kinds and not load_lexicon().locks.isdisjoint(split_name(name))
    return is_lock or not kinds.isdisjoint(("pay", "delete", "share"))
