"""Censors: rules that forbid or warn about a text. Code enforces them; no memory and no model can disable a censor."""

import functools
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Literal
from uuid import UUID

import re2

from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import InputError
from newton.heart.censor_text import list_variants, prepare_text, prepare_trigger
from newton.heart.lifecycle.engine import LifecycleContext, review
from newton.memory import store
from newton.memory.memory import NewMemory, Trust, digest
from newton.memory.representations import make_short_forms, one_line
from newton.memory.store import PlannedTransition, apply_transitions

if TYPE_CHECKING:
    from newton.providers.embedding import Vector

SQL = load("newton.heart", "censors.sql")

MatchMode = Literal["phrase", "pattern", "meaning"]
CensorAction = Literal["warn", "block"]
CensorStage = Literal["input", "action", "output"]

DEFAULT_THRESHOLD, MAX_THRESHOLD = 3, 1_000
MEANING_MIN_COSINE = 0.6  # minimum cosine similarity of a text and a trigger
MAX_TRIGGER_CHARACTERS = 500
MAX_PATTERN_BYTES = 8 << 20
# what a trigger does not find, by its match mode
_LIMITS: dict[MatchMode, str] = {
    "phrase": "The trigger does not find synonyms, translations, another order of its words, words between them,"
    " irregular forms, spelling by sound, first letters of lines, text in images, or encodings other than base64,"
    " base32, digits and escapes.",
    "pattern": "The pattern does not find inflected forms, look-alike letters, text in images, or encodings other than"
    " base64, hexadecimal digits and escapes.",
    "meaning": "The trigger is not compared while no embedding model is available, and does not find disguised or"
    " encoded texts, texts in images, and what stands beyond the first 20,000 characters of a text.",
}
_UNSPACED_LIMITS = (
    "The trigger is found anywhere in a text, also within a longer word. It does not find synonyms, translations, other"
    " characters for the same word, words in between, text in images, or encodings other than base64, hexadecimal"
    " digits and escapes."
)
# equally many tokens, so that escalation does not change the budget
WARN_LABEL, BLOCK_LABEL = "**WARN:**", "**BLOCK:**"

