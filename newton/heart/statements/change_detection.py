"""Detection of whether a newer statement replaces an older one, without a language model. Pure.

Gradient-boosted trees over the features of `change_features` decide. One of the features is the score of a transformer,
the reader, that reads both texts together (`providers.minilm`). `scripts/fit-change-reader` trains the reader,
`scripts/fit-changes` then fits the trees.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Literal, NamedTuple

from newton.heart.statements.change_features import ANNOUNCING_CUES, StatementOutline, extract_features, outline
from newton.heart.statements.clauses import list_untouched, split_clauses
from newton.heart.statements.commitment import find_plan
from newton.heart.statements.similarity import MAX_CHARACTERS
from newton.heart.statements.slots import (
    concerns_another,
    denies_another_value,
    explain_slot_change,
    names_kin,
    says_passing_state,
    says_present,
)
from newton.providers.minilm import read_pair
from newton.text.languages import ENGLISH, detect_language, load_language
from newton.text.patterns import find_attribute, has_ended, is_negated
from newton.text.stems import stem_word
from newton.text.words import list_terms

# Attributes of the patterns with one value at a time.
SINGLE_VALUED = frozenset(
    {
        "lives in",
        "works at",
        "name",
        "birthday",
        "age",
        "spouse",
        "marital status",
        "phone number",
        "email",
        "favourite colour",
    }
)
MIN_SHARED = 0.6  # of the content words of the shorter statement, for one that ends or denies the other
MIN_EQUAL = 0.75  # of the content words of both, for statements that differ in an amount
MIN_NAMED, MIN_TOPIC = 2, 0.4  # shared content words, and their share of the older statement, for one on the present
_NUMBER, _MEASURE = re.compile(r"\d"), re.compile(r"\w*\d\w*")


def find_pattern_change(older: str, newer: str, code: str) -> str:
    """Return why the newer of two statements in a language replaces the older one; an empty text if it does not.

    >>> find_pattern_change("Ich wohne in Berlin.", "Ich wohne nicht mehr in Berlin.", "de")
    'the newer one ends what the older one says'
    >>> find_pattern_change("Ich wohne in Köln.", "Ich wohne nicht mehr in Berlin.", "de")
    ''
    """
    old, new = _content_stems(older, code), _content_stems(newer, code)
    shared = len(old & new) / max(min(len(old), len(new)), 1)
    ended = has_ended(newer, code) and not has_ended(older, code)
    if ended or has_ended(older, code):
        if ended and shared >= MIN_SHARED:
            return "the newer one ends what the older one says"
        return "" if ended else _same_attribute(older, newer, code) if shared >= MIN_SHARED else ""
    if is_negated(older, code) != is_negated(newer, code):
        return "one denies what the other says" if shared >= MIN_SHARED and old and new else ""
    if reason := _same_attribute(older, newer, code):
        return reason
    if len(old & new) >= MIN_NAMED and len(old & new) >= MIN_TOPIC * len(old) and says_present(newer, code):
        return "the newer one says what is so now of the same things"
    return "they differ only in numbers" if _differs_in_numbers(older, newer, old, new) else ""


def _same_attribute(older: str, newer: str, code: str) -> str:
    attribute = find_attribute(newer, code)
    is_same = attribute in SINGLE_VALUED and attribute == find_attribute(older, code)
    return f"both state the attribute {attribute!r}, which has one value at a time" if is_same else ""


def _differs_in_numbers(older: str, newer: str, old: frozenset[str], new: frozenset[str]) -> bool:
    if not (_NUMBER.search(older) and _NUMBER.search(newer)):
        return False
    gone = {*_MEASURE.findall(older)} - {*_MEASURE.findall(newer)}
    if len(gone) > 1 and any(not one.isdigit() for one in gone):  # "100er: 8" is not another count of "60er: 14"
        return False
    return len(old & new) >= MIN_EQUAL * len(old | new) > 0


def _content_stems(text: str, code: str) -> frozenset[str]:
    """Return the stems of the words of a text, without function words and numbers."""
    data = load_language(code)
    terms = (term for term in list_terms(text) if not _NUMBER.search(term))
    if data.is_spaced:
        return frozenset(stem_word(term) for term in terms if len(term) > 1 and term not in data.words)
    return frozenset(term for term in terms if len(term) > 1)


ChangeKind = Literal["update", "unsure", "compatible"]

PATTERN_PROBABILITY = 0.9  # of a change that a pattern of another language than English shows
MIN_COSINE = 0.2  # pairs below it are not compared
NEAR_COSINE, DISTANT = 0.4, 0.18  # of texts that are farther apart, the limit is higher by this, and no doubt counts
NEAR_NOTE = 0.5  # of a note without a verb: "garza wedding sept 20" is near to each other wedding
SURE, EASED, FAR_COSINE = 2.5, 0.05, 0.3  # score of the reader that lowers the limit, by how much, and least cosine
DOUBT = -3.0  # score of the reader below which no rule replaces
SHOWN_EVIDENCE = 3  # features named in a reason

# The name of each feature in a reason. Features without a name only count.
_DESCRIPTIONS = {
    "newer_cessation": "the newer one ends something",
    "newer_replacement": "the newer one replaces something",
    "newer_amount": "the newer one changes an amount",
    "newer_correction": "the newer one corrects something",
    "newer_milestone": "the newer one reports an event that changes a state",
    "newer_present": "the newer one names the present",
    "negation_differs": "one denies what the other says",
    "single_shared": "both name a relation with one value at a time",
    "one_word_each": "they differ in one word each",
    "only_numbers_differ": "they differ only in numbers",
    "substitution": "one value stands in the place of another",
    "subject_equal": "the subject is the same",
    "older_subject_found": "the newer one names the subject",
    "opposite": "they use opposite words",
}


class ChangeVerdict(NamedTuple):
    """The relation of the newer statement to the older one, the probability of a replacement, and a reason.

    Of a clear change that `is_partial`, the older statement says something else besides.
    """

    kind: ChangeKind
    probability: float
    reason: str
    is_partial: bool = False


class ChangeModel(NamedTuple):
    """The fitted parameters of change detection.

    The log odds of a change are `base` plus the sum over the trees. `update_min` and `unsure_min` are the minimum
    probabilities of the verdicts `update` and `unsure`. The cosines are of vectors of the model `vector_model`.
    """

    trees: Sequence[Sequence[Sequence[Any]]]
    base: float
    update_min: float
    unsure_min: float
    vector_model: str


@cache
def load_model() -> ChangeModel:
    """Return the fitted model of the file `change_model.json`."""
    text = files("newton.heart.statements").joinpath("change_model.json").read_text(encoding="utf-8")
    return ChangeModel(**json.loads(text))


def compute_probability(features: Mapping[str, float], model: ChangeModel) -> float:
    """Return the probability, in [0, 1], that the newer statement replaces the older one.

    A leaf of a tree is [log odds]; another node is [feature, threshold, left, right, whether a missing value goes
    left].
    """
    total = model.base
    for tree in model.trees:
        node = tree[0]
        while len(node) > 1:
            name, threshold, left, right, missing_left = node
            value = features[name]
            node = tree[left if value <= threshold or (missing_left and math.isnan(value)) else right]
        total += node[0]
    return 1 / (1 + math.exp(-total))


def detect_change(older: str, newer: str, *, cosine: float, reading: float = math.nan) -> ChangeVerdict:
    """Return the verdict on whether `newer` replaces `older`. `cosine` is the similarity of their vectors.

    `reading` is the log odds of the reader (transformer), NaN if it has not read the pair. If the newer statement
    concerns only some clauses of the older one, the verdict is at most `unsure`, so that no other clause is lost.
    """
    languages = {detect_language(older), detect_language(newer)}
    if verdict := _judge_by_rules(older, newer, languages, cosine=cosine):
        is_doubted = verdict.kind == "update" and reading < DOUBT  # "Ben's office is no longer in Graz", of Ana's
        return ChangeVerdict("compatible", 0.0, "the reader doubts it") if is_doubted else verdict
    features = extract_features(older, newer, cosine=cosine, reading=reading)
    # The reader has hardly seen the same words in another order or with other numbers ("Room 12 seats 40").
    if features["only_numbers_differ"] or outline(older).stems == outline(newer).stems:
        features["reading"] = math.nan
    if features["restates"]:
        return ChangeVerdict("compatible", 0.0, "they say the same")
    model, is_near = load_model(), cosine >= (NEAR_COSINE if features["older_verb"] else NEAR_NOTE)
    probability = compute_probability(features, model)
    is_clear = probability >= _find_limit(model, cosine, reading, is_near=is_near)
    if not is_clear and not (is_near and probability >= model.unsure_min and names_topic(older, newer)):
        return ChangeVerdict("compatible", probability, "too little evidence of a change")
    is_partial = is_clear and _says_more(older, newer)
    kind: ChangeKind = "update" if is_clear and not is_partial else "unsure"
    evidence = [text for name, text in _DESCRIPTIONS.items() if features[name]]
    return ChangeVerdict(kind, probability, ", ".join(evidence[:SHOWN_EVIDENCE]) or "the words are close", is_partial)


def read_change(older: str, newer: str, *, cosine: float) -> ChangeVerdict:
    """Return the verdict as `detect_change`, after the reader has read the pair, if it can. Takes some milliseconds."""
    reading = read_pair(older, newer) if is_comparable(older, newer, cosine=cosine) else math.nan
    return detect_change(older, newer, cosine=cosine, reading=reading)


def _find_limit(model: ChangeModel, cosine: float, reading: float, *, is_near: bool) -> float:
    """Return the probability of a clear change: lower if the reader is sure, higher for texts that are far apart."""
    if reading >= SURE and cosine >= FAR_COSINE:
        return model.update_min - EASED * is_near
    return model.update_min + DISTANT * (not is_near)


def names_topic(older: str, newer: str) -> bool:
    """Return whether the newer statement shares more than names with the older one, or announces a change.

    >>> names_topic("My greyhound is called Tango.", "Tango gets soft food only.")
    False
    >>> names_topic("The quiz is on Monday.", "Pub quiz every Thursday.")
    True
    """
    old, new = outline(older), outline(newer)
    announced = (new.cues & {*ANNOUNCING_CUES, "present", "negation"}) - (old.cues & {"negation"})
    return bool(announced or (old.stems & new.stems) - old.names - new.names)


def _judge_by_rules(older: str, newer: str, languages: set[str], *, cosine: float) -> ChangeVerdict | None:
    """Return the verdict on a pair that no model judges, or for which a rule is certain; otherwise None."""
    if max(len(older), len(newer)) > MAX_CHARACTERS:
        return ChangeVerdict("compatible", 0.0, "one of them is too long to compare")
    if find_plan(newer) and not find_plan(older):
        return ChangeVerdict("compatible", 0.0, "a plan replaces nothing")
    if concerns_another(older, newer, detect_language(newer)) or says_passing_state(
        older, newer, detect_language(newer)
    ):
        return ChangeVerdict("compatible", 0.0, "it is about another person, or a passing state")
    if reason := explain_slot_change(older, newer, detect_language(newer)):
        is_partial = languages == {ENGLISH} and _says_more(older, newer)
        return ChangeVerdict("unsure" if is_partial else "update", PATTERN_PROBABILITY, reason, is_partial)
    is_beside = names_kin(older, newer, detect_language(newer))
    if cosine < MIN_COSINE or is_beside or denies_another_value(older, newer, detect_language(newer)):
        return ChangeVerdict("compatible", 0.0, "their meaning is not close, or another value is denied")
    return None if languages == {ENGLISH} else _detect_pattern_change(older, newer, languages)


def is_comparable(older: str, newer: str, *, cosine: float) -> bool:
    """Return whether the models judge the two statements: they are in English, short, and close in meaning."""
    if cosine < MIN_COSINE or max(len(older), len(newer)) > MAX_CHARACTERS:
        return False
    return detect_language(older) == detect_language(newer) == ENGLISH


def _detect_pattern_change(older: str, newer: str, languages: set[str]) -> ChangeVerdict:
    """Return the verdict on statements that are not both in English."""
    if len(languages) > 1:
        return ChangeVerdict("compatible", 0.0, "they are in two languages")
    if reason := find_pattern_change(older, newer, languages.pop()):
        return ChangeVerdict("update", PATTERN_PROBABILITY, reason)
    return ChangeVerdict("compatible", 0.0, "no pattern of a change matches")


def _says_more(older: str, newer: str) -> bool:
    """Return whether the older text has several clauses, and the newer text does not concern all of them.

    If both texts are on the same subject, clauses that can be kept as sentences of their own do not count.
    """
    clauses = split_clauses(older)
    if len(clauses) == 1:
        return False
    kept = frozenset[str]()
    if outline(newer).subject <= outline(older).stems:
        kept = outline(" ".join(list_untouched(older, newer))).stems
    others = [one for one in map(outline, clauses) if not one.stems <= kept]
    return any(not concerns_clause(newer, one) for one in others)


def concerns_clause(newer: str, clause: StatementOutline) -> bool:
    """Return whether a newer text shares a word with a clause that is neither a subject nor a name."""
    new = outline(newer)
    return bool((clause.stems - clause.names - clause.subject) & new.stems - new.subject)
