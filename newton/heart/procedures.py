"""Procedures, read from a folder or learnt from conversations, versioned, and matched with inputs by word stems."""

import json
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated
from uuid import UUID

from pydantic import Field, JsonValue, computed_field

from newton.content.skills import SkillFile
from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import ConflictError, NotFoundError
from newton.heart.lifecycle import transition_rules as lifecycle_rules
from newton.heart.lifecycle.engine import LifecycleContext, review
from newton.heart.lifecycle.transition_rules import effectiveness
from newton.memory import store
from newton.memory.memory import NewMemory, ShortForms, TokenCounter, digest
from newton.memory.representations import make_short_forms, one_line, to_bullet
from newton.memory.store import PlannedTransition, apply_transitions
from newton.text.stems import WORD
from newton.text.words import CACHED_TEXTS, MAX_COMPARED_CHARACTERS, extract_stems

SQL = load("newton.heart", "procedures.sql")

# The minimum number of stems of a phrase that matches in any order, for procedures of the current frame and others.
MIN_WORDS_IN_FRAME, MIN_WORDS = 2, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcedureTriggers:
    """A procedure with the phrases that trigger it and the counts of its uses."""

    memory_id: UUID
    name: str
    domain: str
    triggers: Sequence[str]
    tools: Sequence[str]
    frames: Sequence[str]
    applications: int
    successes: int
    failures: int

    @property
    def success_rate(self) -> float:
        """The share of successes among the uses that succeeded or failed; 0 if there are none."""
        return effectiveness(self.successes, self.failures)


def match_triggers(
    procedures: Sequence[ProcedureTriggers], text: str, *, types: Collection[str] = (), frame: str | None = None
) -> list[ProcedureTriggers]:
    """Return the procedures that match the input, highest success rate first.

    A procedure matches if the input contains one of its triggers, or all word stems of a trigger or of its name, or if
    one of the entity `types` is its domain or one of its tools. Matching by stems needs a phrase of at least three
    stems, or two if the procedure belongs to the current `frame` (the chosen kind of input) or no frame is given.
    """
    words, stems = _to_padded_words(text[:MAX_COMPARED_CHARACTERS]), extract_stems(text)
    entity_types = {entity_type.casefold() for entity_type in types}
    matching = [
        p
        for p in procedures
        if any(_to_padded_words(trigger) in words for trigger in p.triggers)
        or _matches_phrase(p, stems, MIN_WORDS_IN_FRAME if frame is None or frame in p.frames else MIN_WORDS)
        or not entity_types.isdisjoint({p.domain.casefold(), *(tool.casefold() for tool in p.tools)})
    ]
    return sorted(matching, key=lambda p: (-p.success_rate, -p.applications, p.name, p.memory_id))


@lru_cache(maxsize=CACHED_TEXTS)
def _to_padded_words(text: str) -> str:
    return f" {' '.join(WORD.findall(text.casefold()))} "


def _matches_phrase(procedure: ProcedureTriggers, input_stems: Set[str], min_words: int) -> bool:
    phrases = [extract_stems(phrase) for phrase in (procedure.name.replace("-", " "), *procedure.triggers)]
    return any(len(phrase) >= min_words and phrase <= input_stems for phrase in phrases)


DISK_ORIGIN = "skills"  # origin of procedures that are synchronized with a folder
CORE_TOKENS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcedureSummary:
    """A procedure with the rate of its successful uses, and the lower bound of this rate (Wilson score, 95 %).

    A proposed procedure is in no context until a person approves it.
    """

    memory_id: UUID
    name: str
    version: int
    state: str
    is_proposed: bool
    domain: str
    description: str
    activations: int
    successes: int
    failures: int

    @computed_field
    @property
    def success_rate(self) -> float:
        return lifecycle_rules.effectiveness(self.successes, self.failures)

    @computed_field
    @property
    def success_rate_lower_bound(self) -> float:
        return lifecycle_rules.lower_bound(self.successes, self.failures)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcedureVersion(ProcedureSummary):
    """A procedure with its triggers, goals, steps and details."""

    triggers: Sequence[str]
    goals: Sequence[str]
    steps: Sequence[str]
    details: str
    origin: Annotated[str, Field(exclude=True)] = ""
    front_matter: Annotated[Mapping[str, JsonValue], Field(exclude=True)] = field(default_factory=dict[str, JsonValue])


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcedureChange:
    """The result of a decision on a procedure. `changed` is false if it was not waiting for approval."""

    name: str
    changed: bool


@dataclass(frozen=True, slots=True)
class SyncReport:
    """The counts of procedure versions that a synchronization with a folder added and retired."""

    new: int
    retired: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _StoredVersion:
    """The latest stored version of a procedure."""

    name: str
    version: int
    memory_id: UUID
    retired: bool
    core: Sequence[str]
    content_hash: bytes
    origin: str


