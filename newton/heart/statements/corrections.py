"""Corrections of what a person said in the same session: a fragment, "X, not Y", a bare value, a denial. Pure.

A correction is matched to an earlier sentence by the wrong value that it names, else by the type of its value, and the
sentence is written whole with the right value. `corrections.yaml` has the words of each language.
"""

import re
from collections.abc import Iterator, Sequence

from newton.heart.statements.commitment import takes_back
from newton.heart.statements.fragments import (
    MIN_DENIED,
    MIN_SCORE,
    corrects_by_fragment,
    find_pair,
    hints_at_correction,
    is_alike_value,
    join_spelled,
    keep_own_words,
    list_fragments,
    replace_alike,
    replace_fragment,
    replace_tail,
)
from newton.heart.statements.read_corrections import (
    SENTENCE,
    WORD,
    FoundCorrection,
    fold,
    has_words,
    keep_preposition,
    names_other_value,
    rate_correcting,
    read_correction,
)
from newton.heart.statements.replacement import is_function, read_words
from newton.heart.statements.slots import count_edits
from newton.heart.statements.statement_candidates import find_verb, list_words
from newton.heart.statements.typed_values import (
    Cues,
    Kind,
    TypedValue,
    find_values,
    words_for,
)
from newton.text.greetings import is_courtesy
from newton.text.languages import ENGLISH, detect_language

MAX_EARLIER = 8  # messages before it that a correction may mean
MAX_WORDS = 30  # of a correction
MAX_ANNOUNCING = 6  # words of a message that only says that something was wrong
MAX_BARE_WORDS = 3  # of a message that is nothing but another value
MAX_REPAIR = 50  # characters from the words of a repair to each of the two values
# Probability that a message in English corrects, from which its words find what; and if they name the wrong value.
MIN_CORRECTING, MIN_NAMING = 0.3, 0.1
MAX_NAMED = 6  # words behind "not" that may be the wrong value

_STAR = re.compile(r"^\s*\*+(?!\*)\s*(?=\S)|(?<=\w)\*(?=\s|$)")
_WORDS = read_words()
_TITLES = frozenset(_WORDS["titles"].split("|"))
_ORDINAL = re.compile(r"(?<=\d)(?:st|nd|rd|th)$")
_HINTED = re.compile(rf"(?:{_WORDS['hinted']})\b\W*$", re.IGNORECASE)  # behind the right value
_CLEFT = re.compile(rf"(?<!\w)(?:{_WORDS['cleft'].strip()})(?!\w)", re.IGNORECASE)
_STARRED = re.compile(r"(?<!\S)(\w[\w'’:.-]*)\*(?=\s|$)")
_CUE_START = re.compile(r"(?:^|[.!?;…\n–—])\s*(?=\S)")
_MARK = re.compile(r"[\"“”„«»<>|\n]")  # no part of a value
_CLAUSE_END = re.compile(r"[,;:!?()–—\n]|\.(?:\s|$)")
_COPULA_END = re.compile(rf"(?<!\w)(?:{_WORDS['copula'].strip()}) ?(?:\w+ )?\w+\W*$", re.IGNORECASE)


