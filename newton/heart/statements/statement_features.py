"""Features of a clause, by which a model decides whether the clause is worth remembering. Pure.

They describe the form of the clause (subject, verb, tense, times, numbers, names) and the message around it. A model
was fitted to them, so a feature may change only together with the model.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

from newton.content.yaml_files import parse_trusted
from newton.heart.statements.statement_candidates import ClauseForm, StatementCandidate
from newton.text import english
from newton.text.english import VERB_LEMMAS, lemmatize
from newton.text.numerals import NUMBER_PREFIX, TIME_PREFIX, WordToken
from newton.text.words import split_words

MIN_ENDED_LETTERS = 4  # of a word before it counts as a form in -ing or -ed


def _read_yaml(name: str) -> Mapping[str, str]:
    return parse_trusted(files("newton.heart.statements").joinpath(name).read_text(encoding="utf-8"))


_LISTS = _read_yaml("statement_words.yaml")
_WORDS = {name: split_words(words) for name, words in _LISTS.items()}


_DEICTIC = split_words("this that these those it")
_REFERRING = _DEICTIC | split_words("him her them")  # objects that only what was said before explains
_WH = split_words("what how where when which who why whose whether")
_SPEAKER_WORDS = split_words("i my me mine")
_GROUP_WORDS = split_words("we our us ours")
_INDEFINITE = ("a", "an")
_MARKS = tuple(_LISTS["marks"].split())
_NAME = re.compile(r"(?<=[a-z0-9,;'’:)] )(?!I\b|I')[A-Z][\w'’-]*|[a-z]+[A-Z]\w*|[A-Za-z]+\d\w*")
_INFORMING = re.compile(
    r"btw|by the way|fyi|update|news|heads|correction|actually|so you know|for context|remember|note|turns out|also"
    r"|background"
)


@cache
def load_cues() -> Mapping[str, re.Pattern[str]]:
    """Return the compiled patterns of the file `statement_cues.yaml` by name."""
    cues = _read_yaml("statement_cues.yaml")
    return {name: re.compile(rf"(?<!\w)(?:{one})(?!\w)", re.IGNORECASE) for name, one in cues.items()}


# Cues that make a statement about a named thing or person less than plain.
_UNPLAIN_CUES = split_words("assistant exclaim fiction hedge just moment opinion reported technical unreal want you")


def extract_features(candidates: Sequence[StatementCandidate], position: int) -> dict[str, float]:
    """Return the features, by name, of the clause at `position` among the clauses of its message."""
    one = candidates[position]
    features = {
        **{f"cue_{name}": float(len(pattern.findall(one.text))) for name, pattern in load_cues().items()},
        **_head_features(one.words, one.verb),
        **_verb_features(one.words, one.verb),
        **_value_features(one),
        **_place_features(candidates, position),
        **_context_features(candidates, position),
    }
    return features | {"plain_named": float(_is_plainly_about_name(one, features))}


def _is_plainly_about_name(one: StatementCandidate, features: Mapping[str, float]) -> bool:
    """Return whether a clause is a whole message with a lasting, unrestricted statement about what it names."""
    subject = one.words[: max(one.verb, 1)]
    is_named = any(word.is_capitalized for word in subject) and classify_word(subject[0]) in _NAMED_KINDS
    unplain = (*(f"cue_{name}" for name in _UNPLAIN_CUES), "passing_state", "exclamation")
    refers = one.verb > 0 and bool({word.text for word in one.words[one.verb + 1 : one.verb + 2]} & _REFERRING)
    return is_named and features["is_only"] == 1 and not refers and not any(features[name] for name in unplain)


def _head_features(words: Sequence[WordToken], verb: int) -> dict[str, float]:
    """Return features of the subject and of the words before the verb."""
    kind = classify_word(words[0]) if words else ""
    subject = [word.text for word in words[1 : max(verb, 1)] if not word.text.startswith("~")]
    heads = {*map(lemmatize, subject), *subject}
    return {
        **{f"first_{name}": float(kind == name) for name in _KINDS},
        **{f"subject_{name}": float(bool(heads & group)) for name, group in _NOUN_GROUPS.items()},
        "first_capital": float(bool(words) and words[0].is_capitalized),
        "subject_length": float(len(subject)),
        "verb_position": float(verb),
    }


def _verb_features(words: Sequence[WordToken], verb: int) -> dict[str, float]:
    """Return features of the verb and of the words after it."""
    text = words[verb].text if verb > 0 else ""
    lemma = lemmatize(text) if text else ""
    rest = [word.text for word in words[verb + 1 : verb + 3]] if verb > 0 else []
    is_be, following = text in english.BE, rest[0] if rest else ""
    is_done = any(_is_past(word) or word in english.PARTICIPLES for word in rest)
    return {
        **{f"verb_{name}": float(lemma in group or text in group) for name, group in _VERB_GROUPS.items()},
        "verb_past": float(_is_past(text)),
        "verb_third": float(text.endswith("s") and text not in english.AUXILIARIES),
        "verb_known": float(lemma in VERB_LEMMAS),
        "progressive": float(is_be and any(word.endswith("ing") and len(word) > MIN_ENDED_LETTERS for word in rest)),
        "perfect": float(text in english.HAVE and is_done),
        "passing_state": float(is_be and bool(_WORDS["passing_states"] & {*rest})),
        "permanent_state": float(bool(_WORDS["permanent"] & {word.text for word in words})),
        "article_complement": float(is_be and following in (*_INDEFINITE, "my", "our", "the")),
        "object_deictic": float(following in _DEICTIC),
        "object_indefinite": float(following in _INDEFINITE),
        "object_own": float(following in ("my", "our")),
    }


def _value_features(one: StatementCandidate) -> dict[str, float]:
    """Return how many words and punctuation marks of several kinds the clause contains."""
    texts = [word.text for word in one.words]
    lemmas = {lemmatize(text) for text in texts}
    last = texts[-1] if texts else ""
    return {
        **{f"has_{name}": float(texts.count(f"~{name}")) for name in _MARKS},
        **{f"noun_{name}": float(len(lemmas & group)) for name, group in _NOUN_GROUPS.items()},
        "numbers": float(sum(text.startswith(NUMBER_PREFIX) for text in texts)),
        "times": float(sum(text.startswith(TIME_PREFIX) for text in texts)),
        "names": float(len(_NAME.findall(one.text))),
        "speaker_words": float(sum(text in _SPEAKER_WORDS for text in texts)),
        "group_words": float(sum(text in _GROUP_WORDS for text in texts)),
        "words": float(len(texts)),
        "masked_share": one.masked_share,
        "exclamation": float("!" in one.text),
        "ellipsis": float("..." in one.text or "…" in one.text),
        "colon": float(":" in one.text),
        "lower_start": float(one.text[:1].islower()),
        "dangling": float(last in english.MARKERS or last in english.DETERMINERS),
        "wh": float(sum(text in _WH for text in texts)),
    }


def _place_features(candidates: Sequence[StatementCandidate], position: int) -> dict[str, float]:
    """Return features of the place of the clause in the message, and of the opening cut off before it."""
    one = candidates[position]
    return {
        "opening_informs": float(bool(_INFORMING.search(one.opening))),
        "opening_because": float("because" in one.opening),
        "opening_joins": float(one.opening.endswith(("and", "but", "so", "and,"))),
        "opened": float(bool(one.opening)),
        "position": float(position),
        "count": float(len(candidates)),
        "clause": float(one.clause),
        "is_last": float(position == len(candidates) - 1),
        "is_only": float(len(candidates) == 1),
    }


def _context_features(candidates: Sequence[StatementCandidate], position: int) -> dict[str, float]:
    """Return features of the other clauses of the message, such as whether they ask."""
    before, after = candidates[:position], candidates[position + 1 :]
    others, cues = (*before, *after), load_cues()
    firsts = [classify_word(other.words[0]) for other in others if other.words]
    forms = (ClauseForm.QUESTION, ClauseForm.REQUEST)
    return {
        **{f"before_{form}": float(any(other.form is form for other in before[-1:])) for form in forms},
        **{f"after_{form}": float(any(other.form is form for other in after[:1])) for form in forms},
        **{f"count_{form}": float(sum(other.form is form for other in others)) for form in ClauseForm},
        "others_speaker": float(sum(kind in ("i", "we", "my", "our") for kind in firsts)),
        "message_unreal": float(any(cues["unreal"].search(other.text) for other in before)),
        **{
            f"message_{name}": float(any(cues[name].search(other.text) for other in others))
            for name in ("fiction", "technical", "moment")
        },
    }


_NOUN_GROUPS = {"kinship": _WORDS["kinship"], "routine": _WORDS["routine_nouns"], "passing": _WORDS["passing_nouns"]}
_VERB_GROUPS = {
    "be": english.BE,
    "have": english.HAVE,
    "do": english.DO,
    "lasting": _WORDS["lasting_verbs"],
    "object": _WORDS["object_verbs"],
    "recurring": _WORDS["recurring_verbs"],
    "mental": _WORDS["mental_verbs"],
    "chat": _WORDS["chat_verbs"],
    "deciding": _WORDS["deciding"],
}
_KINDS = tuple(_LISTS["kinds"].split())


def classify_word(word: WordToken) -> str:
    """Return the class of the first word of a clause, such as a pronoun, an article, "name", "past" or "verb"."""
    text = word.text
    if text in _PRONOUN_KINDS:
        return _PRONOUN_KINDS[text]
    if word.is_capitalized:
        return "name"
    table = next((kind for kind, words in _WORD_TABLES.items() if text in words), "")
    return table or _PREFIX_KINDS.get(text[:1]) or _classify_form(text)


def _classify_form(text: str) -> str:
    if _is_past(text):
        return "past"
    if text.endswith("ing") and len(text) > MIN_ENDED_LETTERS:
        return "ing"
    return "verb" if lemmatize(text) in VERB_LEMMAS else "other"


_NAMED_KINDS = ("name", "the", "a", "other", "number", "verb", "ing")  # of the first word
_WORD_TABLES = {"wh": _WH, "unless": english.CLAUSE_MARKERS, "marker": english.MARKERS}
_PREFIX_KINDS = {NUMBER_PREFIX: "number", TIME_PREFIX: "time", "~": "feature"}
_PRONOUN_KINDS = {
    word: kind
    for group in _LISTS["pronouns"].split("; ")
    for kind, _, words in (group.partition(": "),)
    for word in words.split()
}


def _is_past(text: str) -> bool:
    return (
        text in english.PAST_FORMS
        or text in ("was", "were", "had", "did")
        or (text.endswith("ed") and len(text) > MIN_ENDED_LETTERS)
    )