async def sync_procedures(
    tx: Tx, skills: Mapping[str, SkillFile], *, unreadable: Collection[str] = (), ctx: LifecycleContext
) -> SyncReport:
    """Synchronize the procedures with the skills of a folder.

    New and changed skills are added as versions, missing ones are retired, and returned ones are restored. The
    procedures named in `unreadable` stay as they are.
    """
    if not _differs(await _read_latest(tx, ctx), skills, unreadable):
        return SyncReport(0, 0)
    await SQL["lock_procedures"].execute(tx, agent_id=ctx.agent_id)
    latest = {name: one for name, one in (await _read_latest(tx, ctx)).items() if name not in unreadable}
    changed = [skill for skill in skills.values() if not _is_same(skill, latest.get(skill.name))]
    missing = [v for v in latest.values() if v.origin == DISK_ORIGIN and v.name not in skills and not v.retired]
    returned = [v for v in latest.values() if v.name in skills and v.retired and _is_same(skills[v.name], v)]
    await _insert_versions(tx, changed, latest, ctx=ctx)
    replaced = [latest[skill.name] for skill in changed if skill.name in latest]
    await _update_retirement(tx, [v.memory_id for v in (*missing, *replaced)], retired=True, ctx=ctx)
    await _update_retirement(tx, [v.memory_id for v in returned], retired=False, ctx=ctx)
    return SyncReport(len(changed), len(missing))


async def add_procedure(tx: Tx, skill: SkillFile, *, ctx: LifecycleContext) -> UUID | None:
    """Store a learnt procedure and return its id; None if an equal one exists, or one with these steps was retired.

    Raises ConflictError if another procedure has the same name.
    """
    await SQL["lock_procedures"].execute(tx, agent_id=ctx.agent_id)
    latest = await _read_latest(tx, ctx)
    if skill.core and any(one.retired and tuple(one.core) == skill.core for one in latest.values()):
        return None
    if known := latest.get(skill.name):
        if _is_same(skill, known):
            return None
        raise ConflictError(
            f"Another procedure is already named {skill.name!r}.", hint="Choose another name for the procedure."
        )
    (draft,) = await _insert_versions(tx, [skill], {}, ctx=ctx)
    return draft.memory_id


async def put_procedure(tx: Tx, skill: SkillFile, *, ctx: LifecycleContext) -> bool:
    """Store a skill that a person gives, as a procedure or as a new version of one; return False if it is the same.

    A retired procedure is in use again. Raises ConflictError if a file of the operator has this name.
    """
    await SQL["lock_procedures"].execute(tx, agent_id=ctx.agent_id)
    latest = await _read_latest(tx, ctx)
    known = latest.get(skill.name)
    if known and known.origin == DISK_ORIGIN and not known.retired:
        hint = "Choose another name, or change the file in NEWTON_PROCEDURES_DIR."
        raise ConflictError(f"The procedure {skill.name!r} comes from a file.", hint=hint)
    if known and _is_same(skill, known):
        await _update_retirement(tx, [known.memory_id], retired=False, ctx=ctx)
        return known.retired
    await _insert_versions(tx, [skill], latest, ctx=ctx)
    await _update_retirement(tx, [known.memory_id] if known else [], retired=True, ctx=ctx)
    return True


async def retire_procedure(tx: Tx, name: str, *, ctx: LifecycleContext) -> None:
    """Retire a procedure. Raises NotFoundError for an unknown name, and ConflictError if it comes from a file."""
    version = await get_latest(tx, name, agent_id=ctx.agent_id)
    if version.origin == DISK_ORIGIN:
        raise ConflictError(f"The procedure {name!r} comes from a file.", hint="Remove the file.")
    await _update_retirement(tx, [version.memory_id], retired=True, ctx=ctx)


async def approve_procedure(tx: Tx, name: str, *, ctx: LifecycleContext) -> bool:
    """Put a proposed procedure in use; return False if it does not wait. Raises NotFoundError for an unknown name."""
    version = await get_latest(tx, name, agent_id=ctx.agent_id)
    reason, state = "a person approved it", version.state
    approval = PlannedTransition(version.memory_id, "released", state, state, reason, releases=True)
    return bool(version.is_proposed and await apply_transitions(tx, [approval], ctx=ctx))


async def dismiss_procedure(tx: Tx, name: str, reason: str | None, *, ctx: LifecycleContext) -> bool:
    """Retire a proposed procedure, so that it is not proposed again. Return False if it was not waiting for approval.

    The reason is recorded with the change of the state. Raises NotFoundError for an unknown name.
    """
    version = await get_latest(tx, name, agent_id=ctx.agent_id)
    if not version.is_proposed:
        return False
    because = "a person dismissed it" + (f": {reason}" if reason else "")
    dismissal = PlannedTransition(version.memory_id, "retired", version.state, "RETIRED", because)
    await apply_transitions(tx, [dismissal], ctx=ctx)
    await _update_retirement(tx, [version.memory_id], retired=True, ctx=ctx)
    return True


async def list_versions(tx: Tx, *, agent_id: UUID) -> list[ProcedureVersion]:
    """Return every version of every procedure, each with the counts of its uses, successes and failures."""
    rows = await SQL["list_procedures"].fetch_all(tx, agent_id=agent_id)
    return [ProcedureVersion(**{**row, "front_matter": json.loads(row["front_matter"])}) for row in rows]


