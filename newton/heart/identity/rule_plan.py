"""Plan of the changes that a message makes to the user's rules: rules that it states, and rules that it lifts. Pure.

Patterns find certain wordings, the model in `wish_models` the others. A message lifts a rule only if it is clear which
rule in force it means; otherwise it changes nothing.

A wish in passing is one in a clause of a message about something else. Its patterns, in `wish_patterns.yaml`, match at
the beginning of a clause that is not limited to one case, is no question and does not report what others say.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from newton.heart.identity.standing_wishes import (
    PassingPatterns,
    StandingInstruction,
    concerns_every_answer,
    concerns_manner,
    concerns_one_case,
    detect_instructions,
    find_standing_type,
    load_passing_patterns,
)
from newton.heart.identity.tenets import IdentityTenet, compare_lines, normalize_line
from newton.heart.identity.wish_models import MaskedSentence, classify_sentence, list_rule_features, mask_sentences
from newton.heart.persons.person_questions import read_person_question
from newton.providers.embedding import Vector
from newton.text.english import lemmatize
from newton.text.languages import ENGLISH, detect_language

MAX_WORDS = 40  # of a wording; of a longer one, only the clause is kept
CLAUSE_WORDS = range(3, 19)  # of a clause that is classified

_BOUNDARY = re.compile(r"[,;–—]+\s+|\s-+\s+|\s(?=(?:and|so|but)\s)")
_CLOSE = re.compile(r"[\s,;:–—-]+$")
_TAG = re.compile(r",? (?:would|will|could|can) (?:you|u)(?: please)?\s*\?$|,? ok(?:ay)?\s*\?$", re.IGNORECASE)
_POLITE = re.compile(r"(?:please |just )?(?:can|could|would|will) (?:you|u) |do you mind", re.IGNORECASE)
_EDGES = re.compile(r"(?:,? (?:please|pls|thanks|ta))?[\s.!?,;:–—-]*$", re.IGNORECASE)


def find_passing_wish(sentence: MaskedSentence, message: str) -> str | None:
    """Return the wording of the first wish that a clause of the sentence states; None if none does.

    `message` is the whole message, which may show that a word is a name.
    """
    patterns = load_passing_patterns()
    masked = _TAG.sub("", sentence.masked.replace("’", "'"))
    for start, end in _list_clauses(masked):
        opener = patterns.openers.match(masked, start)
        begin = opener.end() if opener else start
        if masked.endswith("?") and end == len(masked) and not _POLITE.match(masked, begin):
            continue
        if concerns_one_case(masked[begin:end]) or patterns.others.search(masked[:start]):
            continue
        if _states_wish(masked[begin:], message, patterns):
            wording = _EDGES.sub("", sentence.text[begin : len(masked)])
            if len(wording.split()) > MAX_WORDS:
                wording = _EDGES.sub("", sentence.text[begin:end])
            return wording[:1].upper() + wording[1:]
    return None


def list_manner_clauses(sentence: MaskedSentence) -> list[MaskedSentence]:
    """Return the clauses of a sentence, and pairs of adjacent ones, with a word about the manner of answers."""
    clauses = list(_list_clauses(sentence.masked))
    spans = [*clauses, *((one[0], following[1]) for one, following in pairwise(clauses))] if len(clauses) > 1 else []
    found = (MaskedSentence(_CLOSE.sub("", sentence.text[a:b]), sentence.masked[a:b]) for a, b in sorted(spans))
    return [one for one in found if len(one.text.split()) in CLAUSE_WORDS and concerns_manner(one.masked)]


def shorten_wording(sentence: MaskedSentence, clause: MaskedSentence) -> str:
    """Return the words of the sentence, or of the clause if those are too many."""
    return sentence.text if len(sentence.text.split()) <= MAX_WORDS else clause.text


def _states_wish(clause: str, message: str, patterns: PassingPatterns) -> bool:
    if patterns.wishes.match(clause):
        return True
    return patterns.names.match(clause) is not None and patterns.naming.search(message) is not None


def _list_clauses(sentence: str) -> Iterator[tuple[int, int]]:
    """Yield the beginning and the end of each clause."""
    starts = [0, *(found.end() for found in _BOUNDARY.finditer(sentence))]
    yield from zip(starts, [*starts[1:], len(sentence)], strict=True)


MIN_STATING = 0.85
MIN_ADDRESSED_STATING = 0.7  # of a sentence that addresses the agent
MIN_CERTAIN_STATING = 0.95  # of a message that a model reads
MIN_MANNER_STATING = 0.7  # of a wish on the manner of answers, which harms nobody until a model lifts it
MIN_CLAUSE_STATING = 0.85  # of a clause with such a wish, in a sentence on something else
MIN_UNSURE = 0.5
MIN_LIFTING = 0.3
MIN_FULL_LIFTING = 0.5  # from which a rule is removed and not only amended
MIN_MATCH = 0.45  # of a message with the rule that it lifts
MIN_CLOSE_LIFTING, MIN_CLOSE_MATCH = 0.15, 0.65  # of one that less speaks for, or that has no word of the rule
MIN_ALSO = 0.25  # of another sentence to state or lift something, for its words to be part of the change
MIN_LIFTING_WORDS = 2  # content words of a sentence that says itself what it lifts
MAX_NAMING_WORDS = 6  # of another sentence that says what it lifts: "The nuts rule?"
MAX_AMENDED_WORDS = 55  # of a rule with the message that changes it
MATCH_MARGIN = 0.08  # by which the rule must match better than any other
WORD_SHARE = 0.2  # that a common content word adds to the likeness
MIN_BESIDE = 0.15  # of a sentence beside one that states a rule, to belong to it
MIN_FRAGMENT_WORDS = 5  # a shorter sentence is kept with the one before it

_ADDRESS = re.compile(r"\b(?:you|u|your|ur|yourself|please|pls|plz)\b", re.IGNORECASE)
_SUPPOSED = re.compile(r"\bif (?:i|we)(?: ever)? (?:would|were|was|had|could|won)\b", re.IGNORECASE)
# Parts of a message from which it lifts a rule only in part, or for a time.
_PARTIAL = re.compile(
    r"\b(?:except\w*|only|but|until|till|unless|up to|under|below|above|for (?:now|the|my|this|an?)|during|otherwise"
    r"|rest|stays?|stand(?:s|ing)?|remains?|still|others?|everything else|instead|now begins?|make that|change|though"
    r"|when)\b",
    re.IGNORECASE,
)
_OTHER_FEATURES = frozenset({"interrogative", "other_subject", "others", "past", "reported"})
_LIFTING_FEATURES = frozenset({"again", "allowed", "lifting", "permission"})
# What a sentence that lifts a rule asks of the agent or allows, and what keeps a rule instead.
_ADDRESSED = frozenset({"duty", "order", "permission"})
_KEPT = re.compile(
    r"\b(?:not|never|n't|dont) (?:ever |you )?"
    r"(?:cancel|change|delete|drop|end|erase|forget|lift|remove|scrap|touch|undo)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]{3,}")
_COMMON_WORDS = """
about again all also and any are ask back can don every fine for from get give just keep let like longer make mention
more need never not now okay one please rule say stop suggest tell that the them then they thing this use want was what
when with without write you your
"""
_COMMON = frozenset(_COMMON_WORDS.split())


class LiftedRule(NamedTuple):
    """A rule that a message ends or, with `new_text`, changes to this text."""

    rule: IdentityTenet
    new_text: str | None


class RulePlan(NamedTuple):
    """The rules that a message states, and the rules in force that it lifts (ends or changes).

    `is_unsure` means that other sentences may state or lift rules, so that a model should read the message soon.
    """

    stated: tuple[StandingInstruction, ...] = ()
    lifted: tuple[LiftedRule, ...] = ()
    is_unsure: bool = False


def list_rule_texts(text: str) -> list[str]:
    """Return the texts whose vectors `plan_rules` needs of an English message: its sentences, and clauses of them."""
    if detect_language(text) != ENGLISH:
        return []
    sentences = mask_sentences(text)
    return list(dict.fromkeys(one.text for whole in sentences for one in (whole, *list_manner_clauses(whole))))


def plan_rules(
    text: str,
    rules: Sequence[IdentityTenet],
    vectors: Mapping[str, Vector],
    *,
    said_on: date,
    has_reader: bool = False,
) -> RulePlan:
    """Return what a message changes in the `rules` in force.

    `vectors` are those of the sentences of the message and of the rules, by text; without them, only patterns count.
    `has_reader` means that a model will read the message too: then only certain rules are stated, and none is lifted.
    """
    if read_person_question(text).is_asked:
        return RulePlan()
    sentences = [one for one in mask_sentences(text) if one.text in vectors]
    lifted = _find_lifted(sentences, rules, vectors, said_on=said_on)
    if lifted:
        return RulePlan(is_unsure=True) if has_reader else RulePlan((), lifted)
    stated = detect_instructions(text)
    stated += _find_passing(text, [one.text for one in stated])
    get_threshold = _get_certain_threshold if has_reader else _get_threshold
    others = list(map(_to_instruction, _find_stated(sentences, vectors, [one.text for one in stated], get_threshold)))
    found = (*stated, *others)
    left = [one for one in sentences if not _has_words(one, [rule.text for rule in found])]
    return RulePlan(found, is_unsure=any(_may_concern_rules(one, vectors, has_rules=bool(rules)) for one in left))


def _find_passing(text: str, known: Sequence[str]) -> Iterator[StandingInstruction]:
    """Yield the wishes in clauses of an English message about something else, unless a sentence has `known` wishes."""
    for sentence in mask_sentences(text) if detect_language(text) == ENGLISH else ():
        wording = None if _has_words(sentence, known) else find_passing_wish(sentence, text)
        if wording:
            yield StandingInstruction("preference", wording)


def _has_words(sentence: MaskedSentence, wordings: Sequence[str]) -> bool:
    return any(words.casefold() in sentence.text.casefold() for words in wordings)


def _may_concern_rules(sentence: MaskedSentence, vectors: Mapping[str, Vector], *, has_rules: bool) -> bool:
    lifting = classify_sentence(sentence, vectors[sentence.text])["lifting"] if has_rules else 0.0
    return max(_compute_stating(sentence, vectors), lifting) >= MIN_UNSURE


def _to_instruction(wording: str) -> StandingInstruction:
    return StandingInstruction("preference" if concerns_every_answer(wording) else "instruction", wording)


def _find_stated(
    sentences: Sequence[MaskedSentence],
    vectors: Mapping[str, Vector],
    known: Sequence[str],
    get_threshold: Callable[[MaskedSentence], float],
) -> Iterator[str]:
    """Yield the words of each rule or wish that sentences state, except sentences with the `known` words.

    A sentence that may be a rule is joined to an adjacent sentence that is one, a fragment to the sentence before it.
    """
    chances = [_compute_stating(one, vectors) for one in sentences]
    is_known = [_has_words(one, known) for one in sentences]
    taken = {number for number, has_words in enumerate(is_known) if has_words}
    for number, one in enumerate(sentences):
        if number in taken:
            continue
        if chances[number] < get_threshold(one):
            if clause := _find_clause(one, vectors):
                yield shorten_wording(one, clause)
            continue
        begin, end = number, number + 1
        if begin - 1 not in taken and begin and chances[begin - 1] >= MIN_BESIDE:
            begin -= 1
        if end < len(sentences) and end not in taken and MIN_BESIDE <= chances[end] < _get_threshold(sentences[end]):
            end += 1
        if number and len(one.text.split()) < MIN_FRAGMENT_WORDS and number - 1 not in taken:
            begin = number - 1
        taken |= set(range(begin, end))
        yield " ".join(sentence.text for sentence in sentences[begin:end])


def _find_clause(sentence: MaskedSentence, vectors: Mapping[str, Vector]) -> MaskedSentence | None:
    """Return the first clause that states a wish on the manner of answers; None if none does.

    Sentences with a supposition, about a single case or with a request only say how one thing is to be done.
    """
    if _is_single(sentence) or "request" in list_rule_features(sentence):
        return None
    clauses = (one for one in list_manner_clauses(sentence) if one.text in vectors and _is_on_manner(one))
    return next((one for one in clauses if _compute_stating(one, vectors) >= MIN_CLAUSE_STATING), None)


def _compute_stating(sentence: MaskedSentence, vectors: Mapping[str, Vector]) -> float:
    """Return the probability that a sentence states a rule or wish; 0 if it is about one case or a supposition."""
    if _is_single(sentence):
        return 0.0
    return classify_sentence(sentence, vectors[sentence.text])["stating"]


def _is_single(sentence: MaskedSentence) -> bool:
    return concerns_one_case(sentence.masked) or _SUPPOSED.search(sentence.masked) is not None


def _get_threshold(sentence: MaskedSentence) -> float:
    if _is_on_manner(sentence):
        return MIN_MANNER_STATING
    return MIN_ADDRESSED_STATING if _ADDRESS.search(sentence.masked) else MIN_STATING


def _get_certain_threshold(sentence: MaskedSentence) -> float:
    return MIN_MANNER_STATING if _is_on_manner(sentence) else MIN_CERTAIN_STATING


def _is_on_manner(sentence: MaskedSentence) -> bool:
    """Return whether a sentence is about the manner of answers, and not about other people or the past."""
    return concerns_manner(sentence.masked) and _OTHER_FEATURES.isdisjoint(list_rule_features(sentence))


def may_lift(text: str) -> bool:
    """Return whether a message may lift a rule: a sentence of it allows something, or asks the agent for something.

    >>> [may_lift(text) for text in ("You may call me Bo again.", "Do not lift the rule.", "My sister uses no lists.")]
    [True, False, False]
    """
    return detect_language(text) != ENGLISH or any(map(_asks_to_lift, mask_sentences(text)))


def list_rulings(text: str) -> list[str]:
    """Return the sentences of a message that may tell the agent a lasting rule or wish, whatever their words.

    >>> list_rulings("I want short answers. My son learns Latin. Do not call before nine.")
    ['I want short answers.', 'Do not call before nine.']
    """
    if detect_language(text) != ENGLISH:
        return [text] if find_standing_type(text) else []
    return [one.text for one in mask_sentences(text) if _tells_rule(one, text)]


def _tells_rule(sentence: MaskedSentence, message: str) -> bool:
    features = {*list_rule_features(sentence)}
    if features & {"other_subject", "interrogative"}:
        return find_passing_wish(sentence, message) is not None
    if re.match(r"\W*(?:when|whenever|if)\b", sentence.masked, re.IGNORECASE):  # "When I cook, leave out the nuts"
        clauses = (MaskedSentence(sentence.text[a:b], sentence.masked[a:b]) for a, b in _list_clauses(sentence.masked))
        features |= {"condition"}.union(*map(list_rule_features, clauses))
    is_lasting = bool(features & {"lasting", "reply", "language", "unit", "address", "approval", "condition"})
    is_wanted = bool(features & (_ADDRESSED | {"own_wish"})) and is_lasting
    is_negative = bool(features & {"negative_order", "negative_start"})
    return is_wanted or is_negative or find_standing_type(sentence.text) is not None


def _asks_to_lift(sentence: MaskedSentence) -> bool:
    features = list_rule_features(sentence)
    is_own = "other_subject" not in features and not (_LIFTING_FEATURES | {"lasting", "once"}).isdisjoint(features)
    return not _KEPT.search(sentence.masked) and (is_own or not _ADDRESSED.isdisjoint(features))


def _find_lifted(
    sentences: Sequence[MaskedSentence], rules: Sequence[IdentityTenet], vectors: Mapping[str, Vector], *, said_on: date
) -> tuple[LiftedRule, ...]:
    """Return the rule that the most probable of the sentences lifts; nothing if it is not clear which.

    If only a part of it is lifted, the change is added to its text, with the day `said_on`.
    """
    known = [rule for rule in rules if rule.text in vectors]
    chances = [(classify_sentence(one, vectors[one.text])["lifting"], one) for one in sentences]
    if not known or not chances:
        return ()
    chance, sentence = max(chances, key=lambda pair: pair[0])
    if chance < MIN_CLOSE_LIFTING or not any(map(_asks_to_lift, sentences)):
        return ()
    # a sentence that says itself what it lifts is not about what another one names
    says_what = len(_list_content_words(sentence.text)) >= MIN_LIFTING_WORDS
    about = [one for one in sentences if one is sentence or not (says_what or len(one.text.split()) > MAX_NAMING_WORDS)]
    scored = [(max(_match(one, rule, vectors) for one in about), rule) for rule in known]
    (score, rule), *others = sorted(scored, key=lambda pair: pair[0], reverse=True)
    has_common_word = any(_list_content_words(one.text) & _list_content_words(rule.text) for one in about)
    required = MIN_MATCH if chance >= MIN_LIFTING and has_common_word else MIN_CLOSE_MATCH
    if score < required or (others and others[0][0] > score - MATCH_MARGIN):
        return ()
    kinds = [classify_sentence(one, vectors[one.text]) for one in sentences]
    has_part = [one is sentence or kind["passing"] <= 1 - MIN_ALSO for one, kind in zip(sentences, kinds, strict=True)]
    wording = " ".join(one.text for one, is_part in zip(sentences, has_part, strict=True) if is_part)
    if compare_lines(rule.text, sentence.text) == "same":
        return ()
    has_form = not _LIFTING_FEATURES.isdisjoint(list_rule_features(sentence))
    is_narrower = bool(_list_content_words(sentence.text) - _list_content_words(rule.text))
    if chance >= MIN_FULL_LIFTING and has_form and not is_narrower and not _PARTIAL.search(wording):
        return (LiftedRule(rule, None),)
    change = wording if len(f"{rule.text} {wording}".split()) <= MAX_AMENDED_WORDS else sentence.text
    return (LiftedRule(rule, f"{rule.text} (since {said_on}: {change})"),)


def _match(sentence: MaskedSentence, rule: IdentityTenet, vectors: Mapping[str, Vector]) -> float:
    """Return a score for how well a sentence matches a rule, from the similarity of vectors and common words."""
    common = _list_content_words(sentence.text) & _list_content_words(rule.text)
    return float(np.dot(vectors[sentence.text], vectors[rule.text])) + WORD_SHARE * min(len(common), 2)


def _list_content_words(text: str) -> frozenset[str]:
    words = map(lemmatize, _WORD.findall(normalize_line(text)))
    return frozenset(word for word in words if word not in _COMMON)
