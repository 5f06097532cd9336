"""Types and constants that all kinds of memory share: kinds, states, trust, quarantine and importance.

Interfaces show an importance from 0 to 10; it is stored from 0 to 1.
"""

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, get_args
from uuid import UUID

from newton.errors import InputError
from newton.ids import new_id
from newton.text.time_expressions import TimeRange

MAX_IMPORTANCE = 10

_BASE = 0.1  # 1.0 on the scale of 10
_KIND_BONUS: Mapping[str, float] = {"decision": 0.2, "episode": 0.1}
_STATE_BONUS: Mapping[str, float] = {"CONFIRMED": 0.1, "CORE": 0.4, "EFFECTIVE": 0.2, "ESCALATED": 0.3}
_OUTCOME_BONUS: Mapping[str, float] = {"failure": 0.2, "success": 0.1, "partial": 0.1}
_USE_BONUS = 0.1  # for ten uses, twice that for a hundred
_MAX_USE_BONUS = 0.2


def normalize_importance(importance: float | None) -> float | None:
    """Convert an importance from 0..10 to 0..1; None stays None. Raises InputError if it is out of range."""
    if importance is None:
        return None
    if not 0 <= importance <= MAX_IMPORTANCE:
        hint = f"Give an importance from 0 to {MAX_IMPORTANCE}."
        raise InputError(f"The importance {importance:g} is out of range.", hint=hint)
    return importance / MAX_IMPORTANCE


def derive_importance(kind: str, state: str, outcome: str | None, uses: int) -> float:
    """Return the importance, in [0, 1], that follows from kind, state, outcome and number of uses.

    >>> [round(derive_importance("fact", state, None, n), 2) for state, n in (("NEW", 0), ("CORE", 0), ("CORE", 9))]
    [0.1, 0.5, 0.6]
    """
    bonus = _KIND_BONUS.get(kind, 0.0) + _STATE_BONUS.get(state, 0.0) + _OUTCOME_BONUS.get(outcome or "", 0.0)
    return min(_BASE + bonus + min(_USE_BONUS * math.log10(1 + uses), _MAX_USE_BONUS), 1.0)


Kind = Literal[
    "exchange",
    "episode",
    "fact",
    "procedure",
    "censor",
    "event",
    "entity",
    "relation",
    "passage",
    "decision",
    "artifact",
    "item",
]
Trust = Literal["operator", "user", "agent", "tool", "web"]
TokenCounter = Callable[[str], int]
StandingType = Literal["manner", "instruction", "preference"]  # a manner is on the form of every answer

Outcome = Literal["success", "partial", "failure", "pending"]

KINDS: tuple[Kind, ...] = get_args(Kind)

# Artifacts are found only in their own session.
RECALLABLE_KINDS: tuple[Kind, ...] = tuple(kind for kind in KINDS if kind != "artifact")

# From the most trusted to the least trusted.
TRUST_TIERS: tuple[Trust, ...] = ("operator", "user", "agent", "tool", "web")
PERSON_TIERS: frozenset[Trust] = frozenset({"operator", "user"})

# Memories in these states are stored and searchable, but not current knowledge.
PAST_STATES: Mapping[str, str] = {"SUPERSEDED": "superseded", "INACTIVE": "proven wrong", "RETIRED": "retired"}

# Beyond the cap of its kind: stored but not searched. An archived episode stays searchable without its details.
ARCHIVED = "ARCHIVED"


def past_reason(kind: Kind, state: str) -> str | None:
    """Return why a memory in this state is not current knowledge, such as "superseded"; None if it is current."""
    if state == ARCHIVED and kind != "episode":
        return "archived: there are too many of its kind"
    return PAST_STATES.get(state)


def lowest_trust(tiers: Iterable[Trust]) -> Trust:
    """Return the lowest of these trust levels: the trust of a memory derived from sources with these levels.

    >>> lowest_trust(["user", "tool", "agent"])
    'tool'
    """
    return max(tiers, key=TRUST_TIERS.index)