async def get_latest(tx: Tx, name: str, *, agent_id: UUID) -> ProcedureVersion:
    """Return the latest version of a procedure. Raises NotFoundError if no procedure has this name."""
    versions = [one for one in await list_versions(tx, agent_id=agent_id) if one.name == name]
    if not versions:
        raise NotFoundError(f"There is no procedure {name!r}.", hint="List procedures with `newton procedures list`.")
    return versions[-1]


async def list_triggers(tx: Tx, *, agent_id: UUID) -> list[ProcedureTriggers]:
    """Return each active procedure with its triggers and the counts of its uses."""
    return [ProcedureTriggers(**row) for row in await SQL["list_triggers"].fetch_all(tx, agent_id=agent_id)]


async def _read_latest(tx: Tx, ctx: LifecycleContext) -> dict[str, _StoredVersion]:
    rows = await SQL["list_latest_versions"].fetch_all(tx, agent_id=ctx.agent_id)
    return {row["name"]: _StoredVersion(**row) for row in rows}


def _differs(
    latest: Mapping[str, _StoredVersion], skills: Mapping[str, SkillFile], unreadable: Collection[str]
) -> bool:
    if any(not _is_same(skill, latest.get(skill.name)) or latest[skill.name].retired for skill in skills.values()):
        return True
    known = {*skills, *unreadable}
    return any(v.origin == DISK_ORIGIN and v.name not in known and not v.retired for v in latest.values())


def _is_same(skill: SkillFile, version: _StoredVersion | None) -> bool:
    return version is not None and version.content_hash == _version_hash(skill, version.version)


def _version_hash(skill: SkillFile, version: int) -> bytes:
    """Return a hash of the skill and the version number, so that a later version may have the same text again."""
    return digest(skill.name, skill.content_hash.hex(), str(version))


async def _insert_versions(
    tx: Tx, skills: Sequence[SkillFile], latest: Mapping[str, _StoredVersion], *, ctx: LifecycleContext
) -> list[NewMemory]:
    versions = {skill.name: latest[skill.name].version + 1 if skill.name in latest else 1 for skill in skills}
    drafts = {skill.name: _to_new_memory(skill, versions[skill.name], ctx=ctx) for skill in skills}
    await store.remember(tx, agent_id=ctx.agent_id, memories=list(drafts.values()))
    rows = [_to_row(skill, versions[skill.name], drafts[skill.name]) for skill in skills]
    await SQL["insert_procedures"].execute(tx, agent_id=ctx.agent_id, procedures=json.dumps(rows))
    pairs = [(drafts[name].memory_id, latest[name].memory_id) for name in drafts if name in latest]
    await store.add_links(tx, "supersedes", pairs, ctx=ctx)
    return list(drafts.values())


async def _update_retirement(tx: Tx, memory_ids: Sequence[UUID], *, retired: bool, ctx: LifecycleContext) -> None:
    if memory_ids:
        await SQL["retire_procedures"].execute(tx, agent_id=ctx.agent_id, memory_ids=memory_ids, retired=retired)
        await review(tx, ctx, "procedure", memory_ids)


def section_header(name: str) -> str:
    """Return the heading under which a context shows a procedure."""
    return f"## Procedure: {name}\n"


def _make_short_forms(skill: SkillFile, count_tokens: TokenCounter) -> ShortForms:
    """Return the description as the micro form and the core steps, or else the beginning of the text, as the summary.

    The token counts include the heading under which a context shows the procedure.
    """
    steps = "\n".join(f"{number}. {one_line(step)}" for number, step in enumerate(skill.core, 1))
    core = make_short_forms(
        steps or one_line(skill.details) or skill.description, count_tokens=count_tokens, max_tokens=CORE_TOKENS
    )
    micro = make_short_forms(f"{skill.name}: {skill.description}", count_tokens=count_tokens).micro
    header = count_tokens(section_header(skill.name))
    return ShortForms(micro, core.summary, header + count_tokens(to_bullet(micro)), header + core.summary_tokens)


def _to_new_memory(skill: SkillFile, version: int, *, ctx: LifecycleContext) -> NewMemory:
    text = "\n".join([skill.name.replace("-", " "), skill.description, *skill.triggers, *skill.goals])
    return NewMemory(
        kind="procedure",
        forms=_make_short_forms(skill, ctx.count_tokens),
        full_text="\n".join([skill.description, *skill.goals, *skill.core, skill.details]),
        indexed_text=f"{text}\n" + "\n".join(skill.core),
        embedding_text=one_line(text),
        occurred_at=ctx.now,
        ctx=ctx,
        content_hash=_version_hash(skill, version),
        ref=f"{skill.name} {version}",
    )


def _to_row(skill: SkillFile, version: int, memory: NewMemory) -> dict[str, object]:
    columns = {
        "name",
        "description",
        "domain",
        "triggers",
        "frames",
        "tools",
        "goals",
        "core",
        "details",
        "front_matter",
    }
    return {**skill.model_dump(include=columns), "memory_id": str(memory.memory_id), "version": version}