def find_correction(message: str, earlier: Sequence[str], *, question: str = "") -> FoundCorrection | None:
    """Return what a message corrects in the `earlier` messages of the person; None if it corrects nothing.

    In English the reader of messages finds it, or else the words do, as in other languages. A message that answers a
    `question` of the assistant with a bare value corrects nothing by it.

    >>> find_correction("*friday", ["The nurse comes on thursday.", "She wants tea."])[2:]
    ('thursday', 'friday', '*friday')
    >>> find_correction("sorry, Milena, not Milan", ["My aunt Milan lives in Brno"]).apply("My aunt Milan is 60.")
    'My aunt Milena is 60.'
    >>> find_correction("no, that's wrong", ["I live in Graz."]).new is None
    True
    """
    if len(WORD.findall(message)) > MAX_WORDS or not earlier or is_courtesy(message):
        return None
    raw, cues, size = earlier, words_for(message, *earlier[-2:]), len(earlier)
    earlier = [*raw[: -MAX_EARLIER - 1], *(keep_own_words(one, asks=True) for one in raw[-MAX_EARLIER - 1 :])]
    message = _read_own(message, cues)
    cue = _find_cue(message, cues)
    if not cue and size > 1 and only_announces(earlier[-1], earlier[:-1]):
        cue, size = _find_cue(earlier[-1], cues), size - 1
    recent = [(index, earlier[index]) for index in range(size - 1, max(size - 1 - MAX_EARLIER, -1), -1)]
    sentences = [(index, sentence) for index, text in recent for sentence in _split(text)]
    nearest = -1 if question else size - 1
    if found := _find_read(message, recent, question):
        return found
    rate = _rate(message, recent[0][1], question, cues)
    named = _find_named(message, sentences, cues, cue) if rate >= MIN_NAMING else None
    if not named and rate >= MIN_CORRECTING:
        named = _find_told(message, sentences, cues, cue, nearest=nearest, last=raw[size - 1])
    return named and keep_preposition(named, message, cues)


def _rate(message: str, last: str, question: str, cues: Cues) -> float:
    """Return the probability that a message corrects: 1 in other languages than English, or if it only does that."""
    is_sure = "*" in message or takes_back(message) or cues["denial"].fullmatch(message.strip(" .!"))
    return 1.0 if is_sure or not _is_english(message, last) else rate_correcting(message, question, last)


def _find_named(message: str, sentences: Sequence["_Numbered"], cues: Cues, cue: str) -> FoundCorrection | None:
    """Return the correction of the nearest sentence of which the message names the wrong words."""
    for index, sentence in sentences:
        if found := find_pair(message, sentence) or _replace_named(message, sentence, cues):
            return FoundCorrection(index, sentence, *found, cue or "not")
    return None


def _find_read(message: str, recent: Sequence["_Numbered"], question: str) -> FoundCorrection | None:
    """Return what the reader finds in a message in English that is no bare answer to a question."""
    is_bare = question and len(WORD.findall(message)) <= MAX_BARE_WORDS
    if is_bare or not _is_english(message, recent[0][1]):
        return None
    return read_correction(message, [(index, text.replace("\n", " ")) for index, text in recent], question)


def _find_told(
    message: str, sentences: Sequence["_Numbered"], cues: Cues, cue: str, *, nearest: int, last: str
) -> FoundCorrection | None:
    """Return what the words of a correction, a value or a fragment correct in one of the sentences."""
    fragments = list_fragments(message, cues["cue"], cues["joint"])
    hint, is_denied = cue or hints_at_correction(message, fragments), cues["denial"].search(message)
    meant = _list_meant(message, sentences, fragments, hint, cue=cue, nearest=nearest)
    if _denies_other(message, sentences, cues):
        meant = []
    if found := _replace_values(message, meant, cues, fragments, cue=cue, hint=hint):
        return found
    joke = takes_back(message)
    if not is_denied and not joke and (found := _replace_fragment(fragments, meant, hint)):
        return found
    if sentences and is_denied and not names_other_value(message, sentences[0][1]):
        return FoundCorrection(*sentences[0], sentences[0][1], None, cue or is_denied[0])
    return FoundCorrection(sentences[0][0], last, last, None, joke.phrase) if joke and sentences else None


def _is_english(*texts: str) -> bool:
    return all(detect_language(one) == ENGLISH for one in texts)


def _read_own(message: str, cues: Cues) -> str:
    """Return the own words of a message; "" without words of a correction if it asks, or has words of others too."""
    own = keep_own_words(message)
    is_other = own.count("\n") > message.count("\n") or own.rstrip().endswith(("?", "？"))
    return "" if is_other and not _find_cue(own, cues) and not cues["negated"].search(own) else join_spelled(own)


