"""Numeric features of two statements, by which a model decides whether the newer one replaces the older one. Pure.

Every feature is a float. The model in `change_model.json` weighs the features.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, takewhile

from newton.heart.statements.change_cues import load_cues
from newton.heart.statements.parser import ParsedStatement, parse_statement
from newton.heart.statements.similarity import compare_statements
from newton.text.english import OPPOSITES, VERB_LEMMAS, lemmatize
from newton.text.numerals import CARDINALS, DAYS, MONTHS, ORDINALS

STEM_LENGTH = 5  # characters; makes teach and teacher equal
ANNOUNCING_CUES = ("cessation", "replacement", "amount", "correction", "milestone")

_FIRST_PERSON = re.compile(r"\b(?:i|i'm|my|me|we|our|us|we're|i've|i'd|myself)\b", re.IGNORECASE)
_RELATIVE = re.compile(
    r"'s (?:\w+ )?(?:brother|sister|mother|father|son|daughter|wife|husband|office mate|colleague|boss|friend|cousin"
    r"|flatmate|roommate|neighbours?|boyfriend|girlfriend|twin|uncle|aunt|kids?)\b"
)
_WORD = re.compile(r"[\w'’.:@#/-]*\w")
_NUMBER = re.compile(r"v?\d")
_UNIT = re.compile(r"\d+(?:k|mb|gb|s|m|km|am|pm|st|nd|rd|th)", re.IGNORECASE)
_IDENTIFIER = re.compile(r"[a-z].*\d|\d.*[a-z]|-\d", re.IGNORECASE)
_PERIOD = re.compile(r"\b(?:a|per|every|each|an) (year|month|week|day|hour|night|minute|second)s?\b", re.IGNORECASE)
_HAVE_A = re.compile(r"\b(?:have|has|got|own|owns|'ve got) an?\b", re.IGNORECASE)
_IS = re.compile(r"\b(?:is|are)\b|'s\b")
_OWN_HEAD = re.compile(r"(?:my|our) (\w+)", re.IGNORECASE)
_THE_HEAD = re.compile(r"the (\w+)", re.IGNORECASE)
_POSSESSIVE = re.compile(r"(\w+)['’]s\b")
_OCCASION = re.compile(
    r"\b(?:when|if|while|once|during|on (?:mon|tues|wednes|thurs|fri|satur|sun)days?|last|yesterday|tomorrow|tonight"
    r"|this (?:week|morning|once))\b",
    re.IGNORECASE,
)
_HEDGE = re.compile(
    r"\b(?:might|may|could|would|maybe|perhaps|thinking|wants?|hopes?|plans?|some ?day|dreams?|considering|rumou?r"
    r"|supposedly|apparently)\b",
    re.IGNORECASE,
)
_MORE = re.compile(r"\b(?:also|too|as well|another|other|second|both|besides|still)\b", re.IGNORECASE)
# The phrase ends before these words.
_PHRASE_END = re.compile(
    r"[,.;:!?()](?:\s|$)|\b(?:to|with|by|for|as|in|on|at|and|but|so|now|because|since|last|after)\b", re.I
)
_FORMER_WORDS = 4  # of a phrase that names what is over
_VERB_CLASSES = {"be": 1, "have": 2, "do": 3}
_STOPWORD_LIST = """
    a an the of in on at to for with by from and or but is are was were be been being am do does did has have had i me
    my mine we us our you your he him his she her it its they them their this that these those there as so very just
    really only all some any not no now then than too also about into over under after before since until up down out
    off s
