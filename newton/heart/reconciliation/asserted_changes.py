"""Check that a line asserts a change of a known statement, of its holder and of the same thing. Pure, in English.

A model may cite a line that has the new words but says them of somebody else, of another thing, or as a thought. Such a
line changes nothing. The reader of messages tells what the person means as real, the reader of pairs what is a change.
Other languages have the patterns of `citations` alone.
"""

import re
from collections.abc import Iterator, Sequence

from newton.heart.identity.rule_plan import may_lift
from newton.heart.reconciliation import citations
from newton.heart.reconciliation.known_checks import REFERENCE, is_denied, is_fragment, says_all
from newton.heart.reconciliation.line_sources import affirms
from newton.heart.reconciliation.quoted_text import split_own_words
from newton.heart.reconciliation.reconciling_types import KnownItem, NewLine
from newton.heart.reconciliation.text_evidence import list_own_names, list_stems, share_stems
from newton.heart.statements.change_cues import load_cues
from newton.heart.statements.change_detection import read_change
from newton.heart.statements.commitment import CommitmentKind, find_plan, find_reading, is_unreal, list_unasserted
from newton.heart.statements.slots import concerns_another, explain_slot_change, list_holders
from newton.heart.statements.statement_candidates import split_message
from newton.heart.wills.will_reader import asks_to_forget
from newton.providers.minilm import read_pair
from newton.providers.speech_reader import read_speech
from newton.text.languages import ENGLISH, detect_language, load_language
from newton.text.patterns import asks
from newton.text.questions import is_only_question, opens_question
from newton.text.sentences import split_sentences
from newton.text.words import COMMON_WORDS

UNREAL_MIN = 0.9  # probability that the person does not mean a clause as real
SURELY_TOLD = 0.65  # that it is told as true, from which a phrase of a doubt or report in it does not count
LIKELY_CHANGE = 0.26  # probability of a change from which a clause that links to the known statement says it
MIN_ENDING = 6.0  # reading of a known statement and a clause on it that surely leaves it no more as it is
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
_CEASING = re.compile(
    r"\b(?:is|am|are|'s|'m|'re|comes?|came) off (?:the|my|his|her|our|their)\b"
    r"|\b(?:over|done|shut|finished|cancel+ed|gone|deleted|mistake|alone again|signed \w+ off|g[ai]ve notice"
    r"|pack\w* (?:it )?in|(?:gave|given|handed)\b.*\bback|put\b.*\bdown"
    r"|(?:last|final)(?! (?:night|week|weekend|month|year|summer|winter)\b))\b",
    re.IGNORECASE,
)
_REQUEST = re.compile(r"\W*(?:can|could|will|would) (?:you|u)\b", re.IGNORECASE)
_CEASES_IT = re.compile(r"\w.*\b(?:him|her|it|them|there|that|those)\b", re.IGNORECASE)  # not "it stopped raining"
_CORRECTING = re.compile(
    r"^\W*(?:(?:och|oh|ah|hm+|well|ok)\W+)?(?:no|nope|wait|sorry|oops|correction|actually|\d)", re.IGNORECASE
)
_ELSEWHERE = re.compile(
    r"\b(?:next door|upstairs|downstairs|across the (?:street|road)|down the (?:street|road))\b", re.I
)
_THING = re.compile(
    r"^\W*(?:the|our|my|this) (?P<thing>(?!new\b)[\w'’ -]{2,40}?) "
    r"(?P<verb>is|are|starts?|begins?|ends?|costs?|opens?|closes?|takes place)\b",
    re.IGNORECASE,
)
_OPEN = re.compile(
    r"\b(?:date|day|time|plan|place|deal|answer|price|amount|total|number|name|idea|rule)s?$", re.IGNORECASE
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
    return read_change(old, new, cosine=ANY_COSINE).kind == "update"


def asserts_change(line: str, text: str, known: Sequence[str], *, user_names: Sequence[str] = ()) -> bool:
    """Return whether a line says itself that known statements changed to a text, or ended if there is none.

    >>> known, lines = ["My dentist is Dr Kral."], ("I switched to Dr Novak.", "My son has a new dentist, Dr Novak.")
    >>> [asserts_change(line, "My dentist is Dr Novak.", known) for line in lines]
    [True, False]
    """
    if not line.strip() or not (text or _tells_of(line, known)):
        return not line.strip()
    if detect_language(line) != ENGLISH:
        return True
    olds, stated = [_speak_as_self(one, user_names) for one in known], _speak_as_self(text, user_names)
    news = list_stems(stated) - frozenset[str]().union(*map(list_stems, olds))
    parts = list(_list_asserted(line))
    clauses = [part for part, _ in parts]
    if text:
        is_linked = all(any(_is_linked(one, old) for one in clauses) for old in olds)
    else:
        is_linked = all(_says_end(parts, old) for old in olds)
    is_value = text and not news and not any(_has_other_thing(one, old, stated) for one in clauses for old in olds)
    if not parts or not (is_linked or is_value or _CORRECTING.match(line)):
        return not parts
    telling = [n for n, one in enumerate(clauses) if share_stems(news, list_stems(one))] or [*range(len(parts))]
    going_on = {n for n, one in enumerate(clauses) if _GOING_ON.search(one) and _DOING.search(one)}
    telling += [n + 1 for n in telling if n + 1 in going_on]
    meant = [n for n in telling if parts[n][1]]
    return any(not any(_is_of_another(clauses[n], old, stated, clauses[:n]) for old in olds) for n in meant)


def tells_plainly(line: str, fact: str) -> bool:
    """Return whether a line tells a fact as true and lasting: in clear words of its own, and without asking to drop it.

    >>> fact = "The boiler is new."
    >>> lines = (fact, "I dreamt that the boiler is new.", "Surely the boiler is new?", "Forget it: the boiler is new.")
    >>> [tells_plainly(one, fact) for one in lines]
    [True, False, False, False]
    """
    own, code = split_own_words(line).own, detect_language(line)
    says_nothing = REFERENCE.match(fact) or (is_fragment(fact) and not _ceases(fact))
    if says_nothing or asks_to_forget(own):
        return False
    if code != ENGLISH:
        return bool(share_stems(list_stems(fact), list_stems(own))) and not (is_unreal(own) or is_only_question(own))
    stems, parts = list_stems(fact), _list_asserted(own)
    return any(is_meant and share_stems(stems, list_stems(one)) for one, is_meant in parts)


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
            and found.commitment in (CommitmentKind.REPORTED, CommitmentKind.DOUBTED)
            and rates.get("told", 0.0) >= SURELY_TOLD
        )
        is_doubted = found and (is_said or not is_hinted)
        is_thought = rates.get("unreal", 0.0) >= UNREAL_MIN or is_doubted or find_plan(one.text)
        is_tagged = _SELF.search(one.text) and (_REQUEST.match(one.text) or not opens_question(one.text))
        is_asked = one.text.endswith("?") and not is_tagged
        yield f"{one.opening} {one.text}".strip(), not (is_thought or is_asked)


