"""Corrections in English of what a person said in the same session, found by the reader of messages. Pure."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from newton.heart.statements.replacement import is_function
from newton.heart.statements.slots import count_edits
from newton.heart.statements.statement_candidates import ClauseForm, find_verb, has_verb, list_words, split_message
from newton.heart.statements.typed_values import find_values
from newton.providers.speech_reader import MarkedPart, MessageComparison, load_speech_reader, read_speech

MAX_SHORT = 6  # words of a message that is compared with what was said before, whatever it looks like
MIN_MAYBE = 0.1  # probability that a part of the message corrects something, from which it is compared
MIN_PART = 0.5  # from which a part says nothing else
SURE_MIN = 0.7  # from which it may say more than the statement that it corrects
MAX_TOLD = 0.05  # probability that a message with a verb only tells something
MIN_SCORE = 0.75  # mean of the probabilities that the message corrects, and that the words are the wrong and right ones
FARTHER = 0.03  # what a message further back loses
MIN_WHOLE = 0.8  # of a sentence, for it to be replaced as a whole
MAX_TYPO = 2  # letters in which a name and its misspelling differ
_LEADING = re.compile(
    r"(?:(?:no|not|nope|nah|wait|sorry|actually|make it|make that|i meant?)\b\W*)+", re.IGNORECASE
)  # no part of the right words
_DENIED = re.compile(r"(?:\b(?:not|never)|n['’]t)\W+(?:\w+\W+)?$", re.IGNORECASE)  # "it is not Mr. Iliev"
_CUE = re.compile(r"\b(?:no|not|nope|nah|wait|sorry|oops|typo|actually|rather|instead|make|meant?)\b", re.IGNORECASE)
_EXCLAMATION = re.compile(r"\s*\w+!\s*")  # "Spain!" exclaims
_OWNED = re.compile(r"\b(?:my|our|his|her|their)\s+(\w+)", re.IGNORECASE)
_PART = re.compile(r"[^\s,;.!?–—](?:[^,;.!?\n–—]|[,.](?=\S))*")
_SENTENCE = re.compile(r"[^\s.!?](?:[^\n.!?]|[.!?](?=\w)|(?<=\b[DMS][rst])\.)*")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


class FoundCorrection(NamedTuple):
    """The wrong words of an earlier message in its `sentence`, the right ones, and what the person said instead."""

    index: int
    sentence: str
    old: str
    new: str
    cue: str


def read_correction(own: str, earlier: Sequence[tuple[int, str]], question: str) -> FoundCorrection | None:
    """Return what the own words of a message correct in earlier messages, the last first; None if they correct nothing.

    Each earlier message stands with its number. The `question` is what the assistant has asked.
    """
    parts = [one.span() for one in _PART.finditer(own)]
    if (
        not parts
        or _EXCLAMATION.fullmatch(own)
        or _states_nothing(own)
        or not _may_correct(own, parts, question, earlier[0][1])
    ):
        return None
    reader, found = load_speech_reader(), list[tuple[float, FoundCorrection]]()
    for distance, (index, text) in enumerate(earlier):
        compared = reader.compare(text, own)
        acts = [compared.reading.rate(*part) for part in parts]
        rate = max(one["correct"] for one in acts)
        cue = " ".join(own[slice(*part)] for part, one in zip(parts, acts, strict=True) if one["correct"] >= MIN_PART)
        limit = MAX_TOLD if has_verb(own) else rate  # a statement of its own is a change, and no correction
        is_one = max(one["told"] for one in acts) <= limit and not _states_nothing(text)
        replaced = _find_replaced(text, own, compared, rate) if is_one else None
        if replaced and compared.wrong and compared.right:
            sure = compared.wrong.probability * compared.right.probability
            found.append(((rate + sure) / 2 - FARTHER * distance, FoundCorrection(index, *replaced, cue)))
    best = max(found, key=lambda one: one[0], default=None)
    return best[1] if best and best[0] >= MIN_SCORE else None


def _states_nothing(text: str) -> bool:
    """Return whether a text only asks or requests."""
    clauses = split_message(text)
    return bool(clauses) and all(one.form in (ClauseForm.QUESTION, ClauseForm.REQUEST) for one in clauses)


def _may_correct(own: str, parts: Sequence[tuple[int, int]], question: str, last: str) -> bool:
    """Return whether a message is short or has a part that may correct something, so that it is compared at all."""
    reading = read_speech(own, question, last)
    return len(own.split()) <= MAX_SHORT or any(reading.rate(*one).get("correct", 0.0) >= MIN_MAYBE for one in parts)


def _find_replaced(text: str, own: str, compared: MessageComparison, rate: float) -> tuple[str, str, str] | None:
    """Return the sentence that a message corrects, its wrong words and the right ones; None if they do not fit.

    `rate` is the probability that the message corrects something.
    """
    wrong, right = compared.wrong, compared.right
    starts = (one for one in _SENTENCE.finditer(text) if wrong and one.start() <= wrong.start < one.end())
    if wrong is None or right is None or (found := next(starts, None)) is None or _DENIED.search(own[: right.start]):
        return None
    sentence = found[0]
    if wrong.end - wrong.start >= MIN_WHOLE * len(sentence):  # all of it is replaced, so by a whole clause
        return sentence, sentence, _find_clause(own, right)
    old = text[wrong.start : min(wrong.end, found.end())]
    new = _LEADING.sub("", own[right.start : right.end].strip(" ,.;:–—-"))
    new = new if "," in old else new.split(", ")[0]
    old = next((one for one in _WORD.findall(sentence) if _is_misspelled(one, new)), old)
    is_other = (
        not new or old.casefold() == new.casefold() or not _may_replace(old, new) or _only_exclaims(own, old, new)
    )
    is_more = _has_other_value(own, right, sentence) or (rate < SURE_MIN and _states_more(own, right, sentence))
    return None if is_other or is_more else (sentence, old, new)


def _only_exclaims(own: str, old: str, new: str) -> bool:
    """Return whether a message without a sign of a correction has small letters where a name would stand: "righto"."""
    is_plain = old[:1].isupper() and new.islower() and "*" not in own and not _CUE.search(own)
    return is_plain and not (find_values(new) and own.strip(" .,!").casefold() == new)


def _is_misspelled(word: str, new: str) -> bool:
    return word[:1].isupper() and 0 < count_edits(word.casefold(), new.casefold()) <= min(MAX_TYPO, len(new) // 2)


def _may_replace(old: str, new: str) -> bool:
    """Return whether words may stand for others: a number for a number, a day for a day."""
    wrong, right = ({one.kind for one in find_values(text)} for text in (old, new))
    return wrong <= {"name"} if not right else not (wrong and wrong.isdisjoint(right))


def _states_more(own: str, right: MarkedPart, sentence: str) -> bool:
    """Return whether the clause with the right words is a statement with words that the corrected sentence lacks."""
    clause = _find_clause(own, right)
    if find_verb(list_words(clause)) < 1:
        return False
    known = {*_fold(sentence), *_fold(own[right.start : right.end])}
    return any(word not in known and not is_function(word, own) for word in _fold(clause))


def _has_other_value(own: str, right: MarkedPart, sentence: str) -> bool:
    """Return whether the clause with the right words has another value, or another person, that the sentence lacks.

    "In June we go to Paris" does not correct "We go to Rome in May", nor does "my son in May".
    """
    clause = _find_clause(own, right)
    rest = clause.replace(own[right.start : right.end], " ", 1)
    others = {one.text.casefold() for one in find_values(rest)} if find_verb(list_words(clause)) > 0 else set[str]()
    others |= {one[1].casefold() for one in _OWNED.finditer(rest)}
    return any(one not in sentence.casefold() for one in others)


def _find_clause(own: str, right: MarkedPart) -> str:
    return next((one[0] for one in _PART.finditer(own) if one.end() > right.start), own)


def _fold(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]
