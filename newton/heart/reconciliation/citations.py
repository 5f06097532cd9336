"""Whether a message of a person says a change word for word, so that a model may make the change for them. Pure.

Words that a model may add or leave out are few and say nothing ("now", "please"). All others count, in their order:
"might", "hardly", "his brother" or "they say" makes another statement. So a model cannot pass off as a person's word
what the person denied, doubted, reported or said of something else.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files

from newton.content.yaml_files import parse_trusted
from newton.heart.reconciliation.known_checks import is_denied
from newton.heart.reconciliation.quoted_text import split_own_words
from newton.heart.reconciliation.text_evidence import fold, list_own_names, list_stems, share_stems
from newton.heart.statements.change_detection import read_change
from newton.heart.statements.corrections import find_correction, only_announces
from newton.heart.statements.slots import concerns_another, says_present
from newton.heart.statements.statement_candidates import has_verb
from newton.heart.wills.will_reader import is_about, read_will
from newton.text.languages import ENGLISH, detect_language, load_language
from newton.text.names import find_names
from newton.text.patterns import asks, has_ended
from newton.text.questions import is_only_question
from newton.text.sentences import split_sentences

_CLAUSE = re.compile(r"[,;:]\s+|\s[–—-]\s|\s(?:and|but|und|aber|y|pero|et|mais|e|ma|en|maar|mas|и|но)\s")
PRONOUN = re.compile(
    r"\b(?:he|she|it|they|that|er|sie|es|das|él|ella|il|elle|lui|lei|hij|zij|ze|ele|ela|он|она)\b", re.IGNORECASE
)
MAX_REPORTER = 5  # words of who says something and of the verb
MIN_BEGINNING = 2  # words with which two values of one thing begin: the subject and its verb or noun

_WORD = re.compile(r"[^\W_]+(?:['’.,:&+/@-][^\W_]+)*")
_HAN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_PARTS = re.compile(r"(?<=[^\W_])(?=['’](?:s|m|re|ve|d|ll)$)")
_TITLE = re.compile(r"\b(Mrs?|Ms|Dr|St|Prof|Nr|Sr|Sra|Mme)\.(?= )")
_BUT = re.compile(r"\W+(?:but|aber|pero|mais|ma|maar|mas|но)\s", re.IGNORECASE)
_OWNED = re.compile(r"'s? \w+(?= )")
_ANY_MORE = re.compile(r"\bany (?=more\b|longer\b)", re.IGNORECASE)
_NUMBER = re.compile(r"\d+")
_SELF = "i"  # stands for the person, whoever speaks of them
_FORMS = {"am": "be", "is": "be", "are": "be", "'m": "be", "'re": "be", "has": "have", "'ve": "have", "does": "do"}
_ENDING = re.compile(r"(?<=\w{3})(?:(?<=[sxz])es|(?<=[cs]h)es|(?<!s)s)$|(?<=\w\w)ies$")
_ENDING_ELSEWHERE = re.compile(r"(?<=\w{3})(?:st|en|e|t|s|o|a|i|n)$")


def says_statement(line: str, text: str, *, user_names: Sequence[str] = (), instead_of: str = "") -> bool:
    """Return whether a sentence of a line says a statement in its words. `user_names` are those of the speaker.

    The sentence may end with what no longer holds, in words of the known statement `instead_of`.

    >>> lines = ("Ok, I live in Linz now.", "I might live in Linz.", "My uncle lives in Linz.", "I lived in Linz.")
    >>> [says_statement(line, "Tom lives in Linz.", user_names=["Tom"]) for line in lines]
    [True, False, False, False]
    >>> says_statement("No, I live in Linz, not in Graz.", "I live in Linz.", instead_of="I live in Graz.")
    True
    """
    wanted = _list_words(text, detect_language(text), user_names)
    known = {*_list_words(instead_of, detect_language(instead_of), user_names)}
    for whole, code in _list_sentences(line):
        sentence = _pattern("opening", code).sub("", whole)
        found = _list_words(sentence, code, user_names)
        parts = _pattern("contrast", code).split(sentence, maxsplit=1) if known else [sentence]
        if len(parts) > 1 and {*_list_words(parts[1], code, user_names)} <= known:
            found = _list_words(parts[0], code, user_names)
        if wanted and found == wanted:
            return True
    return False


def asks_to_end(line: str, statement: str, *, user_names: Sequence[str] = ()) -> bool:
    """Return whether a sentence of a line asks to forget exactly this statement, or says that it is wrong or over.

    >>> fact = "Ana's office is in Graz."
    >>> lines = ("Please forget that Ana's office is in Graz.", "Don't forget that Ana's office is in Graz.",
    ...          "Forget that Ben's office is in Graz.", "Ana's office is no longer in Graz.")
    >>> [asks_to_end(line, fact) for line in lines]
    [True, False, False, True]
    """
    wanted = _list_words(statement, detect_language(statement), user_names)
    for sentence, code in _list_sentences(line):
        for cue in _pattern("end", code).finditer(sentence):
            found = _list_words(f"{sentence[: cue.start()]} {sentence[cue.end() :]}", code, user_names)
            is_named = len(found) >= MIN_BEGINNING and wanted[: len(found) + 1] == [*found, "be"]
            is_asked = not _list_words(sentence[: cue.start()], code, user_names)
            if (wanted and found == wanted) or (is_named and is_asked):  # "Forget Ana's birthday"
                return True
    return False


def wants_forgotten(line: str, statement: str, *, user_names: Sequence[str] = ()) -> bool:
    """Return whether a line asks to forget a statement, for good and not only in the answer to this line.

    >>> lines = ("Forget what I said about walnuts.", "Forget the walnuts for this recipe.", "Forget it, I have it.")
    >>> [wants_forgotten(line, "I am allergic to walnuts.") for line in lines]
    [True, False, False]
    """
    will = read_will(line).will
    is_named = will is not None and will.scope == "topic" and is_about(statement, will.topic)
    return (is_named or asks_to_end(line, statement, user_names=user_names)) and not is_limited(line)


def is_limited(line: str) -> bool:
    """Return whether a line limits what it says to one time or thing: "for now", "for this recipe", "tonight"."""
    return any(_pattern("once", code).search(line) for code in _load()["once"])


def asks_to_lift(line: str) -> bool:
    """Return whether a sentence of a line asks to lift a rule, or allows again what one forbids.

    >>> [asks_to_lift(line) for line in ("Drop that rule.", "You can use nuts again.", "Do not lift the rule.")]
    [True, True, False]
    """
    return not is_limited(line) and any(
        not _pattern("doubt", code).search(part)
        and _pattern("lift", code).match(_pattern("opening", code).sub("", part))
        for sentence, code in _list_sentences(line)
        for part in (sentence, *_CLAUSE.split(sentence))
    )


def gives_other_value(known: str, text: str, *, user_names: Sequence[str] = ()) -> bool:
    """Return whether a statement may give another value for what a known one states: they begin alike and differ.

    >>> known = "Ana lives in Graz."
    >>> texts = ("Ana lives in Linz.", "Ana's mother lives in Linz.", "Ana was born in Linz.")
    >>> [gives_other_value(known, text) for text in texts]
    [True, False, False]
    """
    first, second = (_list_words(one, detect_language(one), user_names) for one in (known, text))
    if first[:MIN_BEGINNING] != second[:MIN_BEGINNING] or _list_kinds(known, text) != _list_kinds(text, known):
        return False
    return read_change(known, text, cosine=1.0).kind != "compatible"


def _list_kinds(text: str, other: str) -> tuple[bool, bool]:
    """Return whether a text has a name and a number that another lacks: "is ill" gives no value for "is Mrs Weber"."""
    is_named = any(one.start and not one.text.isnumeric() and one.text not in other for one in find_names(text))
    return is_named, not {*_NUMBER.findall(text)} <= {*_NUMBER.findall(other)}


def is_taken_back(line: str, text: str, later: Sequence[str], *, instead_of: str = "") -> bool:
    """Return whether one of the `later` messages corrects a line, or takes back the statement `text` of it, if any.

    `instead_of` is the known statement that `text` replaces; what ends this one takes nothing back.

    >>> lines = ("Sorry, not Linz, Steyr.", "Hm, that was wrong.", "I won't live in Linz after all.", "Linz is lovely.")
    >>> [is_taken_back("I live in Linz now.", "I live in Linz.", [one]) for one in lines]
    [True, True, True, False]
    """
    stems = list_stems(text)
    new = stems - list_stems(instead_of) or stems
    for n, one in enumerate(later):
        own = split_own_words(one).own
        corrected = find_correction(own, [line, *later[:n]])
        if (corrected and corrected.index == 0) or (n == 0 and only_announces(own, [line])):
            return True
        for sentence in split_sentences(own) if text and not is_only_question(own) else ():
            said = list_stems(sentence)
            is_alone = bool(share_stems(said, new)) and len(share_stems(said, stems)) >= len(said) - 1
            is_other = gives_other_value(text, sentence) and not asks_to_end(sentence, instead_of)
            if is_other or (is_alone and is_denied(sentence)) or asks_to_end(sentence, text):
                return True
    return False


def divide_by_trust(text: str) -> tuple[str, str]:
    """Divide a text into sentences that vouch for what they name, and those that doubt it, such as a fake address.

    >>> divide_by_trust("Mail a@x.example. They print b@x.example, surely a fake.")
    ('Mail a@x.example.', 'They print b@x.example, surely a fake.')
    """
    sentences = [line for part in text.splitlines() for line in split_sentences(part)]
    patterns = [_pattern("distrust", code) for code in {**_load()["distrust"]}]  # the language of a short one is unsure
    doubted = [one for one in sentences if any(pattern.search(one) for pattern in patterns)]
    return "\n".join(one for one in sentences if one not in doubted), "\n".join(doubted)


def only_reports(line: str, text: str, *, user_names: Sequence[str] = ()) -> bool:
    """Return whether a line has a text word for word, but only as what is asked, doubted, or said by or of others.

    >>> lines = ("They say that Ana lives in Linz.", "Hardly anyone believes Ana lives in Linz.", "Ana lives in Linz.",
    ...          "Ana's uncle lives in Linz.")
    >>> [only_reports(line, "Ana lives in Linz.") for line in lines]
    [True, True, False, True]
    """
    wanted, is_found = _list_words(text, detect_language(text), user_names), False
    for sentence in split_sentences(_TITLE.sub(r"\1", line.replace("’", "'"))) if wanted else ():
        code = detect_language(sentence)
        found = _list_words(sentence, code, user_names)
        starts = [n for n in range(len(found) - len(wanted) + 1) if found[n : n + len(wanted)] == wanted]
        is_other = _list_words(_OWNED.sub("", sentence), code, user_names) == wanted != found
        opening = sentence[: fold(sentence).find(fold(text).split()[0])]  # all but a mark if the word has another form
        if starts and not asks(sentence, code) and not (starts[0] and _pattern("doubt", code).search(opening)):
            return False
        is_found |= bool(starts) or is_other
    return is_found


def ends_another(line: str, known: str) -> bool:
    """Return whether a sentence says that something is over, and after a "but" what a known statement is about.

    >>> ends_another("Gwen no longer has a car, but she paddles her canoe daily.", "Gwen owns a canoe.")
    True
    >>> ends_another("Gwen no longer has a canoe, but she has a car.", "Gwen owns a canoe.")
    False
    """
    stems = list_stems(known) - frozenset[str]().union(*(list_stems(one.text) for one in find_names(known)))
    for sentence in split_sentences(line):
        ended, *others = _BUT.split(sentence)
        is_over = bool(_pattern("end", detect_language(sentence)).search(ended))
        if is_over and share_stems(stems, list_stems(" . ".join(others))):
            return not share_stems(stems, list_stems(ended))
    return False


def is_beside(line: str, text: str, known: Sequence[str], *, user_names: Sequence[str] = ()) -> bool:
    """Return whether a line speaks beside known statements: of one day, of another's, or of more than they say.

    It also does if all its sentences with what is new report others' words, are of others, or state another such thing.

    >>> lines = ("I won't swim this Tuesday.", "My neighbour no longer swims on Tuesdays.", "I do not only swim.")
    >>> stated = ("I swim.", "My aunt swims on Tuesdays.", "I swim.")
    >>> [is_beside(line, "", [known]) for line, known in zip(lines, stated)]
    [True, True, True]
    >>> is_beside("Her neighbour, my aunt, no longer swims.", "", ["My aunt swims."])
    False
    """
    stated, plain = " . ".join([text, *known]), _TITLE.sub(r"\1", line.replace("’", "'"))
    olds = list_stems(" . ".join(known))
    news = list_stems(text) - olds if text and known else olds
    telling = [one for one in split_sentences(plain) if share_stems(news, list_stems(one))]
    if telling and all(_is_of_others(one, text, known, user_names) or _adds(one, line, text, known) for one in telling):
        return True
    for sentence in split_sentences(plain):
        code = detect_language(sentence)
        if _pattern("also", code).search(sentence) or (not text and _is_of_one_day(sentence, code, stated)):
            return True
        owned = _pattern("owned", code).match(_pattern("opening", code).sub("", sentence))
        is_other = owned and not _has_word(stated, owned[1])
        others = filter(None, (_pattern("owned", code).match(one) for one in known))
        if is_other and any(not _has_word(sentence, one[1]) for one in others):
            return True
    return False


def _is_of_others(sentence: str, text: str, known: Sequence[str], user_names: Sequence[str]) -> bool:
    """Return whether a sentence reports what somebody says of known statements, or is of another person or place."""
    code, stems = detect_language(sentence), list_stems(" . ".join(known))
    head, place = _find_reporter(sentence, code), _pattern("elsewhere", code).match(sentence)
    if (head and not share_stems(list_stems(head), stems)) or _pattern("other", code).search(sentence):
        return True
    is_named = place and share_stems(list_stems(place[0].split()[-1]), stems | list_stems(text))
    if place and not is_named and _SELF not in _list_words(sentence[place.end() :], code, user_names):
        return True
    speaker, is_own = _load()["self"].get(code, "i").split()[0], _is_of_self(sentence, user_names)
    named = [f"{speaker} {one.partition(' ')[2]}" if _is_of_self(one, user_names) else one for one in known]
    return not is_own and all(concerns_another(one, sentence, code) for one in named)


def _is_of_self(text: str, user_names: Sequence[str]) -> bool:
    code = detect_language(text)
    return _list_words(text, code, user_names)[:1] == [_SELF] and not _pattern("owned", code).match(text)


def _find_reporter(sentence: str, code: str) -> str:
    """Return what stands before a "that" if it tells who says so: a name or a noun, and a verb; else "".

    >>> lines = ("Pedro mentioned that I live here.", "Remember that I live here.", "The flat that I rent is dear.")
    >>> [_find_reporter(line, "en") for line in lines]
    ['Pedro mentioned', '', '']
    """
    found = _pattern("report", code).search(sentence)
    head = _pattern("opening", code).sub("", sentence[: found.start()]) if found else ""
    first, *others = [one for one in _WORD.findall(head) if one.casefold() not in _words("neutral", code)] or [""]
    is_owned, word = bool(_pattern("owned", code).match(head)), first.casefold()
    is_named = first[:1].isupper() and word not in load_language(code).words | _words("self", code)
    is_told = is_owned < len(others) < MAX_REPORTER and "," not in head and (code != ENGLISH or has_verb(head))
    return head if (is_owned or is_named) and is_told else ""


def _adds(sentence: str, line: str, text: str, known: Sequence[str]) -> bool:
    """Return whether a sentence states another thing in the form of a known statement, without a sign of a change."""
    stems, code = list_stems(text), detect_language(sentence)
    return all(
        _find_form(one, code) == _find_form(text, code) in [_find_form(part, code) for part in _CLAUSE.split(sentence)]
        and read_change(one, text, cosine=1.0).kind == read_change(one, sentence, cosine=1.0).kind == "compatible"
        and not share_stems(list_stems(one) - stems, list_stems(line))
        and not (says_present(sentence, code) or _NUMBER.search(one))
        for one in known
    )


def _find_form(text: str, code: str) -> str:
    """Return the second word of a statement, its verb, or the first one of two."""
    words = _list_words(text, code, ())
    return words[min(MIN_BEGINNING, len(words) - 1) - 1] if len(words) > 1 else text


def _is_of_one_day(sentence: str, code: str, stated: str) -> bool:
    """Return whether a clause of a sentence denies something of what is stated for one day or occasion only."""
    for part in () if has_ended(sentence, code) else _CLAUSE.split(sentence):
        day = _pattern("once", code).search(part)
        is_other = bool(day) and day[0].lower() not in stated.lower()
        if is_other and is_denied(part) and share_stems(list_stems(stated), list_stems(part)):
            return True
    return False


def _has_word(text: str, word: str) -> bool:
    return re.search(rf"\b{re.escape(word)}", text, re.IGNORECASE) is not None


def supports_change(line: str, text: str, known: Sequence[str], *, user_names: Sequence[str] = ()) -> bool:
    """Return whether a message may be what a model takes for a change of known statements: an end without a text.

    This is for a model that has read nothing but the message. A clause has all new words of the text, and its name. It
    is no question, doubt or report, has no limit that the text lacks, and does not say the statement that it is to end.

    >>> known = ["Ana lives in Graz."]
    >>> lines = ("Ana moved to Linz.", "They say that Ana lives in Linz.", "My uncle lives in Linz, and Ana visits.")
    >>> [supports_change(line, "Ana lives in Linz.", known) for line in lines]
    [True, False, False]
    """
    old = frozenset[str]().union(*(list_stems(one) for one in known))
    if is_beside(line, text, known, user_names=user_names):
        return False
    selves = list_stems(" . ".join([*list_own_names(user_names), *_words("self", detect_language(text))]))
    new, names = list_stems(text) - old - selves, [one.text for one in find_names(text)[:1] if not one.start and old]
    for sentence in split_sentences(_TITLE.sub(r"\1", line.replace("’", "'"))):
        code = detect_language(sentence)
        plain = sentence[request.end() :] if (request := _pattern("request", code).match(sentence)) else sentence
        limits = {one[0].casefold() for one in _pattern("limit", code).finditer(plain)}
        if _pattern("doubt", code).search(plain) or (asks(sentence, code) and not request):
            continue
        if text and not limits <= {*text.casefold().split()}:  # "delete it only after asking me"
            continue
        clauses = _CLAUSE.split(sentence)
        if not text and not any(says_statement(part, one, user_names=user_names) for part in clauses for one in known):
            return True
        is_meant = _has_all(sentence, new, ()) and any(map(PRONOUN.search, clauses))
        if text and (is_meant or any(_has_all(part, new, names) for part in clauses)):
            return True
    return False


def _has_all(text: str, stems: frozenset[str], names: Sequence[str]) -> bool:
    is_named = all(fold(part) in fold(text) for name in names for part in name.split())
    return is_named and len(share_stems(stems, list_stems(text))) == len(stems)


def _list_sentences(line: str) -> Iterator[tuple[str, str]]:
    """Yield the sentences that are no questions, each with its language."""
    plain = _ANY_MORE.sub("any", _TITLE.sub(r"\1", line.replace("’", "'")))
    for sentence in split_sentences(plain):
        code = detect_language(sentence)
        if not asks(sentence, code):
            yield sentence, code


def _list_words(text: str, code: str, user_names: Sequence[str]) -> list[str]:
    """Return the words of a text in order, in a form that does not depend on the person of the verb."""
    if not load_language(code).is_spaced:
        return _HAN.findall(text) + re.findall(r"[a-z0-9]+", fold(text))
    own = {part for name in list_own_names(user_names) for part in fold(name).split()}
    neutral, selves = _words("neutral", code), _words("self", code) | own
    found = list[str]()
    for word in (part for match in _WORD.findall(fold(text)) for part in _PARTS.split(match)):
        one = _SELF if word in selves else _FORMS.get(word, word)
        is_owner = word == "'s" and found[-1:] == [_SELF]  # "the user's dentist" is "my dentist"
        if word in neutral or is_owner or (one == _SELF and found[-1:] == [_SELF]):
            continue
        found.append(one if one == _SELF else _strip_ending(one, code))
    return found


def _strip_ending(word: str, code: str) -> str:
    if word in _FORMS.values() or not word.isalpha():
        return word
    stem = _ENDING.sub(lambda found: "y" if found[0] == "ies" else "", word)
    return stem if code == ENGLISH else _ENDING_ELSEWHERE.sub("", word)


@cache
def _load() -> dict[str, dict[str, str]]:
    return parse_trusted(files("newton.heart.reconciliation").joinpath("cited_words.yaml").read_text(encoding="utf-8"))


@cache
def _words(table: str, code: str) -> frozenset[str]:
    codes = (code, ENGLISH) if table == "self" else (code,)
    return frozenset(word for one in codes for word in fold(_load()[table].get(one, "")).split())


@cache
def _pattern(table: str, code: str) -> re.Pattern[str]:
    tables = {**_load()[table]}
    return re.compile(rf"(?:{tables[code]})" if code in tables else r"(?!)", re.IGNORECASE)