_NO = re.compile(rf"\W*(?:{_WORDS['no']})\b", re.IGNORECASE)
_Numbered = tuple[int, str]  # a sentence with the number of its message


def _list_meant(
    message: str, sentences: Sequence[_Numbered], fragments: Sequence[str], hint: str, *, cue: str, nearest: int
) -> list[_Numbered]:
    """Return the sentences that a message may correct, those with a word of it first.

    Without words of a correction they are those of the `nearest` message, and those with all that it says besides.
    """
    said = {word for word in fold(message) if not is_function(word, message)}
    shared = [one for one in sentences if said & {*fold(one[1])}]
    near = [one for one in sentences if hint or one[0] == nearest]
    return [
        one
        for one in dict.fromkeys((*(() if cue else shared), *near))
        if cue or corrects_by_fragment(message, fragments, one[1] if one in shared else "", is_hinted=bool(hint))
    ]


def _replace_values(
    message: str,
    meant: Sequence[_Numbered],
    cues: Cues,
    fragments: Sequence[str],
    *,
    cue: str,
    hint: str,
) -> FoundCorrection | None:
    """Return the correction of the first sentence with a value of the same type, or with words nearly the same."""
    starred, is_denied = _STARRED.search(message), cues["denial"].search(message)
    rest = starred[1] if starred else cues["negated"].sub(",", message.replace(cue, " " * len(cue), 1))
    text = rest if cue or not fragments else fragments[0]
    for index, sentence in meant:
        alike = replace_tail(message, sentence)
        if cue and not is_denied:
            alike = alike or replace_alike(_HINTED.sub(",", rest), sentence, cues)
        found = alike or (None if _is_about_other(text, sentence) else _replace_typed(text, sentence))
        if found and (hint or alike or is_alike_value(*found)):
            return FoundCorrection(index, sentence, *found, hint)
    return None


def _replace_fragment(fragments: Sequence[str], meant: Sequence[_Numbered], hint: str) -> FoundCorrection | None:
    """Return the correction by a fragment beside a word of correction; a day or a time is replaced by a value only.

    Without such a word a fragment is talk: "ok cool", "next".
    """
    is_said = bool(WORD.search(hint) or "*" in hint)
    if not is_said or not (best := replace_fragment(fragments, meant, MIN_DENIED if _NO.match(hint) else MIN_SCORE)):
        return None
    found = FoundCorrection(*best, hint)
    if is_function(found.new.split()[-1] if found.new else "", found.sentence):
        return None  # "fix the typo" is no value
    is_timed = any(one.kind in ("day", "time", "date") for one in find_values(found.old))
    return None if is_timed and found.new and not find_values(found.new) else found


def only_announces(message: str, earlier: Sequence[str]) -> bool:
    """Return whether a message says that something was wrong, as "oh, I mixed them up" does, and not what is right."""
    is_empty = len(WORD.findall(message)) <= MAX_ANNOUNCING and not any(
        one.kind != "name" for one in find_values(message)
    )
    return is_empty and bool(_find_cue(message, words_for(message, *earlier[-2:])))


def repair(message: str) -> str:
    """Return a message in which a value that is corrected at once is replaced by the right one.

    >>> repair("The bus leaves at 5, no, 6 from the church.")
    'The bus leaves at 6 from the church.'
    """
    for match in words_for(message)["repair"].finditer(message):
        if not _CLAUSE_END.match(message[match.start() - 2 : match.start()].strip() or "x"):
            continue
        values = find_values(message)
        before = [one for one in values if one.end <= match.start() <= one.end + MAX_REPAIR]
        after = [one for one in values if match.end() <= one.start <= match.end() + MAX_REPAIR]
        pairs = [(old, new) for new in after for old in reversed(before) if old.kind == new.kind]
        if pairs and pairs[0][0].text.casefold() != pairs[0][1].text.casefold():
            old, new = pairs[0]
            middle = message[old.end : match.start()].rstrip(" ,–—-.")
            return repair(f"{message[: old.start]}{new.text}{middle}{message[new.end :]}")
    return message