def lowest_known_trust(tiers: Iterable[Trust | None]) -> Trust | None:
    """Return the lowest of these trust levels, ignoring None; return None if all of them are None."""
    known: list[Trust] = [tier for tier in tiers if tier]
    return lowest_trust(known) if known else None


def own_ref(ref: str, trust: Trust) -> str:
    """Return a caller's id (ref) as it is stored: the ids of a model are apart, so that it takes none of a person.

    >>> own_ref("m1", "user"), own_ref("m1", "agent"), own_ref("model m1", "user")
    ('m1', 'model m1', 'person model m1')
    """
    if trust not in PERSON_TIERS:
        return f"model {ref}"
    return f"person {ref}" if ref.startswith(("model ", "person ")) else ref


def digest(*parts: str) -> bytes:
    """Return the SHA-256 hash of the parts and their lengths, so that ("ab", "c") and ("a", "bc") differ."""
    return hashlib.sha256("".join(f"{len(part)}:{part}" for part in parts).encode()).digest()


@dataclass(frozen=True, slots=True)
class ShortForms:
    """The two short forms of a memory, each one line, with the tokens that each costs in a context.

    `micro` has about 20 tokens, `summary` at most about 100.
    """

    micro: str
    summary: str
    micro_tokens: int
    summary_tokens: int


@dataclass(frozen=True, slots=True)
class TextWindow:
    """Consecutive sentences of a long text as one line, with an ellipsis for each end that is cut.

    `tokens` counts the line as a context shows it, with the prefix of the memory.
    """

    text: str
    tokens: int


@dataclass(frozen=True, slots=True)
class LongForms:
    """The forms of a text that is longer than a summary: all its windows in order, and the size of the whole text.

    In a context, each begins with the first `prefix_length` characters of the summary. `full_tokens` counts the whole
    text as one line.
    """

    prefix_length: int
    full_tokens: int
    windows: tuple[TextWindow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMemory:
    """A memory to store.

    `indexed_text` is searched by words, `embedding_text` by meaning. `importance` is in [0, 1] if a person set it,
    otherwise None. A memory with `needs_approval` is quarantined (left out of searches) whatever its trust.
    `mentioned_times` are times in its text other than `occurred_at`. `standing` marks an instruction or a preference
    for later requests. `long_forms` is None for a text that is no longer than a summary. `ctx` has the time of storage,
    the origin and the trust.
    """

    ctx: "WriteContext"
    memory_id: UUID = field(default_factory=new_id)
    kind: Kind
    state: str = "ACTIVE"
    forms: ShortForms
    full_text: str | None
    indexed_text: str
    embedding_text: str | None
    occurred_at: datetime
    content_hash: bytes
    ref: str | None = None
    confidence: float | None = None
    importance: float | None = None
    outcome: Outcome | None = None
    thread_id: UUID | None = None
    position: int | None = None
    sources: tuple[UUID, ...] = ()
    needs_approval: bool = False
    mentioned_times: tuple[TimeRange, ...] = ()
    standing: StandingType | None = None
    long_forms: LongForms | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteContext:
    """The provenance of a write: agent, time, origin (interface) and trust. Code sets it, never a model.

    `count_tokens` measures the short forms of what is written.
    """

    agent_id: UUID
    now: datetime
    origin: str
    trust: Trust
    count_tokens: TokenCounter


# Memories of these tiers are quarantined.
UNTRUSTED_TIERS: frozenset[Trust] = frozenset({"tool", "web"})

MIN_INDEPENDENT_ORIGINS = 2  # other outside origins that release a quarantined fact


def is_quarantined(trust: Trust, *, needs_approval: bool) -> bool:
    """Return whether a new memory of this trust is quarantined: left out of searches until it is confirmed. Pure."""
    return needs_approval or trust in UNTRUSTED_TIERS


def is_confirmed(*, by_person: bool, other_origins: int) -> bool:
    """Return whether a quarantined fact is confirmed: by a person, or by MIN_INDEPENDENT_ORIGINS other origins. Pure.

    `other_origins` counts the tools and web sources that state the fact besides the first one.
    """
    return by_person or other_origins >= MIN_INDEPENDENT_ORIGINS
