"""Classes of the first word of a clause, and words of errors and code. Pure."""

import re
from importlib.resources import files

from newton.content.yaml_files import parse_trusted
from newton.text import english
from newton.text.english import VERB_LEMMAS, lemmatize
from newton.text.numerals import NUMBER_PREFIX, TIME_PREFIX, WordToken
from newton.text.words import split_words

MIN_ENDED_LETTERS = 4  # of a word before it counts as a form in -ing or -ed
_DATA: dict[str, str] = parse_trusted(
    files("newton.heart.statements").joinpath("statement_words.yaml").read_text(encoding="utf-8")
)
TECHNICAL = re.compile(rf"(?<!\w)(?:{_DATA['technical']})(?!\w)", re.IGNORECASE)  # words of errors and code
_WORD_TABLES = {
    "wh": split_words("what how where when which who why whose whether"),
    "unless": english.CLAUSE_MARKERS,
    "marker": english.MARKERS,
}
_PREFIX_KINDS = {NUMBER_PREFIX: "number", TIME_PREFIX: "time", "~": "feature"}
_PRONOUN_KINDS = {
    word: kind
    for group in _DATA["pronouns"].split("; ")
    for kind, _, words in (group.partition(": "),)
    for word in words.split()
}


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


def _is_past(text: str) -> bool:
    return (
        text in english.PAST_FORMS
        or text in ("was", "were", "had", "did")
        or (text.endswith("ed") and len(text) > MIN_ENDED_LETTERS)
    )