def _find_cue(message: str, cues: Cues) -> str:
    """Return the words of a correction: a star, or a phrase that begins a sentence or is the last clause of one."""
    if star := _STAR.search(message):
        return star[0].strip()
    cue, starts = cues["cue"], [one.end() for one in _CUE_START.finditer(message)]
    found = [match for start in starts if (match := cue.match(message, start))]
    last = re.split(r",\s*|(?<=\w) (?=i mean)", message.rstrip(" .!"))
    found += [match for match in [cue.fullmatch(last[-1])] if match and len(last) > 1]
    return next((match[0] for match in found), "")


def _split(message: str) -> Iterator[str]:
    """Yield the sentences of a message, the last one first."""
    yield from (one[0].strip() for one in reversed(list(SENTENCE.finditer(repair(message)))))


def _replace_named(message: str, sentence: str, cues: Cues) -> tuple[str, str] | None:
    """Return the wrong words of a sentence that a message names as such, and the right ones."""
    for start, end in _list_negated(message, cues):
        old = _find_shared(message[start:end], sentence)
        if old is None:
            continue
        values = [one for one in find_values(sentence) if old[0] < one.end and one.start < old[1]]
        if new := _pick_right(message, (start, end), sentence, values[0].kind if values else None, cues):
            kinds = {one.kind for one in find_values(new)}
            return next((one.text for one in values if one.kind in kinds), sentence[old[0] : old[1]]), new
    return None


def _denies_other(message: str, sentences: Sequence[_Numbered], cues: Cues) -> bool:
    """Return whether a message negates words of which none of the sentences has any: it denies what nobody said."""
    parts = (message[start:end] for start, end in _list_negated(message, cues))
    negated = [one for one in parts if not all(is_function(word, message) for word in fold(one))]
    return bool(negated) and not any(_find_shared(part, one) for part in negated for _, one in sentences)


def _list_negated(message: str, cues: Cues) -> Iterator[tuple[int, int]]:
    """Yield the places of the words that a message calls wrong: those behind "not", and those before "was wrong"."""
    for match in cues["negated"].finditer(message):
        start = match.end() + len(message[match.end() :]) - len(message[match.end() :].lstrip())
        end = _CLAUSE_END.search(message, start)
        tail = list(WORD.finditer(message, start, end.start() if end else len(message)))[:MAX_NAMED]
        if tail:
            yield tail[0].start(), tail[-1].end()
    for match in cues["wrong"].finditer(message):
        if head := list(WORD.finditer(message, 0, match.start()))[-1:]:
            yield head[0].span()


def _find_shared(part: str, sentence: str) -> tuple[int, int] | None:
    """Return the place in a sentence of the longest run of words that a part of a message begins or shares."""
    theirs = list(WORD.finditer(sentence))
    folded, mine = ([_ORDINAL.sub("", one[0].casefold()) for one in words] for words in (theirs, WORD.finditer(part)))
    runs = [(n, m) for n in range(len(mine)) for m in range(len(mine), n, -1)]
    for n, m in sorted(runs, key=lambda run: run[0] - run[1]):
        for at in range(len(folded) - (m - n) + 1):
            is_same = folded[at : at + m - n] == mine[n:m]
            if is_same and not any(mine[end] in _TITLES or is_function(mine[end], sentence) for end in (n, m - 1)):
                return theirs[at].start(), theirs[at + m - n - 1].end()
    return None


