"""Selection of the statements in a person's message that are worth remembering, without a language model. Pure.

In English, the reader of messages (`newton.providers.speech_reader`) tells which clauses the person states as true; in
other languages, patterns and hints do. Questions, requests, instructions and text by others are never selected.
"""

import re
from collections.abc import Mapping, Sequence, Set
from itertools import pairwise
from typing import NamedTuple

from newton.heart.identity.standing_wishes import mask_foreign_text
from newton.heart.identity.user_names import find_names as list_introduced
from newton.heart.statements.answers import complete_answer
from newton.heart.statements.assertion import MessagePart, list_features, score_assertion
from newton.heart.statements.commitment import find_reading, is_addressed, is_denial, list_unasserted
from newton.heart.statements.corrections import repair
from newton.heart.statements.first_words import TECHNICAL, classify_word
from newton.heart.statements.statement_candidates import (
    MAX_CLAUSE_CHARACTERS,
    MAX_MASKED_SHARE,
    ClauseForm,
    StatementCandidate,
    asks_itself,
    is_declarative,
    join_overlapping,
    list_words,
    mask_message,
    split_message,
)
from newton.providers.speech_reader import SpeechReading, read_speech
from newton.text import english
from newton.text.languages import ENGLISH, detect_language, detect_languages
from newton.text.names import find_names
from newton.text.numerals import NUMBER_PREFIX, TIME_PREFIX, WordToken
from newton.text.pasted_text import MASK
from newton.text.patterns import find_statements, list_sentences
from newton.text.words import NEVER_NAMES

SPEAKER = "user"  # the subject of a statement in the first person by a person without a name
DECIDED = "decided"  # the attribute of a statement of a decision
TOLD_MIN = 0.4  # probability that the person tells a clause as true, from which it is remembered
NEVER = 2.0
# Probability that a clause of these forms needs: they speak against a statement, and may err.
LIMITS = {
    ClauseForm.QUESTION: 0.8,
    ClauseForm.FRAGMENT: 0.85,
    **dict.fromkeys((ClauseForm.FOREIGN, ClauseForm.REQUEST, ClauseForm.UNREAL), NEVER),
}
ASIDE_MIN = 0.8  # that a clause of a sentence with a question needs
SURELY_TOLD = 0.65  # from which also a very short one is
ASSERTED_MIN = 0.5  # of a sentence in another language than English
MAX_HEAD_WORDS = 6  # of a clause before a colon that says what the next one is about
MIN_TOLD_WORDS = 4  # of a clause of a message that asks nothing, and neither names something nor has a number
CONTEXT_MIN = 0.15  # probability from which a clause is kept for the next one, which refers to it by a pronoun

_DECISION = re.compile(r"^[^,;]{1,40}\b(?:decided|agreed|settled|opted) (?!with\b)\w", re.IGNORECASE)
_REFERRING = frozenset({"he", "they", "his", "it", "this"})  # classes of first words that refer to another clause
_OTHERS = frozenset({"he", "his"})  # classes of first words that mean another person
# Whom a clause is about, before its verb.
_OTHER_SUBJECT = re.compile(
    r"(?:(?:my|our)(?: (?!(?:always|often|still|just|never)\b)\w+){1,3}|(?-i:[A-Z])\w+)"
    r"(?= (?:\w+ )?(?:says?|said|thinks?|thought|reckons?|keeps?|told|tells|calls?|wants|loves|hates)\b)",
    re.IGNORECASE,
)
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
_MOMENT = re.compile(r"\b(?:in|for) \d+ (?:min(?:ute)?|sec(?:ond)?)s?\b|\b(?:right|just) now\b", re.IGNORECASE)
_PRONOUN = re.compile(r"(?:it|he|she|they|that)\b", re.IGNORECASE)
_VAGUE = re.compile(
    r"(?:(?:that|hello|hi|hey) (?!is\b|was\b|has\b|'s\b)\w+(?: \w+){0,3}"
    r"|(?:i|we|he|she|they|it) (?:still |also |never |always )?(?:do|does|did|am|is|are|was|were|has|have|can|will))"
    r"\.?$",
    re.IGNORECASE,
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
_PASTED = re.compile(rf"^[^\S\n]*{MASK}[{MASK}\s]*", re.MULTILINE)
_FORGOTTEN_APOSTROPHE = re.compile(r"^i(m|ve)\b", re.IGNORECASE)


class SelectedStatement(NamedTuple):
    """A statement in the person's words. `subject` is the name of the person or thing that it is about, or SPEAKER.

    `attribute` is DECIDED if it states a decision.
    """

    content: str
    subject: str
    attribute: str | None = None


class MessageContext(NamedTuple):
    """The context of a message in its session.

    `earlier` is the person's message before it, `question` what the assistant has just asked. A message that
    `is_framed` continues a role-play or the like, so it states nothing until a phrase ends that.
    """

    earlier: str = ""
    question: str = ""
    is_framed: bool = False


ALONE = MessageContext()


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
    changing: str | None = None,
    context: MessageContext = ALONE,
) -> list[SelectedStatement]:
    """Return the statements of a message that are worth remembering, in order.

    `speaker` is the name of the person, if known. `changing` is the span (of `list_spans`) that replaces a known fact:
    it is always selected, in place of its parts. A short answer is a statement with the question.

    >>> select_statements("Hi! I moved to Bergen in May. Where can I buy a bike?")
    [SelectedStatement(content='I moved to Bergen in May.', subject='user', attribute=None)]
    >>> [one.content for one in select_statements("My dog is called Pixel. She is a beagle. Any good dog food?")]
    ['My dog is called Pixel. She is a beagle.']
    """
    is_english = (code := detect_language(message)) == ENGLISH
    answer = complete_answer(message, context.question) if context.question and not context.is_framed else None
    if answer:
        return [SelectedStatement(answer, speaker or SPEAKER)]
    if is_english and _asks_elsewhere(message):
        return []
    if not is_english:
        return _select_by_patterns(message, code, speaker, context)
    statements = _select_by_reader(message, speaker, context)
    is_selected = changing and any(changing.casefold() in one.content.casefold() for one in statements)
    if changing is None or context.is_framed or is_selected or is_denial(changing, ENGLISH):
        return statements
    kept, part = list[SelectedStatement](), changing
    for one in statements:
        joined = join_overlapping(message, part, one.content.rstrip("."))
        is_said = bool(joined) or one.content.rstrip(".").casefold() in part.casefold()
        kept, part = kept if is_said else [*kept, one], joined or part
    return [*kept, _state(part, list_words(part), speaker)]


