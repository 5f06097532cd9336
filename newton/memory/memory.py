"""What every memory is, whatever its kind."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args
from uuid import UUID

from newton.memory.time_expressions import TimeRange

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
]
Trust = Literal["operator", "user", "agent", "tool", "web"]
TokenCounter = Callable[[str], int]
Outcome = Literal["success", "partial", "failure", "pending"]

KINDS: tuple[Kind, ...] = get_args(Kind)

# What may be found wherever it is looked for. An artifact is found in its own session alone.
RECALLABLE_KINDS: tuple[Kind, ...] = tuple(kind for kind in KINDS if kind != "artifact")

# From the most trusted to the least.
TRUST_TIERS: tuple[Trust, ...] = ("operator", "user", "agent", "tool", "web")

# What such a source says is quarantined: kept, but only found by those who ask for it, until it is corroborated.
UNTRUSTED_TIERS: frozenset[Trust] = frozenset({"tool", "web"})

# What is in one of these states is kept and may be searched, but is not held to be so any more.
PAST_STATES: Mapping[str, str] = {"SUPERSEDED": "superseded", "INACTIVE": "proven wrong", "RETIRED": "retired"}


# What there are too many of: kept, and not searched. An archived episode has only lost its details.
ARCHIVED = "ARCHIVED"


def past_reason(kind: Kind, state: str) -> str | None:
    """Why a memory in that state is not to be shown as current knowledge; None when it is."""
    if state == ARCHIVED and kind != "episode":
        return "archived: there are too many of its kind"
    return PAST_STATES.get(state)


def lowest_trust(tiers: Iterable[Trust]) -> Trust:
    """The trust of what is derived from several sources: that of the least trusted.

    >>> lowest_trust(["user", "tool", "agent"])
    'tool'
    """
    return max(tiers, key=TRUST_TIERS.index)


def lowest_known_trust(tiers: Iterable[Trust | None]) -> Trust | None:
    """The same of those that are known; None when none is."""
    known: list[Trust] = [tier for tier in tiers if tier]
    return lowest_trust(known) if known else None


def digest(*parts: str) -> bytes:
    """SHA-256 of the parts, each with its length, so that ("ab", "c") is not ("a", "bc")."""
    return hashlib.sha256("".join(f"{len(part)}:{part}" for part in parts).encode()).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortForms:
    """The two short forms of a memory, each one line, with the tokens it costs once rendered."""

    micro: str
    summary: str
    micro_tokens: int
    summary_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMemory:
    """A memory about to be written. `indexed` is searched by its words; the vector of `cue`, if any, stands for it.

    `importance` is in [0, 1] where a person gave it; else it follows from the memory's record.

    One that is `held` is quarantined whoever said it, until a person approves of it. `times` are those other than its
    own that it speaks of.
    """

    memory_id: UUID
    kind: Kind
    state: str
    forms: ShortForms
    full_text: str | None
    indexed_text: str
    embedding_text: str | None
    occurred_at: datetime
    created_at: datetime
    origin: str
    trust: Trust
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


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteContext:
    """Who writes, when, and how tokens are counted: set by code at the interface that was called, never by a model."""

    agent_id: UUID
    now: datetime
    origin: str
    trust: Trust
    count_tokens: TokenCounter
