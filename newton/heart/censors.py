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
from newton.heart.lifecycle.engine import LifecycleContext, review
from newton.ids import new_id
from newton.memory import store
from newton.memory.memory import NewMemory, Trust, digest
from newton.memory.representations import make_short_forms, one_line
from newton.memory.transitions import PlannedTransition, apply_transitions

if TYPE_CHECKING:
    from newton.providers.embedding import Vector

SQL = load("newton.heart", "censors.sql")

MatchMode = Literal["phrase", "pattern", "meaning"]
CensorAction = Literal["warn", "block"]
CensorStage = Literal["input", "action", "output"]

DEFAULT_THRESHOLD = 3
MEANING_MIN_COSINE = 0.6  # cosine from which on a text has the meaning of a trigger
MAX_TRIGGER_CHARACTERS = 500
MAX_PATTERN_BYTES = 8 << 20
WARN_LABEL, BLOCK_LABEL = (
    "**WARN:**",
    "**BLOCK:**",
)  # of the same number of tokens, so that a stricter censor costs no more

# Who may put a censor in force. Anybody else's is kept in quarantine until a person confirms it.
ENFORCING_TRUST: frozenset[Trust] = frozenset({"operator", "user"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CensorRule:
    """What must not be done, how it is recognised, and why.

    A phrase is met as whole words in any case, a pattern is a regular expression, a meaning is met by likeness.
    """

    trigger: str
    reason: str
    match_mode: MatchMode = "phrase"
    action: CensorAction = "warn"
    domain: str | None = None
    threshold: int = DEFAULT_THRESHOLD
    ref: str | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.threshold <= 1_000:
            raise InputError(f"A threshold of {self.threshold} is not possible.", hint="Give 1 to 1,000.")
        if len(self.trigger) > MAX_TRIGGER_CHARACTERS:
            raise InputError(
                f"The trigger has {len(self.trigger)} characters.", hint=f"{MAX_TRIGGER_CHARACTERS} is the most."
            )
        if self.match_mode == "phrase" and not _to_padded_words(self.trigger).strip():
            raise InputError("The trigger has no words.", hint="Use a pattern for what is not words.")
        if self.match_mode == "pattern" and compile_pattern(self.trigger).search("") is not None:
            raise InputError("The pattern matches the empty text.", hint="It would match everything: make it narrower.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Censor:
    """A rule in force."""

    memory_id: UUID
    state: str
    summary: str
    summary_tokens: int
    match_mode: MatchMode
    trigger: str
    action: CensorAction
    reason: str
    domain: str | None
    embedding: "Vector | None"

    @property
    def is_blocking(self) -> bool:
        return self.action == "block" or self.state == "ESCALATED"

    @property
    def context_line(self) -> str:
        """As a context shows it: as a warning or, by its action or its state, as a block; with trigger and reason."""
        return self.summary.replace(WARN_LABEL, BLOCK_LABEL, 1) if self.is_blocking else self.summary

    def matches(self, text: str, vector: "Vector | None") -> bool:
        """Whether the text is what it warns of."""
        match self.match_mode:
            case "phrase":
                return _to_padded_words(self.trigger) in _to_padded_words(text)
            case "pattern":
                return compile_pattern(self.trigger).search(text) is not None
            case "meaning":
                if vector is None or self.embedding is None:
                    return False
                return float(self.embedding @ vector) >= MEANING_MIN_COSINE


@dataclass(frozen=True, slots=True, kw_only=True)
class CensorSummary:
    """A censor as a list shows it, with its record. A quarantined one is proposed and waits for a person."""

    memory_id: UUID
    state: str
    quarantined: bool
    match_mode: MatchMode
    trigger: str
    action: CensorAction
    reason: str
    domain: str | None
    threshold: int
    activations: int
    false_positives: int


@functools.lru_cache(maxsize=1_000)
def compile_pattern(pattern: str) -> "re2.Pattern":
    """Of an engine that takes linear time, whatever the pattern and the text.

    Raises InputError for a pattern that it does not know.
    """
    options = re2.Options()
    options.case_sensitive, options.max_mem, options.log_errors = False, MAX_PATTERN_BYTES, False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        raise InputError(
            f"{pattern!r} is no pattern: {_error_text(error)}.",
            hint="Look-around and back-references are not known: they could take for ever. See RE2's syntax.",
        ) from None


def find_matching(censors: Sequence[Censor], text: str, vector: "Vector | None") -> list[Censor]:
    """Those that the text meets, the strictest first as they come. Pure."""
    return [censor for censor in censors if censor.matches(text, vector)]


async def add_rules(tx: Tx, rules: Sequence[CensorRule], *, ctx: LifecycleContext) -> list[UUID]:
    """Puts rules in force and returns the ids of those that this changed: the new ones, and of the known ones
    those that a person puts in force after all, or makes a block. Nothing grows milder, and what was retired stays so.

    Raises ConflictError when a known ref comes with another trigger.
    """
    drafts = [_to_new_memory(rule, ctx) for rule in rules]
    refs = [(draft.ref, draft.content_hash) for draft in drafts if draft.ref]
    await store.find_by_ref(tx, refs, agent_id=ctx.agent_id, kind="censor")
    written = await store.remember(tx, agent_id=ctx.agent_id, memories=drafts)
    rows = [_to_row(rule, draft) for rule, draft in zip(rules, drafts, strict=True) if draft.memory_id in written]
    await SQL["insert_censors"].execute(tx, agent_id=ctx.agent_id, censors=json.dumps(rows))
    again = [(r, draft.content_hash) for r, draft in zip(rules, drafts, strict=True) if draft.memory_id not in written]
    insisted = await _enforce_existing(tx, dict(again), ctx=ctx) if ctx.trust in ENFORCING_TRUST else set[UUID]()
    return [*(draft.memory_id for draft in drafts if draft.memory_id in written), *sorted(insisted)]


async def _enforce_existing(tx: Tx, existing: Mapping[CensorRule, bytes], *, ctx: LifecycleContext) -> set[UUID]:
    """A person forbids what is known: what was only proposed is in force from now on, and a block blocks."""
    strict = {content_hash for rule, content_hash in existing.items() if rule.action == "block"}
    rows = await SQL["find_by_hash"].fetch_all(tx, agent_id=ctx.agent_id, hashes=list(existing.values()))
    released = [_approval_transition(row["memory_id"]) for row in rows if row["quarantined"]]
    moved = await apply_transitions(tx, released, ctx=ctx)
    stricter = [
        PlannedTransition(
            memory_id=row["memory_id"],
            event="escalated",
            from_state=row["state"],
            to_state="ESCALATED",
            reason="a person made it a block",
        )
        for row in rows
        if row["content_hash"] in strict and row["state"] in ("CREATED", "ACTIVE") and row["action"] != "block"
    ]
    return moved | await apply_transitions(tx, stricter, ctx=ctx)


async def is_retired(tx: Tx, rule: CensorRule, *, agent_id: UUID) -> bool:
    """Whether such a rule was there and is out of force for good."""
    rows = await SQL["find_by_hash"].fetch_all(tx, agent_id=agent_id, hashes=[_content_hash(rule)])
    return any(row["state"] == "RETIRED" for row in rows)


async def list_in_force(tx: Tx, *, agent_id: UUID, model_id: UUID | None) -> list[Censor]:
    """Every censor in force, those that block first."""
    rows = await SQL["list_active"].fetch_all(tx, agent_id=agent_id, model_id=model_id)
    return [Censor(**{**row, "embedding": row["embedding"] and row["embedding"].to_numpy()}) for row in rows]


async def list_in_force_at(tx: Tx, *, agent_id: UUID, moment: datetime) -> list[Censor]:
    """Every censor that was in force at a moment, as `in_force` gave them then."""
    return [Censor(**row) for row in await SQL["list_active_at"].fetch_all(tx, agent_id=agent_id, moment=moment)]


async def list_censors(tx: Tx, *, agent_id: UUID) -> list[CensorSummary]:
    """Every censor with its record, those out of force last."""
    return [CensorSummary(**row) for row in await SQL["list_censors"].fetch_all(tx, agent_id=agent_id)]


async def approve(tx: Tx, memory_id: UUID, *, ctx: LifecycleContext) -> bool:
    """A person puts a proposed censor in force. False when it was not waiting for that."""
    return bool(await apply_transitions(tx, [_approval_transition(memory_id)], ctx=ctx))


def _approval_transition(memory_id: UUID) -> PlannedTransition:
    return PlannedTransition(
        memory_id=memory_id,
        event="released",
        from_state="CREATED",
        to_state="CREATED",
        reason="a person approved of it",
        releases=True,
    )


async def retire(tx: Tx, memory_id: UUID, *, ctx: LifecycleContext) -> None:
    """A person takes it out of force."""
    await SQL["retire_censor"].execute(tx, agent_id=ctx.agent_id, memory_id=memory_id)
    await review(tx, ctx, "censor", [memory_id])


def _to_new_memory(rule: CensorRule, ctx: LifecycleContext) -> NewMemory:
    told = f"{one_line(rule.trigger)} — {one_line(rule.reason)}"
    return NewMemory(
        memory_id=new_id(),
        kind="censor",
        state="CREATED",
        forms=make_short_forms(told, count_tokens=ctx.count_tokens, prefix=f"{WARN_LABEL} "),
        full_text=told,
        indexed_text=told,
        embedding_text=one_line(rule.trigger),
        occurred_at=ctx.now,
        created_at=ctx.now,
        origin=ctx.origin,
        trust=ctx.trust,
        content_hash=_content_hash(rule),
        ref=rule.ref,
        needs_approval=ctx.trust not in ENFORCING_TRUST,
    )


def _content_hash(rule: CensorRule) -> bytes:
    return digest(rule.match_mode, rule.trigger, rule.domain or "")


def _to_row(rule: CensorRule, memory: NewMemory) -> dict[str, object]:
    return {
        "memory_id": str(memory.memory_id),
        "sense": rule.match_mode,
        "trigger": rule.trigger,
        "action": rule.action,
        "reason": rule.reason,
        "domain": rule.domain,
        "threshold": rule.threshold,
    }


@functools.lru_cache(maxsize=16)
def _to_padded_words(text: str) -> str:
    """The words alone, each between spaces, so that one text holds another only as whole words."""
    return f" {' '.join(compile_word_pattern().findall(text.casefold()))} "


@functools.cache
def compile_word_pattern() -> "re2.Pattern":
    return re2.compile(r"[\pL\pN_]+")


def _error_text(error: Exception) -> str:
    said = error.args[0] if error.args else error
    return said.decode() if isinstance(said, bytes) else str(said)
