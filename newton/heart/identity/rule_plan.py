"""Plan of what a message of the user changes in the user's rules: which it states, and which in force it lifts. Pure.

Certain wordings are found by patterns, the others by the model of `rule_model`. A message lifts a rule only if one rule
in force is clearly what it is about; otherwise it changes nothing.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import NamedTuple

import numpy as np

from newton.heart.identity.conflicts import compare_lines
from newton.heart.identity.rule_model import MaskedSentence, classify_sentence, list_rule_features, split_sentences
from newton.heart.identity.standing_instructions import StandingInstruction, detect_instructions
from newton.heart.identity.tenets import IdentityTenet, normalize_line
from newton.heart.identity.wish_patterns import concerns_every_answer, concerns_one_case
from newton.heart.statements.lemmas import lemmatize
from newton.languages.detection import detect_language
from newton.languages.language_data import ENGLISH
from newton.providers.embedding import Vector

MIN_STATING = 0.85
MIN_ADDRESSED_STATING = 0.7  # of a sentence that addresses the agent
MIN_LIFTING = 0.3
MIN_FULL_LIFTING = 0.5  # from which a rule is removed and not only amended
MIN_MATCH = 0.45  # of a message with the rule that it lifts
MIN_CLOSE_LIFTING, MIN_CLOSE_MATCH = 0.15, 0.65  # of one that less speaks for, or that has no word of the rule
MIN_LIFTING_WORDS = 2  # content words of a sentence that says itself what it lifts
MAX_AMENDED_WORDS = 55  # of a rule with the message that changes it
MATCH_MARGIN = 0.08  # by which the rule must match better than any other
WORD_SHARE = 0.2  # that a common content word adds to the likeness
MAX_OWN_WORDS = 25  # a message up to this length is kept whole as the wording of its rule
MIN_FRAGMENT_WORDS = 5  # a shorter sentence is kept with the one before it

_ADDRESS = re.compile(r"\b(?:you|u|your|ur|yourself)\b", re.IGNORECASE)
# Parts of a message from which it lifts a rule only in part, or for a time.
_PARTIAL = re.compile(
    r"\b(?:except\w*|only|but|until|till|unless|up to|under|below|above|for (?:now|the|my|this|an?)|during|otherwise"
    r"|rest|stays?|stand(?:s|ing)?|remains?|still|others?|everything else|instead|now begins?|make that|change|though"
    r"|when)\b",
    re.IGNORECASE,
)
_LIFTING_FEATURES = frozenset({"again", "allowed", "lifting", "permission"})
_WORD = re.compile(r"[^\W\d_]{3,}")
_COMMON_WORDS = """
about again all also and any are ask back can don every fine for from get give just keep let like longer make mention
more need never not now okay one please rule say stop suggest tell that the them then they thing this use want was what
when with without write you your
"""
_COMMON = frozenset(_COMMON_WORDS.split())


class LiftedRule(NamedTuple):
    """A rule that a message lifts; with `new_text`, it is changed to this."""

    rule: IdentityTenet
    new_text: str | None


class RulePlan(NamedTuple):
    """The rules that a message states, and the rules in force that it lifts."""

    stated: tuple[StandingInstruction, ...] = ()
    lifted: tuple[LiftedRule, ...] = ()


def list_rule_texts(text: str) -> list[str]:
    """Return the texts whose vectors `plan_rules` needs of a message: its sentences, if it is in English."""
    if detect_language(text) != ENGLISH:
        return []
    return [sentence.text for sentence in split_sentences(text)]


def plan_rules(text: str, rules: Sequence[IdentityTenet], vectors: Mapping[str, Vector], *, said_on: date) -> RulePlan:
    """Return what a message changes in the `rules` in force.

    `vectors` are those of the sentences of the message and of the rules, by text; without them, only patterns count.
    """
    stated = detect_instructions(text)
    sentences = [one for one in split_sentences(text) if one.text in vectors]
    lifted = _find_lifted(sentences, rules, vectors, said_on=said_on)
    if lifted:
        return RulePlan((), lifted)
    if not stated and (wording := _find_stated(text, sentences, vectors)):
        stated = [StandingInstruction("preference" if concerns_every_answer(wording) else "instruction", wording)]
    return RulePlan(tuple(stated))


def _find_stated(text: str, sentences: Sequence[MaskedSentence], vectors: Mapping[str, Vector]) -> str | None:
    """Return the words of the rule or wish that the sentences state, if any."""
    found = [
        number
        for number, one in enumerate(sentences)
        if not concerns_one_case(one.masked)
        and classify_sentence(one, vectors[one.text])["stating"]
        >= (MIN_ADDRESSED_STATING if _ADDRESS.search(one.masked) else MIN_STATING)
    ]
    if not found:
        return None
    if len(text.split()) <= MAX_OWN_WORDS and "?" not in text:
        return text
    chosen = set(found)
    chosen |= {n - 1 for n in found if n and len(sentences[n].text.split()) < MIN_FRAGMENT_WORDS}
    return " ".join(sentences[n].text for n in sorted(chosen))


def _find_lifted(
    sentences: Sequence[MaskedSentence], rules: Sequence[IdentityTenet], vectors: Mapping[str, Vector], *, said_on: date
) -> tuple[LiftedRule, ...]:
    """Return the rule that the most probable of the sentences lifts, if it is clear which."""
    known = [rule for rule in rules if rule.text in vectors]
    chances = [(classify_sentence(one, vectors[one.text])["lifting"], one) for one in sentences]
    if not known or not chances:
        return ()
    chance, sentence = max(chances, key=lambda pair: pair[0])
    if chance < MIN_CLOSE_LIFTING:
        return ()
    # a sentence that says itself what it lifts is not about what another one names
    about = [sentence] if len(_list_content_words(sentence.text)) >= MIN_LIFTING_WORDS else sentences
    scored = [(max(_match(one, rule, vectors) for one in about), rule) for rule in known]
    (score, rule), *others = sorted(scored, key=lambda pair: pair[0], reverse=True)
    has_common_word = any(_list_content_words(one.text) & _list_content_words(rule.text) for one in about)
    required = MIN_MATCH if chance >= MIN_LIFTING and has_common_word else MIN_CLOSE_MATCH
    if score < required or (others and others[0][0] > score - MATCH_MARGIN):
        return ()
    wording = " ".join(one.text for one in sentences)
    if compare_lines(rule.text, sentence.text) == "same":
        return ()
    has_form = not _LIFTING_FEATURES.isdisjoint(list_rule_features(sentence))
    is_narrower = bool(_list_content_words(sentence.text) - _list_content_words(rule.text))
    if chance >= MIN_FULL_LIFTING and has_form and not is_narrower and not _PARTIAL.search(wording):
        return (LiftedRule(rule, None),)
    change = wording if len(f"{rule.text} {wording}".split()) <= MAX_AMENDED_WORDS else sentence.text
    return (LiftedRule(rule, f"{rule.text} (since {said_on}: {change})"),)


def _match(sentence: MaskedSentence, rule: IdentityTenet, vectors: Mapping[str, Vector]) -> float:
    """Return how much a sentence is about the same as a rule: the likeness of the vectors, and common words."""
    common = _list_content_words(sentence.text) & _list_content_words(rule.text)
    return float(np.dot(vectors[sentence.text], vectors[rule.text])) + WORD_SHARE * min(len(common), 2)


def _list_content_words(text: str) -> frozenset[str]:
    words = map(lemmatize, _WORD.findall(normalize_line(text)))
    return frozenset(word for word in words if word not in _COMMON)
