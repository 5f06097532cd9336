"""Every change of state that there is. The database's constraint, the rules and docs/lifecycle.md agree with it."""

from collections.abc import Iterable
from typing import NamedTuple

from newton.memory.memory import Kind


class Change(NamedTuple):
    """From `before`, `event` may lead to `after`."""

    kind: Kind
    before: str
    event: str
    after: str


def _changes(kind: Kind, befores: str, event: str, afters: str) -> Iterable[Change]:
    return [Change(kind, before, event, after) for before in befores.split() for after in afters.split()]


CAPPED: tuple[Kind, ...] = ("event", "entity", "relation", "passage")

CHANGES: frozenset[Change] = frozenset(
    change
    for changes in (
        _changes("fact", "NEW", "confirmed", "CONFIRMED"),
        _changes("fact", "NEW CONFIRMED", "established", "CORE"),
        _changes("fact", "NEW CONFIRMED CORE", "superseded", "SUPERSEDED"),
        _changes("fact", "NEW CONFIRMED CORE", "expired", "SUPERSEDED"),
        _changes("fact", "NEW CONFIRMED CORE", "merged", "SUPERSEDED"),
        _changes("fact", "NEW CONFIRMED CORE", "generalised", "SUPERSEDED"),
        _changes("fact", "NEW CONFIRMED CORE SUPERSEDED", "disproved", "INACTIVE"),
        _changes("fact", "SUPERSEDED", "restored", "NEW CONFIRMED CORE"),
        _changes("fact", "NEW CONFIRMED SUPERSEDED", "released", "CONFIRMED CORE SUPERSEDED"),
        _changes("fact", "CORE", "released", "CORE SUPERSEDED"),
        _changes("episode", "ACTIVE", "summarized", "SUMMARIZED"),
        _changes("episode", "ACTIVE SUMMARIZED", "archived", "ARCHIVED"),
        _changes("procedure", "ACTIVE INEFFECTIVE", "proved", "EFFECTIVE"),
        _changes("procedure", "ACTIVE EFFECTIVE", "failed", "INEFFECTIVE"),
        _changes("procedure", "EFFECTIVE INEFFECTIVE", "reopened", "ACTIVE"),
        _changes("procedure", "ACTIVE EFFECTIVE INEFFECTIVE", "retired", "RETIRED"),
        _changes("procedure", "RETIRED", "restored", "ACTIVE EFFECTIVE INEFFECTIVE"),
        _changes("censor", "CREATED", "released", "CREATED"),
        _changes("censor", "CREATED", "triggered", "ACTIVE"),
        _changes("censor", "CREATED ACTIVE", "escalated", "ESCALATED"),
        _changes("censor", "CREATED ACTIVE ESCALATED", "retired", "RETIRED"),
        _changes("passage", "ACTIVE", "replaced", "SUPERSEDED"),
        _changes("passage", "SUPERSEDED", "restored", "ACTIVE"),
        _changes("passage", "ACTIVE", "released", "ACTIVE"),
        _changes("artifact", "ACTIVE", "replaced", "SUPERSEDED"),
        _changes("decision", "RECORDED", "done", "PENDING"),
        _changes("decision", "RECORDED PENDING", "reviewed", "REVIEWED"),
        _changes("procedure", "ACTIVE EFFECTIVE INEFFECTIVE", "archived", "ARCHIVED"),
        _changes("procedure", "ARCHIVED", "retired", "RETIRED"),
        *(_changes(kind, "ACTIVE", "archived", "ARCHIVED") for kind in CAPPED),
        *(_changes(kind, "ARCHIVED", "restored", "ACTIVE") for kind in (*CAPPED, "procedure")),
        _changes("passage", "ARCHIVED", "replaced", "SUPERSEDED"),
        _changes("passage", "ARCHIVED", "released", "ARCHIVED"),
    )
    for change in changes
)
