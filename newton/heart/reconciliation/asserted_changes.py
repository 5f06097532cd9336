"""Check that a line asserts a change of a known statement, of its holder and of the same thing. Pure, in English.

A model may cite a line that has the new words but says them of somebody else, of another thing, or as a thought. Such a
line changes nothing. The reader of messages tells what the person means as real, the reader of pairs what is a change.
Other languages have the patterns of `citations` alone.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from newton.heart.identity.rule_plan import may_lift
from newton.heart.reconciliation import citations
from newton.heart.reconciliation.known_checks import says_all
from newton.heart.reconciliation.line_sources import affirms
from newton.heart.reconciliation.quoted_text import split_own_words
from newton.heart.reconciliation.reconciling_types import KnownItem, NewLine
from newton.heart.reconciliation.text_evidence import list_own_names, list_stems, share_stems
from newton.heart.statements.change_cues import load_cues
from newton.heart.statements.change_detection import detect_change
from newton.heart.statements.commitment import Commitment, find_plan, find_reading, list_unasserted
from newton.heart.statements.slots import concerns_another, list_holders
from newton.heart.statements.statement_candidates import split_message
from newton.providers.minilm import load_reader
from newton.providers.speech_reader import read_speech
from newton.text.languages import ENGLISH, detect_language, load_language
from newton.text.words import COMMON_WORDS

UNREAL_MIN = 0.9  # probability that the person does not mean a clause as real
SURELY_TOLD = 0.65  # that it is told as true, from which a phrase of a doubt or report in it does not count
LIKELY_CHANGE = 0.25  # probability of a change from which a clause that links to the known statement says it
ANY_COSINE = 0.6  # of statements that are near: what is far shares no words either
_CHANGING = ("replacement", "cessation", "milestone", "present", "correction", "amount")
_SELF = re.compile(r"\b(?:i|me|my|mine|we|us|our|ours)\b", re.IGNORECASE)
_OWN = re.compile(r"^\W*(?:i|my|we|our|the user)\b", re.IGNORECASE)
# "Mum's number", but not "Mum's in hospital" or "Lena's my dentist"
_OWNER = re.compile(
    r"\b(?!(?:it|that|he|she|there|what|let|who|here|where|how|everyone|today)['’])(\w+)(?:['’]s|(?<=s)['’])\s+(?!(?:my|our|"
    r"a|an|the|in|at|on|to|now|not|no|still|been|got|gone|taken|also|really|just|very|so)\b|\w+(?:ing|ed)\b)\w",
    re.IGNORECASE,
)
_THEIRS = re.compile(r"\b(?:(?:his|her|their|its)\s+\w|hers\b|theirs\b)", re.IGNORECASE)
_OTHERS = re.compile(
    r"^\W*(?:every(?:body|one)|some(?:body|one)|half|most|many|people|an?(?: \w+)? (?:friend|colleague|neighbou?r) of"
    r"|(?:the other|another)(?! \w+ (?:i|we)\b))\b",
    re.IGNORECASE,
)
_KIN = re.compile(
    r"^\W*(?P<name>mum|mom|mama|dad|papa|gran|granny|nan|(?:grand|step)?(?:ma|pa|mother|father)|sis)\b", re.IGNORECASE
)
_HE = re.compile(r"^\W*(?:he|she|they)\b", re.IGNORECASE)
_GOING_ON = re.compile(r"\b(?:i|we)\b.*\b(?:him|her|it|them|there|that)\b", re.IGNORECASE)
# What the person does, and does not only know or hear: "I've got Callum's car"
_DOING = re.compile(
    r"\b(?:i|we)\b(?!(?:['’]\w+)?(?: \w+)? (?:know|knew|hear|heard|met|meet|ask|asked|think|thought|told|tell|saw|see"
    r"|spoke|talked|believe|guess|drove|took|brought|recommended|like|love|wish|remember)\b)",
    re.IGNORECASE,
)
_CORRECTING = re.compile(
    r"^\W*(?:(?:och|oh|ah|hm+|well|ok)\W+)?(?:no|nope|wait|sorry|oops|correction|actually|\d)", re.IGNORECASE
)
_ELSEWHERE = re.compile(
    r"\b(?:next door|upstairs|downstairs|across the (?:street|road)|down the (?:street|road))\b", re.I
)
_ACTS = re.compile(r"^\W*(?P<name>(?:Dr|Mrs?|Ms)?\.?\s?[A-Z][\w-]+)\s+(?:and \w+\s+)?[a-z]")


def may_say_change(line: NewLine, known: Sequence[KnownItem], text: str, names: Sequence[str]) -> bool:
    """Return whether a line may say the change: it is no report or doubt of it, and no end of something else."""
    own = split_own_words(line.text).own
    if affirms(own):
        return True
    is_bound = any(item.kind in ("rule", "wish") for item in known)
    may_end = citations.asks_to_lift(own) or (may_lift(own) and bool(text or not citations.is_limited(own)))
    if is_bound and not may_end:
        return False
    texts = [item.text for item in known if item.drafted_by != line.memory_id]
    if texts and not is_bound and not asserts_change(own, text, texts, user_names=names):
        return False
    if text:
        is_beside = citations.is_beside(own, text, texts, user_names=names)
        return not (is_beside or citations.only_reports(own, text, user_names=names))
    return citations.supports_change(own, "", texts, user_names=names) and not any(
        citations.ends_another(own, one) for one in texts
    )


def may_add(line: NewLine, text: str, known: Sequence[KnownItem], names: Sequence[str]) -> bool:
    """Return whether a line says the changes of the known facts that a new statement would replace by itself.

    A model could else state anew what it may not change.
    """
    stated = _speak_as_self(text, names)
    facts = [one for one in known if one.kind == "fact" and one.drafted_by != line.memory_id]
    near = [one for one in facts if share_stems(list_stems(_speak_as_self(one.text, names)), list_stems(stated))]
    others = [one for one in near if not says_all(one.text, text, user_names=names)]
    replaced = [one for one in others if _replaces(_speak_as_self(one.text, names), stated)]
    return all(may_say_change(line, [one], text, names) for one in replaced)


def _replaces(old: str, new: str) -> bool:
    return detect_change(old, new, cosine=ANY_COSINE, reading=_read_pair(old, new)).kind == "update"


def asserts_change(line: str, text: str, known: Sequence[str], *, user_names: Sequence[str] = ()) -> bool:
    """Return whether a line says itself that known statements changed to a text, or ended if there is none.

    >>> known, lines = ["My dentist is Dr Kral."], ("I switched to Dr Novak.", "My son has a new dentist, Dr Novak.")
    >>> [asserts_change(line, "My dentist is Dr Novak.", known) for line in lines]
    [True, False]
    """
    if detect_language(line) != ENGLISH or not line.strip():
        return True
    olds, stated = [_speak_as_self(one, user_names) for one in known], _speak_as_self(text, user_names)
    news = list_stems(stated) - frozenset[str]().union(*map(list_stems, olds))
    parts = list(_list_asserted(line))
    clauses = [part for part, _ in parts]
    is_linked = all(any(_is_linked(one, old) for one in clauses) for old in olds)
    if not parts or not (is_linked or (text and not news) or _CORRECTING.match(line)):
        return not parts
    telling = [n for n, one in enumerate(clauses) if share_stems(news, list_stems(one))] or [*range(len(parts))]
    telling += [n + 1 for n in telling if n + 1 < len(parts) and _GOING_ON.search(clauses[n + 1])]
    meant = [n for n in telling if parts[n][1]]
    return any(not any(_is_of_another(clauses[n], old, stated, clauses[:n]) for old in olds) for n in meant)


def _speak_as_self(text: str, user_names: Sequence[str]) -> str:
    """Return a statement on the user as they would say it: "Nora's dentist" is "My dentist"."""
    names = "|".join(map(re.escape, ["the user", *list_own_names(user_names)]))
    text = re.sub(rf"(?<!\w)(?:{names})['’]s\b", "my", text, flags=re.IGNORECASE)
    text = re.sub(rf"(?<!\w)(?:{names})(?!\w)", "I", text, flags=re.IGNORECASE)
    return f"{text[:1].upper()}{text[1:]}"


def _list_asserted(line: str) -> Iterator[tuple[str, bool]]:
    """Yield the clauses of a line, each with whether the person means it as real."""
    reading, unreal = read_speech(line), list_unasserted(line)
    for one in split_message(line):
        rates = reading.rate(one.start, one.end)
        found = find_reading(unreal, one.start, one.end)
        is_said = found and found.phrase.endswith(":") and _OWN.match(one.text)  # the "my" of somebody else
        is_hinted = (
            found
            and found.commitment in (Commitment.REPORTED, Commitment.DOUBTED)
            and rates.get("told", 0.0) >= SURELY_TOLD
        )
        is_doubted = found and (is_said or not is_hinted)
        is_thought = rates.get("unreal", 0.0) >= UNREAL_MIN or is_doubted or find_plan(one.text)
        is_asked = one.text.endswith("?") and not _SELF.search(one.text)
        yield f"{one.opening} {one.text}".strip(), not (is_thought or is_asked)


def _is_of_another(clause: str, old: str, text: str, before: Sequence[str]) -> bool:
    """Return whether a clause says of another holder what a statement says of its own.

    `before` are the clauses before it, to which a "she" refers.
    """
    is_own, owners = bool(_OWN.match(old)), [*list_holders(old, ENGLISH), *_OWNER.findall(old)]
    named, others = f"{old} {text}", [*list_holders(clause, ENGLISH), *_OWNER.findall(clause)]
    has_same = any(share_stems(list_stems(old), list_stems(clause[one.end() - 1 :])) for one in _OWNER.finditer(clause))
    if not (is_own or owners) or (_DOING.search(clause) and not has_same):  # "I met my son's dentist"
        return False
    if any(not _has_word(named, one) for one in others) or concerns_another(old, clause, ENGLISH):
        return True
    if not is_own or (_SELF.search(clause) and not _OTHERS.match(clause)) or (owners and _HE.match(clause)):
        return False
    theirs = _THEIRS.search(clause)
    if _HE.match(clause) or (theirs and not share_stems(list_stems(old), list_stems(clause[: theirs.start()]))):
        about = (one for one in before[-1:] if share_stems(list_stems(old), list_stems(one)))
        return not any(not _is_of_another(one, old, text, ()) for one in about)
    return _has_other_subject(clause, named)


def _has_other_subject(clause: str, named: str) -> bool:
    """Return whether a clause without the person is about somebody who is not named, or people elsewhere."""
    if _OTHERS.match(clause) or _ELSEWHERE.search(clause):
        return True
    acting = _KIN.match(clause) or _ACTS.match(clause)
    is_name = acting and acting["name"].casefold() not in load_language(ENGLISH).words | COMMON_WORDS
    is_other = acting and not any(_has_word(named, part) for part in acting["name"].split())
    return bool(is_other and (is_name or acting.re is _KIN))


def _has_word(text: str, word: str) -> bool:
    return bool(share_stems(list_stems(word), list_stems(text))) or word.casefold() in text.casefold().split()


def _is_linked(clause: str, old: str) -> bool:
    """Return whether a clause may change a statement: both share a word, or the person tells a change of theirs."""
    if share_stems(list_stems(old), list_stems(clause)):
        return True
    if _DOING.search(clause) and any(load_cues().cues[name].search(clause) for name in _CHANGING):
        return True
    verdict = detect_change(old, clause, cosine=ANY_COSINE, reading=_read_pair(old, clause))
    return verdict.kind != "compatible" or verdict.probability >= LIKELY_CHANGE


@lru_cache(maxsize=512)
def _read_pair(old: str, clause: str) -> float:
    return load_reader().score_pairs([(old, clause)])[0]
