"""Logistic models that find standing wishes and rules which no pattern of `standing_wishes` finds. Pure.

Their inputs are features of form and the vector of a text by the bundled embedding model. `StandingModel` (fitted by
`scripts/fit-standing`) marks messages once their vectors are computed; `RuleModel` (fitted by `scripts/fit-rules`)
classifies sentences.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Literal, NamedTuple

import numpy as np

from newton.heart.identity.standing_wishes import (
    MAX_MESSAGE_CHARACTERS,
    SENTENCE,
    concerns_every_answer,
    concerns_one_case,
    mask_foreign_text,
)
from newton.memory.memory import StandingType
from newton.providers.embedding import Vector

MAX_WORDS = 30  # a longer text says more than a wish, and its vector too

_SPEAKER = re.compile(r"^[^:.!?]{1,40}: ")
_PERSON = re.compile(r"\b(?:I|I'd|I'm|my)\b")
# What makes a text one on a single case, a fact or a question.
_DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_STANDING_FEATURES = {
    name: re.compile(pattern, re.IGNORECASE)
    for name, pattern in {
        "definite": r"\b(?:the|this|that|these|those|it|him|her|them|his|their|its)\b",
        "time": rf"\b(?:now|then|yet|still|soon|later|already|today|tonight|tomorrow|yesterday|once|{_DAY})\b",
        "question": r"\?\s*$",
        "other_subject": r"^\W*(?:(?:but|and|so|ok|well),? )?(?:he|she|they|we|it|there|every(?:body|one)|nobody"
        r"|somebody|mum|dad|(?:my|our|his|her|the|this|that) (?!pronouns|name)[\w-]+)\b",
        "own_subject": r"^\W*(?:i|i'm|i'd|i've|my)\b",
        "addressed": r"^\W*you\b(?! (?:can|may|should|must|need|don't))",
        "past": r"\b(?:was|were|had|did|said|told|asked|\w{3,}ed)\b",
        "lasting": r"\b(?:always|never|whenever|every|each|any|anything|ever|all|from now|default|when)\b",
        "answer": r"\b(?:answers?|replies|repl(?:y|ied)|sentences?|words?|explain\w*|explanations?|language|you)\b",
        "name": r"(?<=[a-z,] )(?-i:[A-Z][a-z]+)",
        "polite": r"\b(?:please|thanks)\b",
        "number": r"\d",
        "others": r"\b(?:he|she|they|we|us|our|ours)\b",
        "reported": r"\b(?:says?|said|told|tells?|wants?|asks?|asked)\b",
        "order": r"^\W*(?:don't|do not|no|stop|avoid|never|without|only|keep|use|be)\b",
    }.items()
}


class StandingModel(NamedTuple):
    """The weights of the vector and of the features of a text, and the least probability of a standing wish."""

    vector_model: str
    min_probability: float
    base: float
    weights: Sequence[float]
    feature_weights: Mapping[str, float]


@cache
def load_standing_model() -> StandingModel:
    """Return the fitted model of the file `standing_model.json`."""
    text = files("newton.heart.identity").joinpath("standing_model.json").read_text(encoding="utf-8")
    return StandingModel(**json.loads(text))


def find_standing_by_vector(embedded_text: str, vector: Vector, *, vector_model: str) -> StandingType | None:
    """Return the type of the standing wish that a text of the person probably states; None for none.

    `embedded_text` may begin with the speaker. With another embedding model than the fitted one, return None.
    """
    text, model = _SPEAKER.sub("", embedded_text, count=1), load_standing_model()
    if vector_model != model.vector_model or not 2 <= len(text.split()) <= MAX_WORDS:
        return None
    if concerns_one_case(text) or compute_standing_probability(text, vector) < model.min_probability:
        return None
    if concerns_every_answer(text):
        return "manner"
    return "preference" if _PERSON.search(text) else "instruction"


def compute_standing_probability(text: str, vector: Vector) -> float:
    """Return the probability that a text with this unit vector states a standing wish."""
    model = load_standing_model()
    odds = model.base + float(np.dot(vector, model.weights))
    odds += sum(model.feature_weights[name] for name in list_standing_features(text))
    return 1 / (1 + math.exp(-odds))


def list_standing_features(text: str) -> Sequence[str]:
    """Return the names of the features that a text has.

    >>> list_standing_features("Never use emojis, please.")
    ['lasting', 'polite', 'order']
    """
    plain = text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    return [name for name, pattern in _STANDING_FEATURES.items() if pattern.search(plain)]


def list_standing_feature_names() -> Sequence[str]:
    return list(_STANDING_FEATURES)


SentenceKind = Literal["stating", "lifting", "passing"]

_LASTING = (
    r"always|never|whenever|every|each|any|anything|any ?time|ever|from (?:now|here|today)(?: on)?|going forward"
    r"|hencefor\w+|in (?:the )?future|by default|as a rule|in general|generally|at all times|for good|permanently"
    r"|indefinitely|as of \w+|until (?:i|further)|no exceptions?|standing|principle|policy|forever|all our"
    r"|now (?:and|or) later"
)
_AGENT_VERBS = (
    "accept|add|address|answer|apologi[sz]e|ask|assume|avoid|begin|book|bring|buy|call|change|check|cite|commit"
    "|confirm|convert|correct|cut|delete|do|drop|end|explain|finish|get|give|guess|help|hold|include|invent|keep|leave"
    "|let|list|lose|make|mention|name|number|order|plan|post|publish|push|put|quit|quote|recommend|refer|refuse|remind"
    "|repeat|reply|respond|round|run|say|schedule|send|share|show|sign|skip|spare|speak|spell|spend|start|stick|stop"
    "|suggest|talk|tell|touch|translate|treat|use|verify|wait|wake|warn|write"
)
_OPENING = r"^\W*(?:(?:please|also|and|oh|so|ok|okay|but|just|kindly|then|by the way|btw|in general)\W+)*"
_RULE_FEATURES = {
    name: re.compile(pattern, re.IGNORECASE)
    for name, pattern in {
        "lasting": rf"\b(?:{_LASTING})\b",
        "once": rf"\b(?:tonight|today|tomorrow|this (?:time|once|one|text|letter|file|week|month|trip|post|story"
        rf"|chapter|passage|bit|evening|mail|email)|for now|right now|just once|now|{_DAY}(?!s)|yet|once|quick|meeting"
        r"|train|game|story)\b",
        "duty": r"\byou(?:'re| are)? (?:must|should|have to|need to|never|always|don't|do not|may|can|can't|mustn't"
        r"|shall|are (?:not )?to|aren't|'ll|will|check|ask|tell|say|give|show|leave|keep|correct|cut|fix|decide|order"
        r"|share|quote|refuse|strip|stay|only|needn't|use|put)\b",
        "permission": r"\byou (?:can|may|might|needn't|could|(?:are|'re) (?:allowed|free)|don't (?:have|need) to)\b"
        r"|\bfeel free\b|\bno need\b|\bhave my permission\b",
        "order": rf"{_OPENING}(?:(?:always|never|only)\W+)*(?:{_AGENT_VERBS})\b",
        "negative_order": rf"{_OPENING}(?:do not|don't|never|stop|quit|no more|enough)\b",
        "negative_start": rf"{_OPENING}(?:no|not|nothing|nobody|none|without|only)\b",
        "negative": r"\b(?:no|nothing|nobody|not a|none|without|only)\b",
        "taboo": r"\b(?:off limits|off the table|hands off|forbidden|not to be|between us|stays?|out)\b",
        "own_duty": r"\bi(?:'ve| have)?(?:'m|'d)? (?:must|mustn't|have to|got to|should|need to|can't|cannot|am not"
        r"|not going|promised|decided|really have to|want to|trying|going|had|was|may|can|could)\b|\bnote to self\b",
        "own_subject": r"^\W*(?:i|i'm|i'd|i've|my|we|we're|our)\b",
        "own_wish": r"\bi(?:'d| would)? (?:really |much )?(?:prefer|rather|like|love|hate|appreciate|want|expect|read"
        r"|think in|don't (?:like|want|need)|do not want|be (?:happier|glad|happy))\b",
        "other_subject": r"^\W*(?:(?:and|but|so|well|in \w+|the other day)\W+)*(?:he|she|they|it|there"
        r"|every(?:body|one)|people|one|somebody|nobody|the|an?|this|that|those|these|dad|mum|mom|our|his|her|their"
        r"|my (?!pronouns|name))\b",
        "reported": r"\b(?:sa(?:id|ys?)|t(?:old|ells?)|wrote|texted|according|reckons?|thinks?|wants? (?:us|me|everyone"
        r"|to be)|asked|insists?|demands?|suggested|claims?|forbids?|allows?|ruled|policy|sign|contract|manual|leaflet"
        r"|rule of|law|poster|teacher|boss|doctor|landlord|coach|inspector|tutor|judge|vet)\b",
        "quoted": "¤",
        "question": r"\?\W*$",
        "interrogative": r"^\W*(?:(?:and|so|but|ok)\W+)*(?:what|why|how|who|when (?:did|do|does|will|is|was)|where"
        r"|which|is|are|does|did|do (?:you|i|we)|should i|was|were)\b",
        "request": r"^\W*(?:can|could|would|will|how about)\b",
        "past": r"\b(?:was|were|had|did|went|came|got|forgot|broke|made|called|found|gave|lost|took|\w{3,}ed)\b",
        "condition": r"\b(?:if|when|whenever|any ?time|each time|every time|before|once|should) (?:i|you|we|my|an?|any"
        r"|somebody|there)\b",
        "again": r"\b(?:again|back|any ?more|no longer|any longer)\b",
        "allowed": r"\b(?:fine|ok|okay|allowed|welcome|all right|alright|permitted|enough|free)\b",
        "lifting": r"\b(?:forget|scrap|ignore|drop|lift(?:ed)?|takes? (?:it )?back|never mind|no longer"
        r"|changed my mind|on second thought|history|suspended|(?:is|are) (?:over|gone)|can go|relax|loosen|switch"
        r"|instead of|exception|i was too|as for|regarding|about the|(?:that|the) \w+ thing|up to|under|needn't"
        r"|without (?:asking|my|me|showing|waiting)|don't (?:need|mind)|doesn't matter|(?:not|isn't) necessary)\b",
        "rule": r"\b(?:rule|limit|ban|thing|order|norm|principle|instruction|arrangement|request)\b",
        "reply": r"\b(?:answers?|repl(?:ies|y)|sentences?|lines?|words?|paragraphs?|pages?|points?|bullets?|lists?"
        r"|tables?|emojis?|tone|language|spelling|markdown|headings?|summar\w+|examples?|sources?|steps?|short|brief"
        r"|blunt|formal|informal|polite|plain)\b",
        "language": r"\b(?:english|german|french|spanish|italian|dutch|british|american|portuguese|polish|turkish)\b",
        "unit": r"\b(?:metric|celsius|fahrenheit|miles|kilomet\w+|grams?|cups|pounds|ounces|euros?|dollars|francs|kg|mg"
        r"|24h?|24-?hour|clock|dates?|units?|inches|prices?|times?|decimals?|temperatures?|weights?|distances?)\b",
        "address": r"\b(?:call(?:ing)? me|pronouns|they/them|she/her|he/him|address(?:ed)?|first names?|last name|go by"
        r"|name|mr|mrs|dr|professor|doctor|sir)\b",
        "approval": r"\b(?:ask|check|confirm|show|see|wait|okay|ok|approval|permission|say-so|go) ?(?:with |for )?(?:me"
        r"|my|first|before)\b|\bbefore\b|\bwithout (?:asking|my|me|checking)\b|\b(?:my|me) (?:first|ok|okay|say-so|go)"
        r"\b|\bfirst\b",
        "name": r"(?<=[a-z,] )(?-i:[A-Z])(?-i:[a-z])+",
        "polite": r"\b(?:please|kindly|thanks)\b",
        "number": r"\d",
        "others": r"\b(?:he|she|they|him|her|them|his|their)\b",
        "deictic": r"\b(?:it|this|that|these|those|here)\b",
        "definite": r"\bthe\b",
        "fragment": r"^\W*(?:\w\S*\W*){1,3}$",
        "short": r"^\W*(?:\w\S*\W*){1,8}$",
        "long": r"^\W*(?:\w\S*\W+){20,}",
    }.items()
}
# Spellings of chats, before the features are read.
_SPELLINGS = [
    (re.compile(pattern, re.IGNORECASE), full)
    for pattern, full in (
        ("’", "'"),
        (r"\bu\b", "you"),
        (r"\bur\b", "your"),
        (r"\bdont\b", "don't"),
        (r"\bpl[sz]\b", "please"),
        (r"\bim\b", "I'm"),
        (r"\bive\b", "I've"),
        (r"\bcant\b", "can't"),
    )
]
# A sentence that only says how long the one before it holds.
_DURATION_ONLY = re.compile(
    r"\W*(?:always|ever|never|every (?:single )?time|no exceptions?|permanently|for good|from now on|full stop"
    r"|as a rule|understood|i mean it|indefinitely|this \w+ and (?:the ones|all|every\w*) after)\W*",
    re.IGNORECASE,
)


class MaskedSentence(NamedTuple):
    """A sentence of a message, and the same sentence with quoted, listed and pasted text masked."""

    text: str
    masked: str


class RuleModel(NamedTuple):
    """The weights of the vector and of the features of a sentence for each kind of sentence."""

    vector_model: str
    bases: Mapping[SentenceKind, float]
    weights: Mapping[SentenceKind, Sequence[float]]
    feature_weights: Mapping[SentenceKind, Mapping[str, float]]


@cache
def load_rule_model() -> RuleModel:
    """Return the fitted model of the file `rule_model.json`."""
    text = files("newton.heart.identity").joinpath("rule_model.json").read_text(encoding="utf-8")
    return RuleModel(**json.loads(text))


def mask_sentences(text: str) -> list[MaskedSentence]:
    """Return the sentences of a message; none of a long one, which is mostly pasted.

    >>> [sentence.text for sentence in mask_sentences("Grams. Always. Cups are for drinking.")]
    ['Grams. Always.', 'Cups are for drinking.']
    """
    sentences: list[MaskedSentence] = []
    for found in SENTENCE.finditer(mask_foreign_text(text)) if len(text) <= MAX_MESSAGE_CHARACTERS else ():
        words = text[found.start() : found.end()].strip()
        if sentences and _DURATION_ONLY.fullmatch(words):
            last = sentences.pop()
            sentences.append(MaskedSentence(f"{last.text} {words}", f"{last.masked} {found[0]}"))
        elif words:
            sentences.append(MaskedSentence(words, found[0]))
    return sentences


def classify_sentence(sentence: MaskedSentence, vector: Vector) -> Mapping[SentenceKind, float]:
    """Return the probability of each kind of sentence for a sentence with this unit vector."""
    model, names = load_rule_model(), list_rule_features(sentence)
    odds: dict[SentenceKind, float] = {
        kind: base
        + float(np.dot(vector, model.weights[kind]))
        + sum(model.feature_weights[kind][name] for name in names)
        for kind, base in model.bases.items()
    }
    highest = max(odds.values())
    shares: dict[SentenceKind, float] = {kind: float(np.exp(value - highest)) for kind, value in odds.items()}
    return {kind: share / sum(shares.values()) for kind, share in shares.items()}


def list_rule_features(sentence: MaskedSentence) -> list[str]:
    """Return the names of the features that a sentence has.

    >>> list_rule_features(MaskedSentence("Never use emojis, please.", "Never use emojis, please."))
    ['lasting', 'order', 'negative_order', 'reply', 'polite', 'short']
    """
    plain = sentence.masked
    for pattern, full in _SPELLINGS:
        plain = pattern.sub(full, plain)
    return [name for name, pattern in _RULE_FEATURES.items() if pattern.search(plain)]


def list_rule_feature_names() -> list[str]:
    return list(_RULE_FEATURES)