def _pick_right(message: str, negated: tuple[int, int], sentence: str, kind: Kind | None, cues: Cues) -> str | None:
    """Return the right words of a message, before ", not X" or behind it, of the kind of the wrong ones if it is known.

    Otherwise they are the end of the clause before, the next clause, what "is" or the like precedes, or a fragment.
    """
    start = max((one.start() for one in SENTENCE.finditer(message, 0, negated[0])), default=0)
    before, after = cues["cue"].sub("", message[start : negated[0]]), message[negated[1] :]
    before = cues["negated"].sub("", before).rstrip(" ,;–—-")
    if kind:
        near = [*find_values(before)[::-1], *find_values(after), *find_values(message[:start])[::-1]]
        values = [one for one in near if not has_words(sentence, one.text) and not is_function(one.text, sentence)]
        same = [one.text for one in values if one.kind == kind]
        if same or kind != "name":
            return next(iter(same), None)
    parts = [part.strip() for part in _CLAUSE_END.split(after) if WORD.search(part)]
    ends = [match[0] for part in parts if (match := _COPULA_END.search(part))]
    cleft = next((one["right"] for one in _CLEFT.finditer(before) if one["right"]), "")
    options = ([cleft], before.split()[-1:], *([_strip_joints(part, cues)] for part in parts[:1]), ends, parts[-1:])
    for option in options:
        text = " ".join(option).strip(" ,.;:!?*")
        is_fit = kind != "name" or text[:1].isupper() or detect_language(message) == ENGLISH
        is_short = (
            is_fit and 0 < len(text.split()) <= MAX_BARE_WORDS and not _find_cue(text, cues) and not _MARK.search(text)
        )
        if (
            is_short
            and not has_words(sentence, text)
            and not is_function(re.split("['’]", text.casefold())[0], sentence)
        ):
            return text
    return None


def _strip_joints(text: str, cues: Cues) -> str:
    text = text.strip()
    while (match := cues["joint"].match(text)) and match.end() < len(text):
        text = text[match.end() :].strip()
    return text


def _replace_typed(message: str, sentence: str) -> tuple[str, str] | None:
    """Return the value of a sentence that one of the same kind in a message replaces, and that one."""
    theirs, found = find_values(sentence), list[tuple[int, str, str]]()
    for new in find_values(message):
        kinds = {"time", "number"} if new.kind in ("time", "number") else {new.kind}
        same = [one for one in theirs if one.kind == new.kind] or [one for one in theirs if one.kind in kinds]
        clause = _clause_of(message, new)  # "from 91 to 93" is no correction of 91
        same = [one for one in same if not has_words(clause, one.text)]
        if not same or has_words(sentence, new.text):
            continue
        old = min(same, key=lambda one: (count_edits(one.text, new.text), -one.start))
        edits = count_edits(old.text.casefold(), new.text.casefold())
        is_plain = new.kind in ("time", "day", "date", "code") and len(same) == 1
        is_told = (new.kind != "name" or len(message.split()) > MAX_BARE_WORDS) and _says_no_more(
            message, new, sentence
        )
        if is_plain or edits <= len(new.text) // 3 or is_told:
            found.append((edits if new.kind != "name" or edits < 2 else 0, old.text, new.text))
    return min(found)[1:] if found else None


def _is_about_other(message: str, sentence: str) -> bool:
    """Return whether a message states something of a subject that the sentence does not name."""
    words = list_words(message.strip(" ,.;!"))
    named = {*fold(sentence), *(word for one in find_values(message) for word in fold(one.text))}
    subject = [one.text for one in words[: max(find_verb(words), 0)] if not is_function(one.text, sentence)]
    return bool(subject) and not named & {*subject}


def _says_no_more(message: str, value: TypedValue, sentence: str) -> bool:
    """Return whether the clause of a value has no word of content that the corrected sentence lacks."""
    rest = WORD.findall(_clause_of(message, value).replace(value.text, " ", 1))
    return all(has_words(sentence, word) or is_function(word.casefold(), message) for word in rest)


def _clause_of(message: str, value: TypedValue) -> str:
    starts = [0, *(one.end() for one in _CLAUSE_END.finditer(message, 0, value.start))]
    end = _CLAUSE_END.search(message, value.end)
    return message[starts[-1] : end.start() if end else len(message)]
