"""Changes of a part of a statement: its parts, each read with its subject, and which of them stay true. Pure."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from newton.heart.statements.change_detection import DOUBT, concerns_clause
from newton.heart.statements.change_features import outline
from newton.heart.statements.clauses import begins_with_verb, find_subject, refers_to_other, split_clauses
from newton.heart.statements.slots import explain_slot_change
from newton.text.languages import ENGLISH, detect_language

PART_MIN, PART_GAP = 2.5, 0.7  # score of the part of a statement that surely changes, and of others that do below it
_JOINED = re.compile(r",? (?:and|but|so|while)$", re.IGNORECASE)
_PERSON = re.compile(r"(?:he|she|they)\b", re.IGNORECASE)
_SPEAKER = re.compile(r"\b(?:i|we)\b", re.IGNORECASE)
_NAME = re.compile(r"(?<!^)\b[A-Z]\w+|^(?!(?:My|Our|The|You|He|She|It|They)\b)[A-Z]\w+")


class StatementPart(NamedTuple):
    """A clause of a statement with its subject. One that `depends` is not understood or true without the one before."""

    text: str
    depends: bool = False


def find_rest(older: str, newer: str, readings: Mapping[tuple[str, str], float]) -> list[str] | None:
    """Return what an older statement says besides what a newer one changes, as sentences; None if no part is clear.

    `readings` are the scores of the reader by pair of a part (`split_parts`) and the newer statement.
    """
    parts, code = split_parts(older), detect_language(newer)
    scores = [readings.get((part.text, newer), DOUBT) for part in parts]
    named = {n for n, one in enumerate(parts) if scores[n] > DOUBT and explain_slot_change(one.text, newer, code)}
    highest = max(scores)
    if not named and highest < PART_MIN:
        return None
    near = {n for n, score in enumerate(scores) if score >= max(PART_MIN, highest - PART_GAP)}
    touched = {n for n, one in enumerate(parts) if scores[n] >= 0 and concerns_clause(newer, outline(one.text))}
    return join_rest(parts, named | near | touched)


def split_parts(text: str) -> list[StatementPart]:
    """Return the parts of a statement.

    >>> [one.text for one in split_parts("My son Ben is a cook in Oslo, he comes home for Easter and hates fish.")]
    ['My son Ben is a cook in Oslo', 'My son Ben comes home for Easter', 'My son Ben hates fish.']
    """
    parts, subject = list[StatementPart](), ""
    for clause in split_clauses(text) if detect_language(text) == ENGLISH else [text]:
        own = _JOINED.sub("", clause).rstrip(" ,;")
        person, is_of_speaker = _PERSON.match(own), bool(_SPEAKER.match(subject))
        shared = " " + own if begins_with_verb(own) else own[person.end() :] if person and not is_of_speaker else ""
        if subject and shared:
            # "he charges 60", of the plumber Mr. Tanner, is not true of the next plumber
            parts.append(StatementPart(subject + shared, not is_of_speaker and not _NAME.search(subject)))
            continue
        found = find_subject(own)
        is_alone = found or _SPEAKER.search(own)
        parts.append(StatementPart(own, bool(parts) and (refers_to_other(own) or not is_alone)))
        subject = found or subject
    return parts


def join_rest(parts: Sequence[StatementPart], gone: Collection[int]) -> list[str]:
    """Return the parts without those at the positions `gone`, and without what depends on these, as sentences.

    >>> join_rest(split_parts("The plumber is Mr. Tanner, he charges 60."), {0})
    []
    """
    kept, is_kept = list[str](), False
    for n, part in enumerate(parts):
        is_kept = n not in gone and (is_kept or not part.depends)
        if is_kept:
            sentence = f"{part.text[:1].upper()}{part.text[1:].rstrip(' .,;')}."
            kept = [*kept[:-1], f"{kept[-1]} {sentence}"] if part.depends and kept else [*kept, sentence]
    return kept
