"""Whether a line says a change in the own words of the person, as a model needs it after texts of others. Pure."""

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

import yaml

from newton.heart.reconciliation.line_sources import LineSources
from newton.heart.reconciliation.quoted_text import split_own_words
from newton.heart.reconciliation.reconciling_types import KnownItem, NewLine, ReconcilingInput
from newton.text.languages import detect_language
from newton.text.patterns import asks, has_ended, is_negated
from newton.text.questions import is_only_question

_SECOND_PERSON = re.compile(r"\b(?:you|u|your|du|dich|dir|dein\w*|ihr|tu|te|puedes|toi|vous|tes)\b", re.IGNORECASE)


def says_in_own_words(batch: ReconcilingInput, line: NewLine, text: str, known: Sequence[KnownItem]) -> bool:
    """Return whether a line says the text with all its words, or, without a text, says that the known item ends.

    A question says nothing, unless it asks for the change ("Can you forget that?").
    """
    code, sources = detect_language(line.text), LineSources(batch)
    has_cue = _says_end(line.text, code)
    if not has_cue and (is_only_question(line.text) or asks(line.text, code)):
        return False
    if not text:
        return has_cue
    return sources.measure_novelty(text, line, ()) == 0 and not sources.find_unsupported(text, line, ())


def lifts_wish(line: NewLine, item: KnownItem) -> bool:
    """Return whether a line tells the assistant that a wish on its answers ends, in whatever words.

    "You can drop the bullets thing" has no word of the wish "Keep it short".
    """
    own = split_own_words(line.text).own
    return item.kind == "wish" and bool(_SECOND_PERSON.search(own)) and _says_end(own, detect_language(own))


def asks_to_forget(text: str) -> bool:
    """Return whether a person asks that something is not kept.

    >>> [asks_to_forget(text) for text in ("Kim owes me 30, forget it after.", "Don't forget that Kim owes me 30.")]
    [True, False]
    """
    return bool(_compile_cues("forget").search(text.replace("’", "'")))


def _says_end(text: str, code: str) -> bool:
    return (
        has_ended(text, code)
        or is_negated(text, code)
        or asks_to_forget(text)
        or bool(_compile_cues("end").search(text))
    )


@cache
def _compile_cues(table: str) -> re.Pattern[str]:
    text = files("newton.heart.reconciliation").joinpath("end_cues.yaml").read_text(encoding="utf-8")
    return re.compile(
        "|".join(one for phrases in yaml.safe_load(text)[table].values() for one in phrases), re.IGNORECASE
    )