def _is_of_another(clause: str, old: str, text: str, before: Sequence[str]) -> bool:
    """Return whether a clause says of another holder what a statement says of its own.

    `before` are the clauses before it, to which a "she" refers.
    """
    is_own, owners = bool(_OWN.match(old)), [*list_holders(old, ENGLISH), *_OWNER.findall(old)]
    named, others = f"{old} {text}", [*list_holders(clause, ENGLISH), *_OWNER.findall(clause)]
    has_same = any(share_stems(list_stems(old), list_stems(clause[one.end() - 1 :])) for one in _OWNER.finditer(clause))
    if _has_other_thing(clause, old, named):
        return True
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


def _has_other_thing(clause: str, old: str, named: str) -> bool:
    """Return whether a clause says of another thing what a statement says of its own, without a word of a change.

    >>> old = "The meeting is on Tuesday at 10."
    >>> [_has_other_thing(f"The {one} is on Friday at 7.", old, old) for one in ("dinner", "team meeting", "new date")]
    [True, False, False]
    """
    thing, other = _THING.match(old), _THING.match(clause)
    if not thing or not other or thing["verb"].lower() != other["verb"].lower() or _OPEN.search(other["thing"]):
        return False
    is_changed = any(load_cues().cues[name].search(clause) for name in _CHANGING)
    stems = list_stems(named), list_stems(thing["thing"])
    is_same = share_stems(list_stems(other["thing"]), stems[0]) or share_stems(stems[1], list_stems(clause))
    return not (is_changed or is_same or explain_slot_change(old, clause, ENGLISH))


def _has_word(text: str, word: str) -> bool:
    return bool(share_stems(list_stems(word), list_stems(text))) or word.casefold() in text.casefold().split()


def _is_linked(clause: str, old: str) -> bool:
    """Return whether a clause may change a statement: both share a word, or the person tells a change of theirs."""
    if share_stems(list_stems(old), list_stems(clause)):
        return True
    if _DOING.search(clause) and any(load_cues().cues[name].search(clause) for name in _CHANGING):
        return True
    verdict = read_change(old, clause, cosine=ANY_COSINE)
    return verdict.kind != "compatible" or verdict.probability >= LIKELY_CHANGE


def _tells_of(line: str, known: Sequence[str]) -> bool:
    """Return whether a line does not only ask about known statements, beside a remark on something else.

    >>> _tells_of("Bin ich noch bei Brandt? Was für eine Woche.", ["Ich bin bei Brandt."])
    False
    """
    stems, sentences = list_stems(" . ".join(known)), split_sentences(line)
    asked = [asks(one, detect_language(one)) for one in sentences]
    about = [bool(share_stems(stems, list_stems(one))) for one in sentences]
    is_asked = any(one and other for one, other in zip(asked, about, strict=True))
    told = [n for n, one in enumerate(sentences) if not asked[n] or _REQUEST.match(one)]
    return not is_asked or any(about[n] or citations.PRONOUN.search(sentences[n]) for n in told)


def _says_end(parts: Sequence[tuple[str, bool]], old: str) -> bool:
    """Return whether a clause that is meant as real says that a statement no longer holds, or never did.

    >>> lines = ("I sold the boat.", "I cleaned my boat.", "The film is over.")
    >>> [_says_end([(line, True)], "I own a boat.") for line in lines]
    [True, False, False]
    """
    clauses, stems = [one for one, is_meant in parts if is_meant], list_stems(old)
    about = [one for one in clauses if share_stems(stems, list_stems(one))]
    is_named = any(share_stems(stems, list_stems(one)) for one, _ in parts)
    if any(_ceases(one) or is_denied(one) for one in about):
        return True
    if is_named and any(_ceases(one) and _CEASES_IT.search(one) for one in clauses if one not in about):
        return True
    verdicts = [read_change(old, one, cosine=ANY_COSINE) for one in clauses]
    if any(one.kind == "update" or (not about and one.probability >= LIKELY_CHANGE) for one in verdicts):
        return True
    return any(read_pair(old, one) >= MIN_ENDING for one in about)


def _ceases(clause: str) -> bool:
    return bool(load_cues().cues["cessation"].search(clause) or _CEASING.search(clause))