def _asks_elsewhere(message: str) -> bool:
    """Return whether a message that is too short to be surely of one language asks for something in another one."""
    codes = detect_languages(message)
    return codes[:1] != (ENGLISH,) and any(is_addressed(message, code) for code in codes if code != ENGLISH)


def state_whole(text: str, speaker: str | None) -> SelectedStatement:
    """Return a corrected sentence as a statement, whatever its form."""
    selected = select_statements(text, speaker=speaker)
    return selected[0] if len(selected) == 1 else _state(text, list_words(text), speaker)


def _select_by_reader(message: str, speaker: str | None, context: MessageContext) -> list[SelectedStatement]:
    straight = _straighten(message)
    candidates = split_message(straight, is_framed=context.is_framed)
    told = rate_told(straight, candidates, context)
    chosen = list[float]()
    for n, (one, p) in enumerate(zip(candidates, told, strict=True)):
        adds = one.verb < 0 and bool(chosen) and chosen[-1] >= TOLD_MIN  # to the clause before it: "Same dates."
        is_kept = (adds or _is_substantial(one, p)) and not _only_denies(one, candidates[n + 1 : n + 2])
        chosen.append(p if is_kept else 0.0)
    pairs = enumerate(pairwise(candidates), 1)
    headed = {n for n, (a, b) in pairs if len(a.words) <= MAX_HEAD_WORDS and straight[a.end : b.start].startswith(":")}
    groups = _group_clauses(candidates, chosen, headed, tells=only_tells(straight, candidates))
    return list(dict.fromkeys(_to_statement(straight, candidates, group, speaker) for group in groups))


def rate_told(message: str, candidates: Sequence[StatementCandidate], context: MessageContext = ALONE) -> list[float]:
    """Return for each clause of a message the probability that the person tells it as true; 0 if its form forbids that.

    A clause whose form speaks against it needs a higher probability than others.
    """
    earlier = "" if message in context.earlier else context.earlier  # a line of a pasted chat is read alone
    reading = read_speech(_blank_pasted_lines(message), context.question, earlier)
    rated = [_rate(one, reading, is_only=len(candidates) == 1) for one in candidates]
    asking = {one.sentence for one in candidates if asks_itself(one)}
    asked = {n.sentence: n.sentence not in asking for n in candidates if n.text.endswith("?") or n.sentence in asking}
    return [p if p >= _find_limit(one, asked) else 0.0 for one, p in zip(candidates, rated, strict=True)]


def _rate(one: StatementCandidate, reading: SpeechReading, *, is_only: bool) -> float:
    """Return the probability that a clause is told; who the person is, or a name with a number, is no talk."""
    rates = reading.rate(one.start, one.end)
    names = any(word.is_capitalized for word in one.words[1:])
    counts = any(word.text.startswith((NUMBER_PREFIX, TIME_PREFIX)) for word in one.words)
    is_plain = (is_only and names and counts and not TECHNICAL.search(one.text)) or list_introduced([one.text]) != []
    # A correction that is a statement of its own tells what it corrects, unless it says what the assistant got wrong.
    is_whole = one.verb > 0 and one.words[0].text != "you"
    beside = rates.get("talk", 0.0) * is_plain + rates.get("correct", 0.0) * is_whole
    return rates.get("told", 0.0) + beside


