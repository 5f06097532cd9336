"""Changes of a part of a statement: its parts, each read with its subject, and which of them stay true. Pure."""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from newton.heart.statements.change_detection import DOUBT, ChangeKind, concerns_clause
from newton.heart.statements.change_features import outline
from newton.heart.statements.clauses import begins_with_verb, find_subject, refers_to_other, split_clauses
from newton.heart.statements.slots import explain_slot_change
from newton.text.languages import ENGLISH, detect_language

# Scores of the part of a statement that surely changes, and of the likeliest one if none does. Others change with the
# likeliest one up to this below it.
PART_MIN, PART_DOUBT, PART_GAP = 0.9, -0.5, 0.7
_JOINED = re.compile(r",? (?:and|but|so|while)$", re.IGNORECASE)
_PRONOUN = re.compile(r"(?:he|she|they|(?P<it>it))\b", re.IGNORECASE)
_SPEAKER = re.compile(r"\b(?:i|we)\b", re.IGNORECASE)
_NAME = re.compile(r"(?<!^)\b[A-Z]\w+|^(?!(?:My|Our|The|You|He|She|It|They)\b)[A-Z]\w+")


class StatementPart(NamedTuple):
    """A clause of a statement as it is said, and as the reader reads it, with its subject.

    One that `depends` is not understood, or not true, without the one before it.
    """

    said: str
    text: str
    depends: bool = False


def judge_parts(older: str, newer: str, readings: Mapping[tuple[str, str], float]) -> tuple[ChangeKind, list[str]]:
    """Return whether a newer statement changes a part of an older one, and what the older one says besides.

    `readings` are the scores of the reader by pair of a part (`split_parts`) and the newer statement.
    """
    parts, code = split_parts(older), detect_language(newer)
    scores = [readings.get((part.text, newer), math.nan) for part in parts]
    named = {n for n, one in enumerate(parts) if scores[n] > DOUBT and explain_slot_change(one.text, newer, code)}
    highest = max(scores)
    touched = {n for n, one in enumerate(parts) if concerns_clause(newer, outline(one.text))}
    if not named and not highest >= PART_MIN:
        return "compatible" if highest < PART_DOUBT and not touched else "unsure", []
    surest = {n for n, score in enumerate(scores) if score >= max(PART_MIN, highest - PART_GAP)}
    likely = named or {n for n in touched if scores[n] >= PART_MIN} or surest
    return "update", join_rest(parts, likely | {n for n in touched if scores[n] >= 0})


def split_parts(text: str) -> list[StatementPart]:
    """Return the parts of a statement.

    >>> [one.text for one in split_parts("My son Ben is a cook in Oslo, he comes home for Easter and hates fish.")]
    ['My son Ben is a cook in Oslo', 'My son Ben comes home for Easter', 'My son Ben hates fish.']
    """
    parts, subject = list[StatementPart](), ""
    for clause in split_clauses(text) if detect_language(text) == ENGLISH else [text]:
        own = _JOINED.sub("", clause).rstrip(" ,;")
        pronoun, is_of_speaker = _PRONOUN.match(own), bool(_SPEAKER.match(subject))
        shared = " " + own if begins_with_verb(own) else own[pronoun.end() :] if pronoun and not is_of_speaker else ""
        if subject and shared:
            is_named = is_of_speaker or bool(_NAME.search(subject))
            # "he charges 60", of the plumber Mr. Tanner, is not true of the next plumber
            depends = not is_named or bool(pronoun and pronoun["it"])
            parts.append(StatementPart(own if depends and pronoun else subject + shared, subject + shared, depends))
            continue
        found = find_subject(own)
        is_alone = found or _SPEAKER.search(own)
        parts.append(StatementPart(own, own, bool(parts) and (refers_to_other(own) or not is_alone)))
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
            sentence = f"{part.said[:1].upper()}{part.said[1:].rstrip(' .,;')}."
            kept = [*kept[:-1], f"{kept[-1]} {sentence}"] if part.depends and kept else [*kept, sentence]
    return kept
