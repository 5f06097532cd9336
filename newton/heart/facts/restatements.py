"""Ways in which people tell one thing again, in ten languages, read as one form: it confirms what is known. Pure."""

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from newton.content.yaml_files import parse_trusted
from newton.heart.statements.similarity import StatementSimilarity, compare_statements
from newton.text.languages import detect_language, load_language


def compare_restated(new: str, known: str, *, cosine: float) -> StatementSimilarity:
    """Compare two statements as `compare_statements`, then in the form in which both may be told again.

    >>> texts = "I have a nut allergy, as you know.", "I am allergic to shellfish."
    >>> [compare_restated(one, "I am allergic to nuts.", cosine=0.9).verdict for one in texts]
    ['same', 'different']
    """
    plain = compare_statements(new, known, cosine=cosine)
    if plain.verdict == "same":
        return plain
    forms = _read_form(new), _read_form(known)
    if not all(forms) or forms == (new, known):
        return plain
    restated = compare_statements(*forms, cosine=cosine)
    return restated if restated.verdict == "same" else plain


@lru_cache(maxsize=4_096)
def _read_form(text: str) -> str:
    """Return a statement without reminders, its phrases replaced by the ones that say the same."""
    read = text.replace("’", "'")
    for pattern, form in _patterns(detect_language(text)):
        read = " ".join(pattern.sub(form, read).split())
    return read


@cache
def _patterns(code: str) -> Sequence[tuple[re.Pattern[str], str]]:
    left, right = (r"(?<![\w'-])", r"(?![\w-])") if load_language(code).is_spaced else ("", "")
    source = files("newton.heart.facts").joinpath("restated_forms.yaml").read_text(encoding="utf-8")
    data: dict[str, Any] = parse_trusted(source)[code]
    said, still = data["reminders"], data["still"]
    reminder = rf"^(?:(?:{said}){right}[\s,:;!，、]*)+|[,;:，、]\s*(?:{said})(?=[.!。！]*$)|{left}(?:{still}){right}"
    pairs = [(reminder, ""), *((f"{left}(?:{words}){right}", form) for words, form in data["forms"])]
    return [(re.compile(words, re.IGNORECASE), form) for words, form in pairs]
