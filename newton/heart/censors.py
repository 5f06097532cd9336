"""Censors: what must not be done. They are checked in code; no memory and no model can lift one."""

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal
from uuid import UUID

import re2

from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import InputError
from newton.heart.lifecycle.engine import Ground, review
from newton.ids import new_id
from newton.memory import store
from newton.memory.memory import Draft, Trust, digest
from newton.memory.representations import forms, one_line
from newton.memory.transitions import Step, move

if TYPE_CHECKING:
    from newton.providers.embedding import Vector

SQL = load("newton.heart", "censors.sql")

Sense = Literal["phrase", "pattern", "meaning"]
Action = Literal["warn", "block"]
Place = Literal["input", "action", "output"]

THRESHOLD = 3
ALIKE = 0.6  # cosine from which on a text has the meaning of a trigger
MOST_TRIGGER = 500
PATTERN_MEMORY = 8 << 20
WARN, BLOCK = "**WARN:**", "**BLOCK:**"  # of the same number of tokens, so that a stricter censor costs no more

# Who may put a censor in force. Anybody else's is kept in quarantine until a person confirms it.
AUTHORS: frozenset[Trust] = frozenset({"operator", "user"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What must not be done, how it is recognised, and why.

    A phrase is met as whole words in any case, a pattern is a regular expression, a meaning is met by likeness.
    """

    trigger: str
    reason: str
    sense: Sense = "phrase"
    action: Action = "warn"
    domain: str | None = None
    threshold: int = THRESHOLD
    ref: str | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.threshold <= 1_000:
            raise InputError(f"A threshold of {self.threshold} is not possible.", hint="Give 1 to 1,000.")
        if len(self.trigger) > MOST_TRIGGER:
            raise InputError(f"The trigger has {len(self.trigger)} characters.", hint=f"{MOST_TRIGGER} is the most.")
        if self.sense == "phrase" and not _words(self.trigger).strip():
            raise InputError("The trigger has no words.", hint="Use a pattern for what is not words.")
        if self.sense == "pattern" and compiled(self.trigger).search("") is not None:
            raise InputError("The pattern matches the empty text.", hint="It would match everything: make it narrower.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Censor:
    """A rule in force."""

    memory_id: UUID
    state: str
    summary: str
    summary_tokens: int
    sense: Sense
    trigger: str
    action: Action
    reason: str
    domain: str | None
    embedding: "Vector | None"

    @property
    def blocks(self) -> bool:
        return self.action == "block" or self.state == "ESCALATED"

    @property
    def line(self) -> str:
        """As a context shows it: as a warning or, by its action or its state, as a block; with trigger and reason."""
        return self.summary.replace(WARN, BLOCK, 1) if self.blocks else self.summary

    def met_by(self, text: str, vector: "Vector | None") -> bool:
        """Whether the text is what it warns of."""
        match self.sense:
            case "phrase":
                return _words(self.trigger) in _words(text)
            case "pattern":
                return compiled(self.trigger).search(text) is not None
            case "meaning":
                if vector is None or self.embedding is None:
                    return False
                return float(self.embedding @ vector) >= ALIKE


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A censor as a list shows it, with its record. A quarantined one is proposed and waits for a person."""

    memory_id: UUID
    state: str
    quarantined: bool
    sense: Sense
    trigger: str
    action: Action
    reason: str
    domain: str | None
    threshold: int
    activations: int
    false_positives: int


@functools.lru_cache(maxsize=1_000)
def compiled(pattern: str) -> "re2.Pattern":
    """Of an engine that takes linear time, whatever the pattern and the text.

    Raises InputError for a pattern that it does not know.
    """
    options = re2.Options()
    options.case_sensitive, options.max_mem, options.log_errors = False, PATTERN_MEMORY, False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        raise InputError(
            f"{pattern!r} is no pattern: {_said(error)}.",
            hint="Look-around and back-references are not known: they could take for ever. See RE2's syntax.",
        ) from None


def met(censors: Sequence[Censor], text: str, vector: "Vector | None") -> list[Censor]:
    """Those that the text meets, the strictest first as they come. Pure."""
    return [censor for censor in censors if censor.met_by(text, vector)]


async def forbid(tx: Tx, rules: Sequence[Rule], *, ctx: Ground) -> list[UUID]:
    """Puts rules in force and returns the ids of those that this changed: the new ones, and of the known ones
    those that a person puts in force after all, or makes a block. Nothing grows milder, and what was retired stays so.

    Raises ConflictError when a known ref comes with another trigger.
    """
    drafts = [_draft(rule, ctx) for rule in rules]
    refs = [(draft.ref, draft.content_hash) for draft in drafts if draft.ref]
    await store.told_before(tx, refs, agent_id=ctx.agent_id, kind="censor")
    written = await store.remember(tx, agent_id=ctx.agent_id, drafts=drafts)
    rows = [_row(rule, draft) for rule, draft in zip(rules, drafts, strict=True) if draft.memory_id in written]
    await SQL["insert_censors"].run(tx, agent_id=ctx.agent_id, censors=json.dumps(rows))
    again = [(r, draft.content_hash) for r, draft in zip(rules, drafts, strict=True) if draft.memory_id not in written]
    insisted = await _insist(tx, dict(again), ctx=ctx) if ctx.trust in AUTHORS else set[UUID]()
    return [*(draft.memory_id for draft in drafts if draft.memory_id in written), *sorted(insisted)]


async def _insist(tx: Tx, known: Mapping[Rule, bytes], *, ctx: Ground) -> set[UUID]:
    """A person forbids what is known: what was only proposed is in force from now on, and a block blocks."""
    strict = {content_hash for rule, content_hash in known.items() if rule.action == "block"}
    rows = await SQL["find_by_hash"].all(tx, agent_id=ctx.agent_id, hashes=list(known.values()))
    released = [_approval(row["memory_id"]) for row in rows if row["quarantined"]]
    moved = await move(tx, released, ctx=ctx)
    stricter = [
        Step(
            memory_id=row["memory_id"],
            event="escalated",
            before=row["state"],
            after="ESCALATED",
            because="a person made it a block",
        )
        for row in rows
        if row["content_hash"] in strict and row["state"] in ("CREATED", "ACTIVE") and row["action"] != "block"
    ]
    return moved | await move(tx, stricter, ctx=ctx)


async def retired(tx: Tx, rule: Rule, *, agent_id: UUID) -> bool:
    """Whether such a rule was there and is out of force for good."""
    rows = await SQL["find_by_hash"].all(tx, agent_id=agent_id, hashes=[_hash(rule)])
    return any(row["state"] == "RETIRED" for row in rows)


async def in_force(tx: Tx, *, agent_id: UUID, model_id: UUID | None) -> list[Censor]:
    """Every censor in force, those that block first."""
    rows = await SQL["list_active"].all(tx, agent_id=agent_id, model_id=model_id)
    return [Censor(**{**row, "embedding": row["embedding"] and row["embedding"].to_numpy()}) for row in rows]


async def in_force_at(tx: Tx, *, agent_id: UUID, moment: datetime) -> list[Censor]:
    """Every censor that was in force at a moment, as `in_force` gave them then."""
    return [Censor(**row) for row in await SQL["list_active_at"].all(tx, agent_id=agent_id, moment=moment)]


async def listed(tx: Tx, *, agent_id: UUID) -> list[Listed]:
    """Every censor with its record, those out of force last."""
    return [Listed(**row) for row in await SQL["list_censors"].all(tx, agent_id=agent_id)]


async def approve(tx: Tx, memory_id: UUID, *, ctx: Ground) -> bool:
    """A person puts a proposed censor in force. False when it was not waiting for that."""
    return bool(await move(tx, [_approval(memory_id)], ctx=ctx))


def _approval(memory_id: UUID) -> Step:
    return Step(
        memory_id=memory_id,
        event="released",
        before="CREATED",
        after="CREATED",
        because="a person approved of it",
        releases=True,
    )


async def retire(tx: Tx, memory_id: UUID, *, ctx: Ground) -> None:
    """A person takes it out of force."""
    await SQL["retire_censor"].run(tx, agent_id=ctx.agent_id, memory_id=memory_id)
    await review(tx, ctx, "censor", [memory_id])


def _draft(rule: Rule, ctx: Ground) -> Draft:
    told = f"{one_line(rule.trigger)} — {one_line(rule.reason)}"
    return Draft(
        memory_id=new_id(),
        kind="censor",
        state="CREATED",
        forms=forms(told, count=ctx.count_tokens, prefix=f"{WARN} "),
        full_text=told,
        indexed=told,
        cue=one_line(rule.trigger),
        occurred_at=ctx.now,
        created_at=ctx.now,
        origin=ctx.origin,
        trust=ctx.trust,
        content_hash=_hash(rule),
        ref=rule.ref,
        held=ctx.trust not in AUTHORS,
    )


def _hash(rule: Rule) -> bytes:
    return digest(rule.sense, rule.trigger, rule.domain or "")


def _row(rule: Rule, draft: Draft) -> dict[str, object]:
    return {
        "memory_id": str(draft.memory_id),
        "sense": rule.sense,
        "trigger": rule.trigger,
        "action": rule.action,
        "reason": rule.reason,
        "domain": rule.domain,
        "threshold": rule.threshold,
    }


@functools.lru_cache(maxsize=16)
def _words(text: str) -> str:
    """The words alone, each between spaces, so that one text holds another only as whole words."""
    return f" {' '.join(compiled_words().findall(text.casefold()))} "


@functools.cache
def compiled_words() -> "re2.Pattern":
    return re2.compile(r"[\pL\pN_]+")


def _said(error: Exception) -> str:
    said = error.args[0] if error.args else error
    return said.decode() if isinstance(said, bytes) else str(said)
