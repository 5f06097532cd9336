"""Splitting of a statement into clauses, each of which says something by itself. Pure."""

import re

from newton.heart.statements.parser import parse_statement

_BOUNDARY = re.compile(
    r"(?<!\bMr)(?<!\bMs)(?<!\bDr)(?<!\bSt)(?<!\bMrs)(?<!\bProf)[.!?]\s+|\s*;\s*|\s+[–—]\s+"
    r"|,?\s+(?:and|but|so|while)\s+|,\s+",
    re.IGNORECASE,
)


def split_clauses(text: str) -> list[str]:
    """Return the clauses of a text. A part without a verb is joined to the clause before or after it.

    >>> split_clauses("The plumber is Mr. Tanner, he charges 60 an hour.")
    ['The plumber is Mr. Tanner', 'he charges 60 an hour.']
    >>> split_clauses("In May, Ana got a dog and a cat.")
    ['In May, Ana got a dog and a cat.']
    """
    clauses, start, end = list[str](), 0, 0
    for boundary in [*_BOUNDARY.finditer(text), None]:
        part_end = boundary.start() if boundary else len(text)
        if _has_verb(text[start:end]) and _has_verb(text[end:part_end]):
            clauses.append(text[start:end])
            start = end
        end = boundary.end() if boundary else end
    return [clause.rstrip(" ,;–—") for clause in (*clauses, text[start:])]


def _has_verb(text: str) -> bool:
    return any(item.finite or item.is_plain_verb for item in parse_statement(text).items)