"""
_STOPWORDS = frozenset(_STOPWORD_LIST.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementOutline:
    """The word stems of a statement, without stopwords, and the other evidence that change detection uses.

    `names`, `numbers`, `identifiers` and `subject` are subsets of the stems. `cues`, `single` and `multi` are the names
    of the patterns of ChangeCues that match, `scopes` the stems of words that limit the statement, and `former` the
    stems of words for things of the past.
    """

    text: str
    parsed: ParsedStatement
    stems: frozenset[str]
    names: frozenset[str]
    numbers: frozenset[str]
    identifiers: frozenset[str]
    periods: frozenset[str]
    subject: frozenset[str]
    is_first_person: bool
    cues: frozenset[str]
    scopes: frozenset[str]
    single: frozenset[str]
    multi: frozenset[str]
    former: frozenset[str]
    former_heads: frozenset[str]


@lru_cache(maxsize=2_048)
def outline(text: str) -> StatementOutline:
    """Return the word stems of a statement, without stopwords, and which of them are names, numbers or the subject."""
    patterns, parsed, former = load_cues(), parse_statement(text), _former_phrases(text)
    words = [word for word in _WORD.findall(text) if not _is_stopword(word)]
    opening = words[0] if words and text.lstrip().startswith(words[0]) else ""
    is_verb_first = lemmatize(opening.lower()) in VERB_LEMMAS
    return StatementOutline(
        text=text,
        parsed=parsed,
        stems=frozenset(map(_stem, words)),
        names=frozenset(_stem(w) for w in words if w[0].isupper() and not (is_verb_first and w is opening)),
        numbers=frozenset(_stem(word) for word in words if _is_number(word)),
        identifiers=frozenset(_stem(w) for w in words if _IDENTIFIER.search(w) and not _UNIT.fullmatch(w)),
        periods=frozenset(found.lower().removesuffix("s") for found in _PERIOD.findall(text)),
        subject=_subject_stems(parsed),
        is_first_person=bool(_FIRST_PERSON.search(text)),
        cues=frozenset(name for name, pattern in patterns.cues.items() if pattern.search(text)),
        scopes=frozenset(_stem(found) for found in patterns.cues["scope"].findall(text)),
        single=frozenset(name for name, pattern in patterns.single_valued.items() if pattern.search(text)),
        multi=frozenset(name for name, pattern in patterns.multi_valued.items() if pattern.search(text)),
        former=frozenset(chain.from_iterable(former)),
        former_heads=frozenset(stems[-1] for stems in former),
    )


def _former_phrases(text: str) -> list[list[str]]:
    """Return the word stems of each phrase that names a thing of the past.

    Such a phrase follows "instead of", or precedes "was sold".
    """
    before, after = (load_cues().former[name] for name in ("before", "after"))
    phrases = [
        *(
            _PHRASE_END.split(text[found.end() :].lstrip())[0].split()[:_FORMER_WORDS]
            for found in before.finditer(text)
        ),
        *(
            _PHRASE_END.split(text[: found.start()].rstrip())[-1].split()[-_FORMER_WORDS:]
            for found in after.finditer(text)
        ),
    ]
    stems = [[_stem(w) for w in _WORD.findall(" ".join(phrase)) if not _is_stopword(w)] for phrase in phrases]
    return [one for one in stems if one]


def _is_number(word: str) -> bool:
    plain = word.lower()
    return bool(_NUMBER.match(plain)) or plain in CARDINALS or plain in ORDINALS or plain in MONTHS or plain in DAYS


def _is_stopword(word: str) -> bool:
    plain = word.lower()
    return plain.removesuffix("'s") in _STOPWORDS or plain.startswith(("i'", "we'", "it'", "he'", "she'", "they'"))


def _stem(word: str) -> str:
    lemma = lemmatize(word.lower().rstrip(".").removesuffix("'s").removesuffix("’s"))
    return lemma[:STEM_LENGTH] if lemma.isalpha() else lemma


def _subject_stems(parsed: ParsedStatement) -> frozenset[str]:
    """Return the stems of the words before the verb, which name the subject."""
    stems: list[str] = []
    for item in parsed.items:
        if item.finite or item.is_plain_verb:
            break
        stems.append(_stem(item.surface.removeprefix("=")))
    return frozenset(stems)


def extract_features(older: str, newer: str, *, cosine: float, reading: float = math.nan) -> dict[str, float]:
    """Return the features, by name, of two statements whose vectors have this cosine similarity.

    `reading` is the log odds of the reader (transformer), NaN if it has not read them.
    """
    old, new = outline(older), outline(newer)
    features = {"cosine": cosine, "reading": reading}
    features |= _overlap_features(old, new) | _subject_features(old, new) | _cue_features(old, new)
    features |= _value_features(old, new) | _relation_features(old, new) | _form_features(old, new, cosine)
    features |= _former_features(old, new) | _topic_features(old, new)
    return features | _verb_features(old, new) | _alignment_features(old, new) | _interactions(features)


def _overlap_features(old: StatementOutline, new: StatementOutline) -> dict[str, float]:
    shared, union = len(old.stems & new.stems), len(old.stems | new.stems)
    removed, added = old.stems - new.stems, new.stems - old.stems
    return {
        "shared": min(5, shared),
        "jaccard": shared / max(1, union),
        "older_covered": shared / max(1, len(old.stems)),
        "newer_covered": shared / max(1, len(new.stems)),
        "gone": min(5, len(removed)),
        "added": min(8, len(added)),
        "all_covered": float(not removed),
        "one_word_each": float(len(removed) == len(added) == 1),
        "substitution": float(0 < len(removed) <= 3 and 0 < len(added) <= 3 and shared > 0),
        "newer_length": min(25, len(new.stems)),
    }


def _subject_features(old: StatementOutline, new: StatementOutline) -> dict[str, float]:
    both_first = old.is_first_person and new.is_first_person
    old_names, new_names = old.subject & old.names, new.subject & new.names
    conflict = old_names and new_names and not old_names & new.stems and not new_names & old.stems
    return {
        "older_subject_found": _share_found(old.subject, new.stems | new.subject, default=both_first),
        "newer_subject_found": _share_found(new.subject, old.stems | old.subject, default=both_first),
        "subject_equal": float(old.subject == new.subject and (bool(old.subject) or both_first)),
        "subject_conflict": float(bool(conflict)),
        "subject_head_differs": float(bool(old.subject & new.subject and new.subject - old.subject - {"i"})),
        "subject_missing": float(bool(old.subject) and not old.subject & new.stems and not old.is_first_person),
        "subjects_apart": float(
            bool(old.subject and new.subject)
            and not (old.subject & new.stems or new.subject & old.stems)
            and not (old.names & new.names)
            and len(old.stems & new.stems) < 2
            and not both_first
        ),
        "subjects_differ": float(bool(old.subject - new.stems) and bool(new.subject - old.stems)),
        "newer_subject_adds": min(3, len(new.subject - old.stems)),
        "older_subject_gone": min(3, len(old.subject - new.stems)),
        "relative": float(bool(_RELATIVE.search(new.text)) and not _RELATIVE.search(old.text)),
        "both_first_person": float(both_first),
        "first_person_differs": float(old.is_first_person != new.is_first_person),
    }


def _share_found(subject: frozenset[str], stems: frozenset[str], *, default: bool) -> float:
    return len(subject & stems) / len(subject) if subject else float(default)


def _cue_features(old: StatementOutline, new: StatementOutline) -> dict[str, float]:
    names = load_cues().cues
    announces = any(name in new.cues for name in ANNOUNCING_CUES)
    return {
        **{f"newer_{name}": float(name in new.cues) for name in names if name not in ("scope", "negation")},
        **{f"older_{name}": float(name in old.cues) for name in ("cessation", "replacement", "plan", "past")},
        "announces": float(announces),
        "cues": sum(name in new.cues for name in (*ANNOUNCING_CUES, "present")),
        "negation_differs": float(("negation" in old.cues) != ("negation" in new.cues)),
        "scope_differs": float(bool(old.scopes and new.scopes and not old.scopes & new.scopes)),
        "one_has_scope": float(bool(old.scopes) != bool(new.scopes)),
    }


def _value_features(old: StatementOutline, new: StatementOutline) -> dict[str, float]:
    removed, added = old.stems - new.stems, new.stems - old.stems
    same_names = old.names <= new.stems and new.names <= old.stems
    return {
        "name_kept": float(bool(old.names & new.stems)),
        "names_gone": min(2, len(old.names - new.stems)),
        "names_added": min(3, len(new.names - old.stems)),
        "identifier_differs": float(bool(old.identifiers - new.identifiers and new.identifiers - old.identifiers)),
        "number_differs": float(bool(old.numbers and new.numbers and not old.numbers & new.numbers)),
        "number_added": float(bool(new.numbers - old.numbers)),
        "number_shared": float(bool(old.numbers & new.numbers)),
        "only_numbers_differ": float(bool(removed and added) and removed <= old.numbers and added <= new.numbers),
        "only_scopes_differ": float(bool(removed and added) and removed <= old.scopes and added <= new.scopes),
        "same_values": float(same_names and old.numbers == new.numbers),
        "period_differs": float(bool(old.periods and new.periods and not old.periods & new.periods)),
        "same_pair_of_names": float(len(old.names) > 1 and same_names and old.numbers == new.numbers),
        "subject_identifier_differs": float(bool(old.identifiers & old.subject - new.stems)),
        "value_swapped": float(
            bool((old.names - new.stems - old.subject) and (new.names - old.stems))
            or bool(old.numbers - new.numbers and new.numbers - old.numbers)
        ),
    }


def _former_features(old: StatementOutline, new: StatementOutline) -> dict[str, float]:
    """Return features that tell whether the older statement contains a thing that the newer one calls past."""
    found = new.former & old.stems
    return {
        "former_named": float(bool(new.former)),
        "former_found": float(bool(found - old.subject)),
        "former_share": len(found) / len(new.former) if new.former else 0.0,
        "former_is_value": float(bool(found & (old.names | old.numbers) - old.subject)),
        "former_is_subject": float(bool(found & old.subject)),
        "former_missing": float(bool(new.former) and not found),
        "former_heads_missing": float(bool(new.former) and not new.former_heads & old.stems),
        "former_heads_found": float(bool(new.former_heads & old.stems - old.subject)),
    }


def _topic_features(old: StatementOutline, new: StatementOutline) -> dict[str, float]:
    """Return features of the words that both statements share, without the words of their subjects."""
    subjects = old.subject | new.subject
    old_rest, new_rest = old.stems - subjects, new.stems - subjects
    shared = old_rest & new_rest
    return {
        "rest_shared": min(5, len(shared)),
        "rest_covered": len(shared) / max(1, len(old_rest)),
        "rest_anywhere": len((old.stems - old.subject) & new.stems) / max(1, len(old.stems - old.subject)),
    }


def _relation_features(old: StatementOutline, new: StatementOutline) -> dict[str, float]:
    single, multi = old.single & new.single, old.multi & new.multi
    return {
        "single_shared": min(3, len(single)),
        "multi_shared": min(2, len(multi)),
        "older_single": float(bool(old.single)),
        "older_multi": float(bool(old.multi)),
        "single_only": float(bool(single and not multi)),
        "multi_only": float(bool(multi and not single)),
    }


def _form_features(old: StatementOutline, new: StatementOutline, cosine: float) -> dict[str, float]:
    old_lemmas, new_lemmas = ({item.lemma for item in side.parsed.items} for side in (old, new))
    old_verbs, new_verbs = ({item.lemma for item in side.parsed.items if item.finite} for side in (old, new))
    opposite = any(OPPOSITES.get(lemma, set()) & new_lemmas for lemma in old_lemmas)
    return {
        "restates": float(compare_statements(new.text, old.text, cosine=cosine).verdict == "same"),
        "opposite": float(opposite),
        "verb_equal": float(bool(old_verbs & new_verbs)),
        "older_is": float(bool(_IS.search(old.text))),
        "both_are": float(bool(_IS.search(old.text) and _IS.search(new.text))),
        "own_head_kept": _head_kept(_OWN_HEAD, old.text, new.text),
        "the_head_kept": _head_kept(_THE_HEAD, old.text, new.text),
        "older_has_a": float(bool(_HAVE_A.search(old.text))),
    }


def _verb_features(old: StatementOutline, new: StatementOutline) -> dict[str, float]:
    old_verbs, new_verbs = ([i.lemma for i in side.parsed.items if i.finite or i.is_plain_verb] for side in (old, new))
    return {
        "older_verb": _classify_verb(old_verbs),
        "newer_verb": _classify_verb(new_verbs),
        "first_verb_equal": float(old_verbs[:1] == new_verbs[:1] and bool(old_verbs)),
        "verbs_differ": float(bool(old_verbs and new_verbs) and not set(old_verbs) & set(new_verbs)),
    }


def _classify_verb(verbs: Sequence[str]) -> float:
    """Return a number for the first verb: 0 without a verb, 1 to 3 for an auxiliary, 4 for any other verb."""
    return float(_VERB_CLASSES.get(verbs[0].removeprefix("="), len(_VERB_CLASSES) + 1)) if verbs else 0.0


def _alignment_features(old: StatementOutline, new: StatementOutline) -> dict[str, float]:
    """Return features of equal words from both ends, and of articles, possessives and words such as "might"."""
    old_words, new_words = ([word.strip(".,!?").lower() for word in side.text.split()] for side in (old, new))
    prefix = _count_equal(old_words, new_words)
    suffix = min(_count_equal(old_words[::-1], new_words[::-1]), min(len(old_words), len(new_words)) - prefix)
    old_owners, new_owners = ({name.lower() for name in _POSSESSIVE.findall(side.text)} for side in (old, new))
    return {
        "prefix": prefix,
        "suffix": suffix,
        "prefix_share": prefix / max(1, len(old_words)),
        "suffix_share": suffix / max(1, len(old_words)),
        "older_middle": len(old_words) - prefix - suffix,
        "newer_middle": len(new_words) - prefix - suffix,
        "same_length": float(len(old_words) == len(new_words)),
        "older_definite": float(old_words[:1] in (["the"], ["my"], ["our"])),
        "older_indefinite": float(bool({"a", "an"} & set(old_words))),
        "newer_indefinite": float(bool({"a", "an"} & set(new_words))),
        "newer_owner_added": float(bool((new_owners - old_owners) & set(old_words))),
        "older_owner_gone": float(bool(old_owners - new_owners)),
        "newer_occasion": float(bool(_OCCASION.search(new.text))),
        "newer_hedge": float(bool(_HEDGE.search(new.text))),
        "newer_more": float(bool(_MORE.search(new.text))),
    }


def _count_equal(old_words: Sequence[str], new_words: Sequence[str]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old_words, new_words, strict=False)))


def _head_kept(head: re.Pattern[str], older: str, newer: str) -> float:
    found = head.match(older)
    return float(bool(found and re.search(rf"\b{re.escape(found[1])}\b", newer, re.IGNORECASE)))


def _interactions(f: Mapping[str, float]) -> dict[str, float]:
    """Return products of features that say more in combination than alone. `f` maps names to features."""
    plain = 1 - f["announces"]
    single = float(f["single_shared"] > 0)
    multi = float(f["multi_shared"] > 0)
    return {
        "announced_anchor": f["announces"] * max(f["older_subject_found"], f["older_covered"]),
        "announced_shared": f["announces"] * min(3, f["shared"]),
        "announced_cosine": f["announces"] * f["cosine"],
        "announced_other_subject": f["announces"] * f["subjects_differ"],
        "other_subject_swap": f["subjects_differ"] * f["value_swapped"],
        "announced_elsewhere": f["announces"] * float(f["shared"] == 0),
        "ended_shared": f["newer_cessation"] * float(f["shared"] > 0),
        "present_anchor": f["newer_present"] * f["older_subject_found"],
        "plain_exception": plain * f["newer_exception"],
        "plain_scope": plain * f["scope_differs"],
        "plain_superset": plain * f["all_covered"] * (1 - f["negation_differs"]),
        "negated_anchor": f["negation_differs"] * f["older_covered"],
        "opposite_anchor": f["opposite"] * f["older_subject_found"],
        "swap_anchor": f["value_swapped"] * f["older_subject_found"],
        "swap_single_anchor": f["value_swapped"] * f["older_subject_found"] * single,
        "swap_single_cosine": f["value_swapped"] * f["cosine"] * single,
        "swap_multi": f["value_swapped"] * multi,
        "anchor_cosine": f["older_subject_found"] * f["cosine"],
        "equal_subject_substitution": f["subject_equal"] * f["substitution"] * (1 - multi),
        "equal_subject_swap": f["subject_equal"] * f["value_swapped"] * (1 - multi),
        "plain_scope_swap": plain * f["scope_differs"] * f["value_swapped"],
        "single_anchor": single * f["older_subject_found"],
        "single_cosine": single * f["cosine"],
        "single_substitution": single * (1 - multi) * f["substitution"],
        "multi_substitution": multi * f["substitution"],
    }
