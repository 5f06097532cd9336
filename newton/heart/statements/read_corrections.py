"""Corrections in English of what a person said in the same session, found by the reader of messages. Pure."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from newton.heart.statements.commitment import CommitmentKind, find_reading, list_unasserted
from newton.heart.statements.replacement import is_function
from newton.heart.statements.slots import count_edits
from newton.heart.statements.statement_candidates import ClauseForm, find_verb, list_words, split_message
from newton.heart.statements.typed_values import Cues, complete_day, find_values, match_case, words_for
from newton.providers.speech_reader import MarkedPart, MessageComparison, load_speech_reader, read_speech
from newton.text import english
from newton.text.stems import stem_word

MAX_SHORT = 6  # words of a message that is compared with what was said before, whatever it looks like
MIN_MAYBE = 0.05  # probability that a part of the message corrects something, from which it is compared with all
MAX_UNLIKELY = 2  # messages with which it is compared otherwise
MIN_PART = 0.5  # from which a part says nothing else
# How much it counts that the message corrects, that the words are the wrong and the right ones, and that it only tells
# something; fitted to people whom the reader does not know, and to pairs of statements that are both true.
WEIGHTS, BIAS = (4.7, 4.7, 5.6, -2.1), -12.1
OTHER = 1.0  # what a clause loses that says the like of something else; of another value besides, three times that
ANNOUNCED = 0.95  # probability that a message corrects that begins with words such as "no wait"
MAX_EXCLAMATION = 3  # words of a message that may only exclaim
MIN_WITHDRAWN = 0.6  # mean of the probabilities that the message corrects, and that all of a sentence is wrong
SHARPNESS = 10  # which turns what is above it into log odds
FARTHER = 0.2  # what a message further back loses
MIN_WHOLE = 0.8  # of a sentence, for it to be replaced as a whole
MAX_TYPO = 2  # letters in which a name and its misspelling differ
MIN_ELSE = 2  # further words of content of a statement of its own in a correction
_REFERRING = frozenset(["it", "that", "this", "he", "she", "they", "there"])  # subjects that may be that of before
_EXCLAMATION = re.compile(r"\s*[^\W\d]+!\s*")  # "Spain!" exclaims
_PART = re.compile(r"[^\s,;.!?–—](?:[^,;.!?\n–—]|[,.](?=\S)|(?<=\b[DMS][rst]|\b[dm]r)\.|(?<=\bMrs)\.)*")
SENTENCE = re.compile(
    r"[^\s.!?](?:[^\n.!?]|[.!?](?=\w)|(?<=\b[DMS][rst]|\b[dm]r)\."
    r"|(?<=\bno)\.(?= ?\d)|(?<=\d)\.(?= ?(?:[^\W\d_A-Z]|Jan|Feb|M[aä]r|Apr|Mai|Ju[nl]|Aug|Sep|Okt|Nov|Dez)))*"
)
WORD = re.compile(r"[^\W_](?:[\w'’.:-]*\w)?")


class FoundCorrection(NamedTuple):
    """A correction of a sentence of the earlier message `index`: its words `old` are wrong, `new` are right.

    Without `new`, nothing replaces the sentence. `cue` are the words of the correction that decided.
    """

    index: int
    sentence: str
    old: str
    new: str | None
    cue: str

    def concerns(self, text: str) -> bool:
        """Return whether a statement has most of its words from the sentence that is taken back."""
        words = fold(text)
        return sum(word in fold(self.sentence) for word in words) > len(words) / 2

    def is_repeated_in(self, text: str) -> bool:
        """Return whether a statement of the correcting message has the wrong words or says nothing else than it."""
        known = fold(f"{self.sentence} {self.new} {self.cue}")
        said = [word for word in fold(text) if word not in known and not is_function(word, text)]
        if self.new is None:
            return self.concerns(text)
        return has_words(text, self.old) or not has_words(text, self.new) or len(said) < MIN_ELSE

    def apply(self, text: str) -> str | None:
        """Return a statement with the right words; None if nothing replaces it, or if it lacks the wrong ones."""
        new = complete_day(self.new, self.old)
        pattern = re.compile(rf"(?<!\w){re.escape(self.old)}(?!\w)", re.IGNORECASE)
        if new is None or not pattern.search(text):
            return None
        return pattern.sub(lambda match: match_case(new, match[0]), text, count=1)


def read_correction(own: str, earlier: Sequence[tuple[int, str]], question: str) -> FoundCorrection | None:
    """Return what the own words of a message correct in earlier messages, the last first; None if they correct nothing.

    Each earlier message stands with its number. The `question` is what the assistant has asked.
    """
    parts = [one.span() for one in _PART.finditer(own)]
    is_reported = any(one.commitment is CommitmentKind.REPORTED for one in list_unasserted(own))
    if not parts or is_reported or _EXCLAMATION.fullmatch(own):
        return None
    if len(own.split()) > MAX_SHORT and rate_correcting(own, question, earlier[0][1]) < MIN_MAYBE:
        earlier = earlier[:MAX_UNLIKELY]
    cues, found = words_for(own), list[tuple[bool, float, FoundCorrection]]()
    for distance, (index, text) in enumerate(earlier):
        if _states_nothing(text):
            continue
        compared = load_speech_reader().compare(text, own)
        acts = [compared.reading.rate(*part) for part in parts]
        rates = tuple(max(one[act] for one in acts) for act in ("correct", "told"))
        rates = (max(rates[0], ANNOUNCED), rates[1]) if compared.right and cues["cue"].match(own) else rates
        cue = " ".join(own[slice(*part)] for part, one in zip(parts, acts, strict=True) if one["correct"] >= MIN_PART)
        score, replaced = _find_replaced(text, own, compared, cues, rates=rates)
        if replaced and score >= 0:
            correction = FoundCorrection(index, *replaced, cue)
            found.append((correction.new is not None, score - FARTHER * distance, correction))
    return max(found)[2] if found else None


def keep_preposition(found: FoundCorrection, message: str, cues: Cues) -> FoundCorrection:
    """Return a correction with the preposition that the person says before the right value: "no Porto", "em Braga"."""
    old, new = (_find_place(*one, cues) for one in ((found.sentence, found.old), (message, found.new or "")))
    if not found.new or not old or not new or old.lastgroup != new.lastgroup:
        return found
    return found._replace(old=f"{old[0]} {found.old}", new=f"{new[0]} {found.new}")


def _find_place(text: str, value: str, cues: Cues) -> re.Match[str] | None:
    """Return the preposition right before a value, which may be one word with an article."""
    return next((one for one in cues["place"].finditer(text) if text[one.end() :].lstrip().startswith(value)), None)


def _states_nothing(text: str) -> bool:
    """Return whether a text only asks or requests, or is not asserted."""
    clauses = split_message(text)
    if find_reading(list_unasserted(text), 0, len(text)):
        return True
    return bool(clauses) and all(one.form in (ClauseForm.QUESTION, ClauseForm.REQUEST) for one in clauses)


def rate_correcting(own: str, question: str, last: str) -> float:
    """Return the highest probability that a part of a message in English corrects what was said before it."""
    reading = read_speech(own, question, last)
    return max((reading.rate(*one.span()).get("correct", 0.0) for one in _PART.finditer(own)), default=0.0)


_Replaced = tuple[str, str, str | None]  # a sentence, its wrong words, and the right ones, if any


def _find_replaced(
    text: str, own: str, compared: MessageComparison, cues: Cues, *, rates: tuple[float, ...]
) -> tuple[float, _Replaced | None]:
    """Return what a message corrects in a text, and how surely. `rates` are those that it corrects, and tells.

    Without right words, all of a sentence must be wrong.
    """
    wrong, right = compared.wrong, compared.right
    sentence = next((one for one in SENTENCE.finditer(text) if wrong and one.start() <= wrong.start < one.end()), None)
    if wrong is None or sentence is None or (right and _is_denied(own, right.start, cues)):
        return 0.0, None
    if right and _tells_anew(own, right, sentence[0], cues):
        return 0.0, None
    is_whole = wrong.end - wrong.start >= MIN_WHOLE * len(sentence[0])
    if right is None and names_other_value(own, sentence[0]):
        return 0.0, None
    if right is None:
        sure = (rates[0] + wrong.probability) / 2 - MIN_WITHDRAWN
        # "Oh, blow it" and "please forget that I live in Graz" take nothing back.
        is_said = len(own.split()) > MAX_EXCLAMATION and not _states_nothing(own)
        return sure * SHARPNESS, (sentence[0], sentence[0], None) if is_whole and is_said else None
    values = (rates[0], wrong.probability, right.probability, rates[1])
    score = sum(weight * one for weight, one in zip(WEIGHTS, values, strict=True)) + BIAS
    score -= OTHER * _differ(_find_clause(own, right), own[right.start : right.end], sentence[0])
    if is_whole:
        return score, (sentence[0], sentence[0], _find_clause(own, right))
    words = _fit_words(sentence[0], text[wrong.start : min(wrong.end, sentence.end())], own, right, cues)
    return score, (sentence[0], *words) if words else None


def _fit_words(sentence: str, old: str, own: str, right: MarkedPart, cues: Cues) -> tuple[str, str] | None:
    """Return the marked wrong words of a sentence and the right ones, each as far as they stand for each other."""
    is_phrase = is_function(old.split(maxsplit=1)[0], sentence)  # "at night" stands for "in the morning"
    leading = [cues["cue"], cues["negated"], *([] if is_phrase else [cues["joint"]])]
    overlapping = [one for one in find_values(own) if one.start < right.end and one.end > right.start]
    start, end = (
        min([right.start, *(one.start for one in overlapping)]),
        max([right.end, *(one.end for one in overlapping)]),
    )
    new = _strip(own[start:end], cues, leading)
    new = new if "," in old else new.split(", ")[0]
    values = find_values(old)
    if not new or has_words(sentence, new):  # "Tommy's at no 7, the spaniel's at 9"
        kinds = {one.kind for one in values}
        others = [one.text for one in find_values(own) if one.kind in kinds and not has_words(sentence, one.text)]
        new = next(iter(others), "")
    if len(new.split()) == 1 and not any(map(str.isdigit, new)):
        old = next((one for one in WORD.findall(sentence) if _is_misspelled(one, new)), old)
    numbers = [one for one in values if one.kind != "name"]
    if numbers and find_values(new)[:1] and find_values(new)[0].text == new:  # "45" stands for "50" in "50 mg"
        same = [one for one in numbers if one.kind == find_values(new)[0].kind] or numbers
        old = same[-1].text
    elif numbers and not find_values(new):  # "feet" for "m" in "180 m"
        old = old.replace(numbers[0].text, "").strip() or old
    is_same = not new or old.casefold() == new.casefold() or _only_exclaims(own, old)
    return None if is_same else (old, new)


def _strip(text: str, cues: Cues, leading: Sequence[re.Pattern[str]]) -> str:
    """Return words without those of a correction before them, and without what they negate."""
    text = text.strip(" ,.;:!?*–—-")
    while (match := next(filter(None, (one.match(text) for one in leading)), None)) and match.end() < len(text):
        text = text[match.end() :].strip(" ,.;:!?*–—-")
    return cues["negated"].split(text)[0].strip(" ,.;:–—-")


def _differ(clause: str, new: str, sentence: str) -> int:
    """Return how far a clause with the right words says the like of another subject or value than a sentence does."""
    words, known = list_words(clause), fold(sentence)
    verb = find_verb(words)
    if verb < 1:
        return 0
    subject = [one.text for one in words[:verb] if not is_function(one.text, sentence)]
    if words[verb].text not in english.AUXILIARIES | {*known}:  # "the lido opens at half six", of who swims at six
        return 2 * any(one not in known for one in subject)
    others = [one.text for one in find_values(clause.replace(new, " ", 1))]
    return any(one not in known for one in subject) + 3 * any(not has_words(sentence, one) for one in others)


def _tells_anew(own: str, right: MarkedPart, sentence: str, cues: Cues) -> bool:
    """Return whether a message is a statement of its own: a whole clause on another subject, or with no other word.

    "My name is Paula" corrects nothing of "My brother Tim lives in Leeds", "he lives in Paris" does.
    """
    words = list_words(_find_clause(own, right))
    verb = find_verb(words)
    if verb < 1 or cues["cue"].match(own) or cues["negated"].search(own):
        return False
    subject = [one.text for one in words[:verb]]
    if not (about := [one for one in subject if not is_function(one, sentence)]):
        if any(one.casefold().split("'")[0] in _REFERRING for one in subject):
            return False
        values = fold(own[right.start : right.end])
        about = [one.text for one in words[verb:] if one.text.casefold() not in values]
    known = {stem_word(one) for one in fold(sentence)}
    return not any(stem_word(one.casefold()) in known for one in about if not is_function(one, sentence))


def _is_denied(own: str, start: int, cues: Cues) -> bool:
    """Return whether words of a message stand behind a "not": "it is not Mr. Iliev"."""
    ends = (one.end() for one in cues["negated"].finditer(own, 0, start))
    return any(len(own[end:start].split()) < 2 and not re.search(r"[,;]", own[end:start]) for end in ends)


def _only_exclaims(own: str, old: str) -> bool:
    """Return whether a message is a word in small letters where a name stands, and not nearly spells it: "righto"."""
    is_plain = re.fullmatch(r"[^\W\d]+[.!]*", own.strip()) and own.islower() and old[:1].isupper()
    return bool(is_plain and not find_values(own)) and not any(_is_misspelled(one, own) for one in old.split())


def _is_misspelled(word: str, new: str) -> bool:
    return word[:1].isupper() and 0 < count_edits(word.casefold(), new.casefold()) <= min(MAX_TYPO, len(new) // 2)


def _find_clause(own: str, right: MarkedPart) -> str:
    return next((one[0] for one in _PART.finditer(own) if one.end() > right.start), own)


def names_other_value(message: str, sentence: str) -> bool:
    """Return whether a message has a value of the kind of one in a sentence, and none that the sentence has."""
    mine, theirs = find_values(message), find_values(sentence)
    kinds = {one.kind for one in mine} & {one.kind for one in theirs}
    return bool(kinds) and not any(has_words(message, one.text) for one in theirs if one.kind in kinds)


def has_words(sentence: str, text: str) -> bool:
    """Return whether a sentence has a text as whole words."""
    return re.search(rf"(?<!\w){re.escape(text)}(?!\w)", sentence, re.IGNORECASE) is not None


def fold(text: str) -> list[str]:
    """Return the words of a text in lower case."""
    return [word.casefold() for word in WORD.findall(text)]
