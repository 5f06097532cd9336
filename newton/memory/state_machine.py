"""All allowed state transitions. A constraint of the database and docs/lifecycle.md must agree with this table."""

from collections.abc import Iterable
from itertools import product, starmap
from typing import NamedTuple

from newton.memory.memory import Kind


class AllowedTransition(NamedTuple):
    """`event` may change a memory of `kind` from `from_state` to `to_state`."""

    kind: Kind
    from_state: str
    event: str
    to_state: str


def _expand(kind: Kind, from_states: str, events: str, to_states: str) -> Iterable[AllowedTransition]:
    """Return every combination of these states and events."""
    return starmap(AllowedTransition, product([kind], from_states.split(), events.split(), to_states.split()))


CAPPED_KINDS: tuple[Kind, ...] = ("event", "entity", "relation", "passage")

ALLOWED_TRANSITIONS: frozenset[AllowedTransition] = frozenset(
    transition
    for transitions in (
        _expand("fact", "NEW", "confirmed", "CONFIRMED"),
        _expand("fact", "NEW CONFIRMED", "established", "CORE"),
        _expand("fact", "NEW CONFIRMED CORE", "superseded expired merged generalised", "SUPERSEDED"),
        _expand("fact", "NEW CONFIRMED CORE SUPERSEDED", "disproved", "INACTIVE"),
        _expand("fact", "SUPERSEDED", "restored", "NEW CONFIRMED CORE"),
        _expand("fact", "NEW CONFIRMED SUPERSEDED", "released", "CONFIRMED CORE SUPERSEDED"),
        _expand("fact", "CORE", "released", "CORE SUPERSEDED"),
        _expand("episode", "ACTIVE", "summarized", "SUMMARIZED"),
        _expand("episode", "ACTIVE SUMMARIZED", "archived", "ARCHIVED"),
        _expand("procedure", "ACTIVE INEFFECTIVE", "proved", "EFFECTIVE"),
        _expand("procedure", "ACTIVE EFFECTIVE", "failed", "INEFFECTIVE"),
        _expand("procedure", "EFFECTIVE INEFFECTIVE", "reopened", "ACTIVE"),
        _expand("procedure", "ACTIVE EFFECTIVE INEFFECTIVE", "retired", "RETIRED"),
        _expand("procedure", "RETIRED", "restored", "ACTIVE EFFECTIVE INEFFECTIVE"),
        _expand("censor", "CREATED", "released", "CREATED"),
        _expand("censor", "CREATED", "triggered", "ACTIVE"),
        _expand("censor", "CREATED ACTIVE", "escalated", "ESCALATED"),
        _expand("censor", "CREATED ACTIVE ESCALATED", "retired", "RETIRED"),
        _expand("passage", "ACTIVE", "replaced", "SUPERSEDED"),
        _expand("passage", "SUPERSEDED", "restored", "ACTIVE"),
        _expand("passage", "ACTIVE", "released", "ACTIVE"),
        _expand("artifact", "ACTIVE", "replaced", "SUPERSEDED"),
        _expand("decision", "RECORDED", "done", "PENDING"),
        _expand("decision", "RECORDED PENDING", "reviewed", "REVIEWED"),
        _expand("procedure", "ACTIVE EFFECTIVE INEFFECTIVE", "archived", "ARCHIVED"),
        _expand("procedure", "ARCHIVED", "retired", "RETIRED"),
        *(_expand(kind, "ACTIVE", "archived", "ARCHIVED") for kind in CAPPED_KINDS),
        *(_expand(kind, "ARCHIVED", "restored", "ACTIVE") for kind in (*CAPPED_KINDS, "procedure")),
        _expand("passage", "ARCHIVED", "replaced", "SUPERSEDED"),
        _expand("passage", "ARCHIVED", "released", "ARCHIVED"),
    )
    for transition in transitions
)
