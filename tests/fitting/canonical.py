"""Pairs of plain sentences made from templates: what people try first. Drawn with a fixed seed."""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml


class EntityRelation(NamedTuple):
    """A relation with one value at a time: {s} is its subject, {o} the older value and {n} the newer one."""

    statement: str
    subjects: Sequence[str]
    values: Sequence[str]
    announced: Sequence[str]


TEMPLATES: dict[str, Any] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
LISTS: dict[str, list[str]] = TEMPLATES["lists"]


def find_values(named: str | list[str]) -> list[str]:
    """Return the list of that name, or the list that is given in its place."""
    return LISTS[named] if isinstance(named, str) else named


SINGLE_VALUED = [
    EntityRelation(one["statement"], find_values(one["subjects"]), find_values(one["values"]), one["announced"])
    for one in TEMPLATES["single_valued"]
]


def draw_pairs(seed: int = 7) -> Iterator[dict[str, str]]:
    """Yield pairs as those of the data files, about as many updates as compatible ones."""
    draw = random.Random(seed)
    for relation in SINGLE_VALUED:
        yield from _draw_updates(draw, relation)
        yield from _draw_other_subjects(draw, relation)
    for older, newer in TEMPLATES["states_of_a_person"]:
        for name in draw.sample(LISTS["people"], 3):
            yield _pair("announced", older.format(s=name), newer.format(s=name))
            other = draw.choice([one for one in LISTS["people"] if one != name])
            yield _pair("compatible", older.format(s=name), newer.format(s=other))
    for older, newer, named in TEMPLATES["both_true"]:
        for _ in range(8):
            (one, other), name = draw.sample(find_values(named), 2), draw.choice(LISTS["people"])
            yield _pair("compatible", older.format(s=name, a=one), newer.format(s=name, b=other))


def _draw_updates(draw: random.Random, relation: EntityRelation) -> Iterator[dict[str, str]]:
    for announced in relation.announced:
        for _ in range(3):
            subject, (older, newer) = draw.choice(relation.subjects), draw.sample(relation.values, 2)
            yield _pair("announced", *_fill(relation.statement, announced, subject, older, newer))
    for _ in range(6):
        subject, (older, newer) = draw.choice(relation.subjects), draw.sample(relation.values, 2)
        yield _pair("plain_same", *_fill(relation.statement, relation.statement, subject, older, newer))


def _draw_other_subjects(draw: random.Random, relation: EntityRelation) -> Iterator[dict[str, str]]:
    """Yield a statement about one subject, and an announced change of another."""
    for announced in relation.announced:
        (first, second), (older, newer) = draw.sample(relation.subjects, 2), draw.sample(relation.values, 2)
        if "{s}" in announced and relation.statement.startswith("{s}"):
            changed = announced.format(s=second, o=draw.choice(relation.values), n=newer)
            yield _pair("compatible", relation.statement.format(s=first, n=older), changed)


def _fill(statement: str, announced: str, subject: str, older: str, newer: str) -> tuple[str, str]:
    text = announced.format(s=subject, o=older, n=newer)
    return _capitalize(statement.format(s=subject, n=older)), _capitalize(text)


def _capitalize(text: str) -> str:
    return text[0].upper() + text[1:]


def _pair(group: str, older: str, newer: str) -> dict[str, str]:
    expect = "compatible" if group == "compatible" else "update"
    return {"older": older, "newer": newer, "group": group, "expect": expect}