# Trust levels that enforce a censor at once. Others are quarantined until a person approves the censor.
ENFORCING_TRUST: frozenset[Trust] = frozenset({"operator", "user"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CensorRule:
    """A censor to add: its trigger, how the trigger matches a text, the action and the reason.

    Match mode `phrase` finds whole words in any form, also disguised or encoded (see `censor_text`), `pattern` is an
    RE2 expression, and `meaning` compares by cosine similarity. After `threshold` correct matches a warning becomes a
    block. `ref` is the idempotency key. Raises InputError for an invalid trigger or threshold.
    """

    trigger: str
    reason: str
    match_mode: MatchMode = "phrase"
    action: CensorAction = "warn"
    domain: str | None = None
    threshold: int = DEFAULT_THRESHOLD
    ref: str | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.threshold <= MAX_THRESHOLD:
            hint = f"Give a number of matches from 1 to {MAX_THRESHOLD:,}."
            raise InputError(f"Invalid censor threshold {self.threshold}.", hint=hint)
        if len(self.trigger) > MAX_TRIGGER_CHARACTERS:
            hint = f"Shorten the trigger to {MAX_TRIGGER_CHARACTERS} characters."
            raise InputError(f"The trigger is too long: {len(self.trigger)} characters.", hint=hint)
        if self.match_mode == "phrase" and not prepare_trigger(self.trigger).letters:
            raise InputError(
                "The trigger of the censor has no words.", hint="Use match mode `pattern` for punctuation and symbols."
            )
        if self.match_mode == "pattern" and compile_pattern(self.trigger).search("") is not None:
            raise InputError(
                "The pattern matches the empty text.", hint="Make the pattern narrower: it would match every text."
            )

    def describe_limits(self) -> str:
        """Return, in one sentence, what the trigger does not find."""
        if self.match_mode == "phrase" and prepare_trigger(self.trigger).unspaced:
            return _UNSPACED_LIMITS
        return _LIMITS[self.match_mode]


@dataclass(frozen=True, slots=True, kw_only=True)
class Censor:
    """A prohibition in force. `embedding` is the vector of its trigger, which only mode `meaning` needs, or None.

    `is_inherited` is True if it is of the agent above the project in use.
    """

    memory_id: UUID
    state: str
    summary: str
    summary_tokens: int
    match_mode: MatchMode
    trigger: str
    action: CensorAction
    reason: str
    domain: str | None
    embedding: "Vector | None" = field(compare=False)
    is_inherited: bool = False

    @property
    def is_blocking(self) -> bool:
        return self.action == "block" or self.state == "ESCALATED"

    @property
    def context_line(self) -> str:
        """The censor as one line for the model: the label WARN or BLOCK, the trigger and the reason."""
        return self.summary.replace(WARN_LABEL, BLOCK_LABEL, 1) if self.is_blocking else self.summary

    def matches(self, text: str, vectors: "Sequence[Vector]") -> bool:
        """Return whether the text matches the trigger. Mode `meaning` compares `vectors` of the text and its parts."""
        match self.match_mode:
            case "phrase":
                return prepare_trigger(self.trigger).is_in(prepare_text(text))
            case "pattern":
                pattern = compile_pattern(self.trigger)
                return any(pattern.search(one) is not None for one in (text, *list_variants(text)))
            case "meaning":
                trigger = self.embedding
                return trigger is not None and any(float(trigger @ one) >= MEANING_MIN_COSINE for one in vectors)


@dataclass(frozen=True, slots=True, kw_only=True)
class CensorSummary:
    """A censor with the numbers of its matches (`activations`) and of the false ones among them.

    A proposed censor has no effect until a person approves it.
    """

    memory_id: UUID
    state: str
    is_proposed: bool
    match_mode: MatchMode
    trigger: str
    action: CensorAction
    reason: str
    domain: str | None
    threshold: int
    activations: int
    false_positives: int

    @property
    def is_in_force(self) -> bool:
        return self.state != "RETIRED" and not self.is_proposed


@dataclass(frozen=True, slots=True, kw_only=True)
class CensorChange:
    """The result of a change of a censor. `changed` is false if the censor was already as requested."""

    censor_id: UUID
    changed: bool = True


@functools.lru_cache(maxsize=1_000)
def compile_pattern(pattern: str) -> "re2.Pattern":
    """Compile a case-insensitive RE2 pattern, which matches in linear time. Raises InputError if it is invalid."""
    options = re2.Options()
    options.case_sensitive, options.max_mem, options.log_errors = False, MAX_PATTERN_BYTES, False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        hint = "Use RE2 syntax, which has no look-around and no back-references."
        raise InputError(f"Invalid pattern {pattern!r}: {_error_text(error)}.", hint=hint) from None


def find_matching(censors: Sequence[Censor], text: str, vectors: "Sequence[Vector]") -> list[Censor]:
    """Return the censors that match the text, in order. `vectors` are of the text and its passages. Pure."""
    return [censor for censor in censors if censor.matches(text, vectors)]


def validate_domain(rule: CensorRule, domains: Collection[str]) -> None:
    """Raise InputError if the rule has a domain that is not one of `domains`."""
    if rule.domain not in (None, *domains):
        hint = (
            f"Omit the domain, or give one of: {', '.join(sorted(domains))}."
            if domains
            else "Omit the domain, because no frame sets one."
        )
        raise InputError(f"No frame has the domain {rule.domain!r}.", hint=hint)


async def add_rules(tx: Tx, rules: Sequence[CensorRule], *, ctx: LifecycleContext) -> list[UUID]:
    """Store censor rules and return the ids of the new and the changed censors.

    If an equal censor is stored already, a rule from a trusted source enforces it from now on and, if the rule blocks,
    makes it block. It takes the place of one that waits for approval: this one keeps its words and is retired. No rule
    weakens a censor or restores a retired one. Raises ConflictError if the `ref` of a rule is stored with another
    trigger.
    """
    proposed = await _find_proposed(tx, rules, agent_id=ctx.agent_id) if ctx.trust in ENFORCING_TRUST else {}
    drafts = [_to_new_memory(rule, ctx, proposed.get(_content_hash(rule))) for rule in rules]
    refs = [(draft.ref, draft.content_hash) for draft in drafts if draft.ref]
    await store.find_by_ref(tx, refs, agent_id=ctx.agent_id, kind="censor")
    written = await store.remember(tx, agent_id=ctx.agent_id, memories=drafts)
    new = {draft.memory_id: rule for rule, draft in zip(rules, drafts, strict=True) if draft.memory_id in written}
    rows = [{**asdict(rule), "memory_id": str(memory_id)} for memory_id, rule in new.items()]
    await SQL["insert_censors"].execute(tx, agent_id=ctx.agent_id, censors=json.dumps(rows))
    known = {r: draft.content_hash for r, draft in zip(rules, drafts, strict=True) if draft.memory_id not in written}
    changed = await _enforce_existing(tx, known, ctx=ctx) if ctx.trust in ENFORCING_TRUST else set[UUID]()
    for memory_id in proposed.values():
        await retire(tx, memory_id, ctx=ctx)
    return [*new, *sorted(changed)]


async def _enforce_existing(tx: Tx, existing: Mapping[CensorRule, bytes], *, ctx: LifecycleContext) -> set[UUID]:
    """Make stored censors that equal trusted rules block if the rule does; return the changed ids."""
    blocking = {content_hash for rule, content_hash in existing.items() if rule.action == "block"}
    rows = await SQL["find_by_hash"].fetch_all(tx, agent_id=ctx.agent_id, hashes=list(existing.values()))
    escalations = [
        PlannedTransition(row["memory_id"], "tightened", row["state"], "ESCALATED", "a person made it blocking")
        for row in rows
        if row["content_hash"] in blocking and row["state"] in ("CREATED", "ACTIVE") and row["action"] != "block"
    ]
    return await apply_transitions(tx, escalations, ctx=ctx)


async def _find_proposed(tx: Tx, rules: Sequence[CensorRule], *, agent_id: UUID) -> dict[bytes, UUID]:
    """Return by content hash the censors with the triggers of rules that no person approved, retired ones included."""
    rows = await SQL["find_by_hash"].fetch_all(tx, agent_id=agent_id, hashes=[_content_hash(rule) for rule in rules])
    return {row["content_hash"]: row["memory_id"] for row in rows if row["quarantined"]}


async def is_retired(tx: Tx, rule: CensorRule, *, agent_id: UUID) -> bool:
    """Return whether a censor with the match mode, trigger and domain of the rule was retired."""
    proposed = await _find_proposed(tx, [rule], agent_id=agent_id)
    hashes = [_content_hash(rule), *(_content_hash(rule, one) for one in proposed.values())]
    rows = await SQL["find_by_hash"].fetch_all(tx, agent_id=agent_id, hashes=hashes)
    return bool(rows) and all(row["state"] == "RETIRED" for row in rows)


async def list_in_force(tx: Tx, *, agent_id: UUID, model_id: UUID | None) -> list[Censor]:
    """Return every censor in force, blocking ones first, with the vector of its trigger by the model `model_id`."""
    rows = await SQL["list_active"].fetch_all(tx, agent_id=agent_id, model_id=model_id)
    return [Censor(**{**row, "embedding": row["embedding"] and row["embedding"].to_numpy()}) for row in rows]


async def list_in_force_at(tx: Tx, *, agent_id: UUID, moment: datetime) -> list[Censor]:
    """Return every censor that was in force at a past moment, blocking ones first, without vectors."""
    return [Censor(**row) for row in await SQL["list_active_at"].fetch_all(tx, agent_id=agent_id, moment=moment)]


async def list_censors(tx: Tx, *, agent_id: UUID) -> list[CensorSummary]:
    """Return every censor with its statistics, retired ones last."""
    return [CensorSummary(**row) for row in await SQL["list_censors"].fetch_all(tx, agent_id=agent_id)]


async def approve(tx: Tx, memory_id: UUID, *, ctx: LifecycleContext) -> bool:
    """Enforce a censor that waits for approval (is in quarantine) from now on. Return False if it does not wait."""
    return bool(await apply_transitions(tx, [_approval_transition(memory_id)], ctx=ctx))


def _approval_transition(memory_id: UUID) -> PlannedTransition:
    return PlannedTransition(memory_id, "released", "CREATED", "CREATED", "a person approved it", releases=True)


async def retire(tx: Tx, memory_id: UUID, *, ctx: LifecycleContext) -> None:
    """Retire a censor: it is kept, but never enforced again."""
    await SQL["retire_censor"].execute(tx, agent_id=ctx.agent_id, memory_id=memory_id)
    await review(tx, ctx, "censor", [memory_id])


async def relax(tx: Tx, memory_id: UUID, reason: str, *, ctx: LifecycleContext) -> bool:
    """Make a blocking censor a warning and count its matches anew. Return False if it did not block."""
    rows = await SQL["relax_censor"].fetch_all(tx, agent_id=ctx.agent_id, memory_id=memory_id, now=ctx.now)
    await apply_transitions(tx, [PlannedTransition(memory_id, "relaxed", "ESCALATED", "ACTIVE", reason)], ctx=ctx)
    return bool(rows)


def _to_new_memory(rule: CensorRule, ctx: LifecycleContext, replaced: UUID | None) -> NewMemory:
    text = f"{one_line(rule.trigger)} — {one_line(rule.reason)}"
    return NewMemory(
        kind="censor",
        state="CREATED",
        forms=make_short_forms(text, count_tokens=ctx.count_tokens, prefix=f"{WARN_LABEL} "),
        full_text=text,
        indexed_text=text,
        embedding_text=one_line(rule.trigger),
        occurred_at=ctx.now,
        ctx=ctx,
        content_hash=_content_hash(rule, replaced),
        ref=rule.ref,
        needs_approval=ctx.trust not in ENFORCING_TRUST,
    )


def _content_hash(rule: CensorRule, replaced: UUID | None = None) -> bytes:
    """Return the hash of a rule, or of one that takes the place of a censor that waits for approval."""
    return digest(rule.match_mode, rule.trigger, rule.domain or "", *([str(replaced)] if replaced else []))


def _error_text(error: Exception) -> str:
    text = error.args[0] if error.args else error
    return text.decode() if isinstance(text, bytes) else str(text)
