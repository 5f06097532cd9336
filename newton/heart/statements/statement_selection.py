"""Selection of the statements in a person's message that are worth remembering, without a language model. Pure.

A logistic model gives each clause a probability. It uses the features of the clause and, if they are of the bundled
embedding model, the vectors of the clause and of the message. Questions, requests, instructions and text by others are
never selected. `scripts/fit-statements` fits the model.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np

from newton.heart.identity.standing_wishes import mask_foreign_text
from newton.heart.statements.answers import complete_answer
from newton.heart.statements.assertion import MessagePart, list_features, score_assertion
from newton.heart.statements.commitment import find_reading, is_addressed, list_unasserted
from newton.heart.statements.corrections import repair
from newton.heart.statements.statement_candidates import (
    MAX_CLAUSE_CHARACTERS,
    MAX_MASKED_SHARE,
    ClauseForm,
    StatementCandidate,
    list_words,
    mask_message,
    split_message,
)
from newton.heart.statements.statement_features import classify_word, extract_features, load_cues
from newton.providers.embedding import Vector
from newton.text import english
from newton.text.languages import ENGLISH, detect_language
from newton.text.names import find_names
from newton.text.numerals import NUMBER_PREFIX, TIME_PREFIX, WordToken
from newton.text.pasted_text import MASK
from newton.text.patterns import find_statements, list_sentences

SPEAKER = "user"  # the subject of a statement in the first person by a person without a name
DECIDED = "decided"  # the attribute of a statement of a decision
ASSERTED_MIN = 0.5  # probability that the person asserts a clause, from which it may be remembered
DOUBTED_MIN = 0.3  # from which what is worth remembering by its form is
CERTAIN_MIN = 0.65  # from which a clause beside a question or a request is remembered, whatever its form
MIN_TOLD_WORDS = 4  # of a clause of a message that asks nothing, and neither names something nor has a number
MAX_WORTH = 4.0  # log odds by which the model of worth counts for an assertion
CONTEXT_MIN = 0.15  # probability from which a clause is kept for the next one, which refers to it by a pronoun

_DECISION = re.compile(r"^[^,;]{1,40}\b(?:decided|agreed|settled|opted) (?!with\b)\w", re.IGNORECASE)
_REFERRING = frozenset({"he", "they", "his", "it", "this"})  # classes of first words that refer to another clause
_REFERRING_BACK = re.compile(
    r"\binstead\b(?! of)|^(?:before|after) that\b|(?<=\w )there\b(?! (?:is|are|was|were)\b)|\bsomething else\b",
    re.IGNORECASE,
)
_REFERRING_OBJECT = re.compile(r"\b(?:it|them|him|her|one|there)\b", re.IGNORECASE)
_STATE = re.compile(
    r"(?:allergic|based|born|coeliac|celiac|diabetic|divorced|engaged|intolerant|married|pregnant|raised|retired"
    r"|separated|vegan|vegetarian)\b",
    re.IGNORECASE,
)
_BARE_VERB = re.compile(
    r"(?:can't|cannot|don't|dont|do|have|hate|live|love|own|play|prefer|speak|study|teach|work|need|use)\b",
    re.IGNORECASE,
)
_COMMON_ENDINGS = ("s", "ing", "ion", "ment", "ness", "ity", "age", "ery", "ance", "ence")
_APOSTROPHES = ("'s ", "’s ", "' ", "’ ")
_MOMENT = re.compile(r"\b(?:min(?:ute)?s?|sec(?:ond)?s?|moment|right now|just now)\b", re.IGNORECASE)
_VAGUE = re.compile(
    r"(?:that|hello|hi|hey) (?!is\b|was\b|has\b|'s\b)\w+(?: \w+){0,3}\.?$", re.IGNORECASE
)  # says nothing alone
_CLEFT = re.compile(
    r"\b(?:it|that)(?:['’]s| is| was) (?P<who>(?-i:[A-Z])[\w.'-]*(?: (?-i:[A-Z])[\w'-]*){0,2}|(?:my|our|the) \w+) "
    r"(?:who|that) (?=(?!i\b|you\b|we\b)\w)",
    re.IGNORECASE,
)
# A form in -ing that is the subject, as in "parking there is free": it lacks no "I am".
_GERUND_SUBJECT = re.compile(
    r"\w+ing(?: (?!(?:and|as|because|but|he|how|i|if|it|she|since|so|that|they|we|what|when|where|which|while|who"
    r"|you)\b)[\w'’-]+){0,6}? (?:is|are|was|were|costs?|takes?|starts?|begins?|ends?)\b",
    re.IGNORECASE,
)
_FORGOTTEN_APOSTROPHE = re.compile(r"^i(m|ve)\b", re.IGNORECASE)


class SelectedStatement(NamedTuple):
    """A statement in the person's words. `subject` is the name of the person or thing that it is about, or SPEAKER.

    `attribute` is DECIDED if it states a decision.
    """

    content: str
    subject: str
    attribute: str | None = None


class StatementModel(NamedTuple):
    """The fitted weights and minimum probabilities of statement selection.

    Fields called "plain" are for use without vectors. `clause_weights` and `message_weights` weigh vectors of the
    embedding model `vector_model`. If no clause of a message reaches `first_min`, none is selected; otherwise all that
    reach `other_min` are.
    """

    vector_model: str
    first_min: float
    plain_first_min: float
    other_min: float
    base: float
    weights: Mapping[str, float]
    clause_weights: Sequence[float]
    message_weights: Sequence[float]
    plain_base: float
    plain_weights: Mapping[str, float]


@cache
def load_model() -> StatementModel:
    """Return the fitted model of the file `statement_model.json`."""
    text = files("newton.heart.statements").joinpath("statement_model.json").read_text(encoding="utf-8")
    return StatementModel(**json.loads(text))


class MessageContext(NamedTuple):
    """The context of a message in its session.

    `earlier` is the person's message before it, `question` what the assistant has just asked. A message that
    `is_framed` continues a role-play or the like, so it states nothing until a phrase ends that.
    """

    earlier: str = ""
    question: str = ""
    is_framed: bool = False


ALONE = MessageContext()


def list_texts(message: str) -> list[str]:
    """Return the texts whose vectors `select_statements` needs: the clauses that are statements, and the message.

    Return no texts if no clause is a statement, and for a message that is not in English.
    """
    if detect_language(message) != ENGLISH:
        return []
    message = _straighten(message)
    clauses = [one.text for one in split_message(message) if one.form is ClauseForm.STATEMENT]
    return [*dict.fromkeys(clauses), message] if clauses else []


def list_spans(message: str) -> list[str]:
    """Return the parts of a message that may state a change, the shortest first.

    They are its clauses, pairs of adjacent clauses, and the message itself, without questions and requests. Return no
    parts of a message that is not in English.
    """
    if detect_language(message) != ENGLISH:
        return []
    message = _straighten(message)
    clauses = split_message(message)
    is_stated = [one.form in (ClauseForm.STATEMENT, ClauseForm.FRAGMENT) for one in clauses]
    ends = [(n, last) for n in range(len(clauses)) for last in (n, n + 1) if last < len(clauses)]
    ends += [(0, len(clauses) - 1)] if clauses else []
    spans = {
        message[clauses[first].start : clauses[last].end] for first, last in ends if all(is_stated[first : last + 1])
    }
    return sorted((one for one in spans if len(one) <= MAX_CLAUSE_CHARACTERS), key=lambda one: (len(one), one))


def select_statements(
    message: str,
    *,
    speaker: str | None = None,
    vectors: Mapping[str, Vector] | None = None,
    changing: str | None = None,
    context: MessageContext = ALONE,
) -> list[SelectedStatement]:
    """Return the statements of a message that are worth remembering, in order.

    `speaker` is the name of the person, if known. `vectors` maps the texts of `list_texts` to unit vectors of the model
    `vector_model`; without vectors, the features alone decide. `changing` is the span (of `list_spans`) that replaces a
    known fact: it is always selected, in place of its parts. A short answer is a statement with the question.

    >>> select_statements("Hi! I moved to Bergen in May. Where can I buy a bike?")
    [SelectedStatement(content='I moved to Bergen in May.', subject='user', attribute=None)]
    >>> [one.content for one in select_statements("My dog is called Pixel. She is a beagle. Any good dog food?")]
    ['My dog is called Pixel. She is a beagle.']
    """
    is_english = (code := detect_language(message)) == ENGLISH
    answer = complete_answer(message, context.question) if context.question and not context.is_framed else None
    if answer:
        return [SelectedStatement(answer, speaker or SPEAKER)]
    if not is_english:
        return _select_by_patterns(message, code, speaker, context)
    statements = _select_by_model(message, speaker, vectors, context)
    is_selected = changing and any(changing.casefold() in one.content.casefold() for one in statements)
    if changing is None or context.is_framed or is_selected:
        return statements
    kept = [one for one in statements if one.content.rstrip(".").casefold() not in changing.casefold()]
    return [*kept, _state(changing, list_words(changing), speaker)]


def state_whole(text: str, speaker: str | None) -> SelectedStatement:
    """Return a corrected sentence as a statement, whatever its form."""
    selected = select_statements(text, speaker=speaker)
    return selected[0] if len(selected) == 1 else _state(text, list_words(text), speaker)


def _select_by_model(
    message: str, speaker: str | None, vectors: Mapping[str, Vector] | None, context: MessageContext
) -> list[SelectedStatement]:
    straight, model = _straighten(message), load_model()
    is_stressed = straight != message  # "it was Corinna who": who it is matters to the person
    candidates = split_message(straight, is_framed=context.is_framed)
    worth = compute_probabilities(straight, candidates, vectors)
    asserted = rate_assertions(straight, candidates, worth, vectors, context)
    first_min, other_min = model.plain_first_min if vectors is None else model.first_min, model.other_min
    asserted = [0.0 if _VAGUE.match(one.text) else p for one, p in zip(candidates, asserted, strict=True)]
    asserted = [
        max(p, ASSERTED_MIN) if w >= first_min and p >= DOUBTED_MIN else p for p, w in zip(asserted, worth, strict=True)
    ]
    if only_tells(straight, candidates):
        chosen = [p if _is_substantial(one, p) else 0.0 for one, p in zip(candidates, asserted, strict=True)]
        groups = _group_clauses(candidates, chosen, ASSERTED_MIN, tells=True)
    else:
        limit = other_min if is_stressed or max(worth, default=0.0) >= first_min else CERTAIN_MIN
        chosen = [
            p if w >= limit or (p >= CERTAIN_MIN and _is_substantial(one, p)) else 0.0
            for one, w, p in zip(candidates, worth, asserted, strict=True)
        ]
        groups = _group_clauses(candidates, chosen, ASSERTED_MIN, tells=False)
    statements = [_to_statement(straight, [candidates[n] for n in group], speaker) for group in groups]
    return list(dict.fromkeys(statements))


def rate_assertions(
    message: str,
    candidates: Sequence[StatementCandidate],
    worth: Sequence[float],
    vectors: Mapping[str, Vector] | None,
    context: MessageContext,
) -> list[float]:
    """Return for each clause the probability that the person asserts it; 0 if it is not a statement."""
    rated, vectors = list[float](), vectors or {}
    for one, features in zip(candidates, describe(message, candidates, worth, context), strict=True):
        is_stated = one.form is ClauseForm.STATEMENT
        rated.append(score_assertion(features, vectors.get(one.text), vectors.get(message)) if is_stated else 0.0)
    return rated


def describe(
    message: str, candidates: Sequence[StatementCandidate], worth: Sequence[float], context: MessageContext
) -> list[dict[str, float]]:
    """Return the features of each clause of a message in English by which its assertion is judged."""
    parts = [
        MessagePart(one.start, one.end, one.form in (ClauseForm.QUESTION, ClauseForm.REQUEST)) for one in candidates
    ]
    masked, answers = mask_message(message)[1], bool(context.question)
    found = list_features(masked, parts, ENGLISH, earlier=context.earlier, answers=answers)
    odds = (math.log(max(p, 1e-6) / max(1 - p, 1e-6)) if p else 0.0 for p in worth)
    return [one | {"worth": max(-MAX_WORTH, min(MAX_WORTH, value))} for one, value in zip(found, odds, strict=True)]


def only_tells(message: str, candidates: Sequence[StatementCandidate]) -> bool:
    """Return whether a message asks nothing, neither by a clause nor by showing an error or code."""
    asks = any(one.form in (ClauseForm.QUESTION, ClauseForm.REQUEST) for one in candidates)
    return not asks and not load_cues()["technical"].search(message)


def _is_substantial(one: StatementCandidate, asserted: float) -> bool:
    """Return whether a clause says enough to be remembered although it looks like nothing that lasts."""
    is_short = len(one.words) < MIN_TOLD_WORDS and (_REFERRING_OBJECT.search(one.text) or not _names_something(one))
    is_vague = is_short and (len(one.words) < 2 or asserted < CERTAIN_MIN)
    return not is_vague and classify_word(one.words[0]) not in ("this", "you") and not _MOMENT.search(one.text)


def _straighten(message: str) -> str:
    """Return the message as it is meant: "it was Corinna who has it" is "Corinna has it", "at 5, no, 6" is "at 6"."""
    return _CLEFT.sub(r"\g<who> ", repair(message))


def _select_by_patterns(
    message: str, code: str, speaker: str | None, context: MessageContext
) -> list[SelectedStatement]:
    """Return the statements of a message in another language than English that the person asserts."""
    message = repair(message)
    end, masked = "" if code in ("zh", "ja") else ".", mask_foreign_text(message)
    readings, found = list_unasserted(masked, is_framed=context.is_framed), list[SelectedStatement]()
    parts = [MessagePart(*one) for one in list_sentences(masked, code)]
    features = list_features(masked, parts, code, earlier=context.earlier, answers=bool(context.question))
    for start, stop, attribute in find_statements(masked, code):
        text = message[start:stop].replace("\n", " ")
        is_quoted = masked.count(MASK, start, stop) > MAX_MASKED_SHARE * (stop - start)
        sentence = next(n for n, one in enumerate(parts) if one.start <= start < one.end)
        is_doubtful = score_assertion(features[sentence]) < ASSERTED_MIN
        if is_quoted or is_doubtful or is_addressed(text, code) or find_reading(readings, start, stop):
            continue
        found.append(SelectedStatement(f"{text[:1].upper()}{text[1:]}{end}", speaker or SPEAKER, attribute or None))
    return list(dict.fromkeys(found))


def compute_probabilities(
    message: str, candidates: Sequence[StatementCandidate], vectors: Mapping[str, Vector] | None
) -> list[float]:
    """Return for each clause the probability that it is worth remembering; 0 if it is not a statement."""
    model, found = load_model(), list[float]()
    for position, one in enumerate(candidates):
        if one.form is not ClauseForm.STATEMENT:
            found.append(0.0)
            continue
        features = extract_features(candidates, position)
        weights, odds = (model.plain_weights, model.plain_base) if vectors is None else (model.weights, model.base)
        odds += sum(weights[name] * value for name, value in features.items() if value)
        if vectors is not None:
            odds += float(np.dot(vectors[one.text], model.clause_weights))
            odds += float(np.dot(vectors[message], model.message_weights))
        found.append(1 / (1 + math.exp(-odds)))
    return found


def _group_clauses(
    candidates: Sequence[StatementCandidate], probabilities: Sequence[float], minimum: float, *, tells: bool
) -> list[list[int]]:
    """Return the positions of the clauses that reach the minimum probability, grouped into statements.

    A clause that refers to the clause before it is grouped with that one, and in a message that only `tells` one
    without a verb too. If there is none, it is dropped unless it names something or the message only tells.
    """
    groups = list[list[int]]()
    for position, probability in enumerate(probabilities):
        if probability < minimum:
            continue
        one, before, is_loose = candidates[position], position - 1, tells and candidates[position].verb < 0
        if not _refers_back(one) and not is_loose:
            groups.append([position])
        elif groups and groups[-1][-1] == before and _fits(candidates, groups[-1][0], position):
            groups[-1].append(position)
        elif before >= 0 and probabilities[before] >= CONTEXT_MIN and not _refers_back(candidates[before]):
            groups += [[before, position]] if _fits(candidates, before, position) else []
        elif is_loose or (tells and position) or _REFERRING_BACK.search(one.text) or _names_something(one):
            groups.append([position])
    return groups


def _names_something(one: StatementCandidate) -> bool:
    """Return whether a clause has a name or a number behind its first word."""
    return any(word.is_capitalized or word.text.startswith((NUMBER_PREFIX, TIME_PREFIX)) for word in one.words[1:])


def _fits(candidates: Sequence[StatementCandidate], first: int, last: int) -> bool:
    return candidates[last].end - candidates[first].start <= MAX_CLAUSE_CHARACTERS


def _refers_back(one: StatementCandidate) -> bool:
    """Return whether a clause refers to the one before it: it begins with a word like "she", or contains "instead"."""
    kind = classify_word(one.words[0]) if one.words else "other"
    is_dropped = kind == "past" and bool(_REFERRING_OBJECT.search(one.text))
    return kind in _REFERRING or is_dropped or bool(_REFERRING_BACK.search(one.text))


def _to_statement(message: str, clauses: Sequence[StatementCandidate], speaker: str | None) -> SelectedStatement:
    return _state(message[clauses[0].start : clauses[-1].end], clauses[0].words, speaker)


def _state(text: str, words: Sequence[WordToken], speaker: str | None) -> SelectedStatement:
    """Return a part of a message as a statement with a subject, a capital and a full stop."""
    text = _complete(_FORGOTTEN_APOSTROPHE.sub(r"I'\1", text.replace("\n", " ")), words)
    content = f"{text[:1].upper()}{text[1:]}" if text.split(maxsplit=1)[0].islower() else text
    content = f"{content.rstrip(' .!,;:')}."
    return SelectedStatement(
        content, _find_name(content) or speaker or SPEAKER, DECIDED if _DECISION.search(content) else None
    )


def _complete(text: str, words: Sequence[WordToken]) -> str:
    """Return a clause with the subject "I" if it has none: "sold the piano" becomes "I sold the piano"."""
    kind = classify_word(words[0]) if words else "other"
    rest = f"{text[:1].lower()}{text[1:]}"
    if _STATE.match(text):
        return f"I am {rest}"
    if rest.startswith("been "):
        return f"I have {rest}"
    if kind == "past" or _BARE_VERB.match(text):
        return f"I {rest}"
    follows_verb = len(words) > 1 and (words[1].text in english.AUXILIARIES or words[1].text == "'s")
    is_subject = follows_verb or _GERUND_SUBJECT.match(text)
    return f"I am {rest}" if kind == "ing" and not is_subject else text


def _find_name(text: str) -> str | None:
    """Return the name at the beginning of a statement if it is the subject or its owner; otherwise None."""
    names = find_names(text)
    if not names or names[0].start:
        return None
    name, rest = names[0].text, text[len(names[0].text) :]
    is_common = not names[0].is_certain and name.casefold().endswith(_COMMON_ENDINGS)
    if rest.startswith(_APOSTROPHES):
        return name
    following = list_words(rest)[:1]
    return None if is_common or not following or following[0].text in (":", "of") else name