def _find_limit(one: StatementCandidate, asked: Mapping[int, bool]) -> float:
    """Return the probability from which a clause of this form may be remembered; more than 1 for never.

    `asked` has the sentences with a question or request, and whether that has the form of a statement: "he says so?"
    """
    is_asked = one.form is ClauseForm.QUESTION and one.text.endswith("?")
    is_doubtful = (is_asked and not is_declarative(one)) or asked.get(one.sentence, False)
    return NEVER if is_doubtful else LIMITS.get(one.form, ASIDE_MIN if one.sentence in asked else 0.0)


def _blank_pasted_lines(message: str) -> str:
    """Return a message with spaces in place of lines that are quotations or code. Offsets do not change."""
    plain, masked = mask_message(message)
    for one in _PASTED.finditer(masked):
        plain = plain[: one.start()] + re.sub(r"\S", " ", plain[one.start() : one.end()]) + plain[one.end() :]
    return plain


def only_tells(message: str, candidates: Sequence[StatementCandidate]) -> bool:
    """Return whether a message asks nothing, neither by a clause nor by showing an error or code."""
    asks = any(one.form in (ClauseForm.QUESTION, ClauseForm.REQUEST) for one in candidates)
    return not asks and not TECHNICAL.search(message)


def _only_denies(one: StatementCandidate, following: Sequence[StatementCandidate]) -> bool:
    """Return whether a clause is a denial to which the next one does not refer: "My car isn't blue, it's green"."""
    is_named = any(other.sentence == one.sentence and _PRONOUN.match(other.text) for other in following)
    return is_denial(one.text, ENGLISH) and not is_named


def _is_substantial(one: StatementCandidate, probability: float) -> bool:
    """Return whether a clause says enough to be remembered although it looks like nothing that lasts."""
    is_short = len(one.words) < MIN_TOLD_WORDS and (_REFERRING_OBJECT.search(one.text) or not _names_something(one))
    is_vague = bool(_VAGUE.match(one.text)) or (is_short and (len(one.words) < 2 or probability < SURELY_TOLD))
    return bool(list_introduced([one.text])) or (not is_vague and not _MOMENT.search(one.text))


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
        is_told = not (is_quoted or is_doubtful or is_addressed(text, code) or is_denial(text, code))
        if not is_told or find_reading(readings, start, stop):
            continue
        found.append(SelectedStatement(f"{text[:1].upper()}{text[1:]}{end}", speaker or SPEAKER, attribute or None))
    return list(dict.fromkeys(found))


def _group_clauses(
    candidates: Sequence[StatementCandidate], probabilities: Sequence[float], headed: Set[int], *, tells: bool
) -> list[list[int]]:
    """Return the positions of the clauses that are told, grouped into statements. Those `headed` stand behind a colon.

    A clause that refers to the clause before it is grouped with that one, and in a message that only `tells` one
    without a verb too. If there is none, it is dropped unless it names something or the message only tells.
    """
    groups = list[list[int]]()
    for position, probability in enumerate(probabilities):
        if probability < TOLD_MIN:
            continue
        one, before, is_loose = candidates[position], position - 1, tells and candidates[position].verb < 0
        refers = _refers_back(one) or (before >= 0 and _is_of_other(candidates[before]) and _STATE.match(one.text))
        refers = refers or (position in headed and probabilities[before] >= CONTEXT_MIN)
        if not refers and not is_loose:
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


def _is_of_other(one: StatementCandidate) -> bool:
    return bool(one.words) and classify_word(one.words[0]) in _OTHERS


def _to_statement(
    message: str, candidates: Sequence[StatementCandidate], group: Sequence[int], speaker: str | None
) -> SelectedStatement:
    """Return the clauses of a group as a statement; if it begins with "she", behind whom the clause before it names."""
    first = candidates[group[0]]
    text = message[first.start : candidates[group[-1]].end]
    if group[0] and _is_of_other(first) and (who := _find_subject(candidates[group[0] - 1])):
        return _state(f"{who}: {text[:1].lower()}{text[1:]}", list_words(who), speaker)
    return _state(text, first.words, speaker)


def _find_subject(one: StatementCandidate) -> str:
    """Return whom a clause is about, by name or as somebody of the user's; "" if it is about anything else."""
    match = _OTHER_SUBJECT.match(one.text)
    return match[0] if match and match[0].casefold() not in NEVER_NAMES else ""


def _state(text: str, words: Sequence[WordToken], speaker: str | None) -> SelectedStatement:
    """Return a part of a message as a statement with a subject, a capital and a full stop."""
    text = _complete(_FORGOTTEN_APOSTROPHE.sub(r"I'\1", text.replace("\n", " ")), words)
    content = f"{text[:1].upper()}{text[1:]}" if text.split(maxsplit=1)[0].islower() else text
    content = f"{content.rstrip(' .!?,;:')}."
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
    if (kind == "past" and not rest.startswith("bit of ")) or _BARE_VERB.match(text):
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
