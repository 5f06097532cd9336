"""Procedures: how something is done, from disk or learnt. A changed one is a new version in the place of the old."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from newton.content.skills import Skill
from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import ConflictError, NotFoundError
from newton.heart.lifecycle import procedures as rules
from newton.heart.lifecycle.engine import Ground, review
from newton.heart.matching import Pattern
from newton.ids import new_id
from newton.memory import store
from newton.memory.memory import Count, Draft, Forms, digest
from newton.memory.representations import bullet, forms, one_line

SQL = load("newton.heart", "procedures.sql")

FROM_DISK = "skills"  # the origin of those that follow a folder
CORE_TOKENS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One version of a procedure with its record."""

    name: str
    version: int
    memory_id: UUID
    description: str
    domain: str
    triggers: Sequence[str]
    goals: Sequence[str]
    core: Sequence[str]
    details: str
    state: str
    origin: str
    activations: int
    successes: int
    failures: int

    @property
    def effectiveness(self) -> float:
        return rules.effectiveness(self.successes, self.failures)

    @property
    def assured(self) -> float:
        return rules.assured(self.successes, self.failures)


@dataclass(frozen=True, slots=True)
class Synced:
    """What following the folder changed."""

    new: int
    retired: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Version:
    """The last version of a procedure as it is kept."""

    name: str
    version: int
    memory_id: UUID
    retired: bool
    content_hash: bytes
    origin: str


async def sync(tx: Tx, skills: Mapping[str, Skill], *, ctx: Ground) -> Synced:
    """Follows the folder: what is new or changed becomes a version, what is gone is retired, what is back restored."""
    if not _differs(await _latest(tx, ctx), skills):
        return Synced(0, 0)
    await SQL["lock_procedures"].run(tx, agent_id=ctx.agent_id)
    latest = await _latest(tx, ctx)
    changed = [skill for skill in skills.values() if not _same(skill, latest.get(skill.name))]
    gone = [v for v in latest.values() if v.origin == FROM_DISK and v.name not in skills and not v.retired]
    back = [v for v in latest.values() if v.name in skills and v.retired and _same(skills[v.name], v)]
    await _write(tx, changed, latest, ctx=ctx)
    replaced = [latest[skill.name] for skill in changed if skill.name in latest]
    await _set(tx, [v.memory_id for v in (*gone, *replaced)], retired=True, ctx=ctx)
    await _set(tx, [v.memory_id for v in back], retired=False, ctx=ctx)
    return Synced(len(changed), len(gone))


async def learn(tx: Tx, skill: Skill, *, ctx: Ground) -> UUID | None:
    """Keeps a procedure that was learnt and returns its id; None when it is there.

    Raises ConflictError when there is another of its name: only its own source replaces a procedure.
    """
    await SQL["lock_procedures"].run(tx, agent_id=ctx.agent_id)
    if known := (await _latest(tx, ctx)).get(skill.name):
        if _same(skill, known):
            return None
        raise ConflictError(f"There is another procedure {skill.name!r}.", hint="Give it a name of its own.")
    (draft,) = await _write(tx, [skill], {}, ctx=ctx)
    return draft.memory_id


async def listed(tx: Tx, *, agent_id: UUID) -> list[Listed]:
    """Every version of every procedure with its record."""
    return [Listed(**row) for row in await SQL["list_procedures"].all(tx, agent_id=agent_id)]


async def named(tx: Tx, name: str, *, agent_id: UUID) -> Listed:
    """The last version of that name. Raises NotFoundError."""
    versions = [one for one in await listed(tx, agent_id=agent_id) if one.name == name]
    if not versions:
        raise NotFoundError(f"There is no procedure {name!r}.", hint="`newton procedures list` shows them.")
    return versions[-1]


async def patterns(tx: Tx, *, agent_id: UUID) -> list[Pattern]:
    """What each procedure in use is asked for by, with its record."""
    return [Pattern(**row) for row in await SQL["list_triggers"].all(tx, agent_id=agent_id)]


async def _latest(tx: Tx, ctx: Ground) -> dict[str, _Version]:
    rows = await SQL["list_latest_versions"].all(tx, agent_id=ctx.agent_id)
    return {row["name"]: _Version(**row) for row in rows}


def _differs(latest: Mapping[str, _Version], skills: Mapping[str, Skill]) -> bool:
    if any(not _same(skill, latest.get(skill.name)) or latest[skill.name].retired for skill in skills.values()):
        return True
    return any(v.origin == FROM_DISK and v.name not in skills and not v.retired for v in latest.values())


def _same(skill: Skill, version: _Version | None) -> bool:
    return version is not None and version.content_hash == _hash(skill, version.version)


def _hash(skill: Skill, version: int) -> bytes:
    """Of the version too, so that a text may come back."""
    return digest(skill.name, skill.content_hash.hex(), str(version))


async def _write(tx: Tx, skills: Sequence[Skill], latest: Mapping[str, _Version], *, ctx: Ground) -> list[Draft]:
    versions = {skill.name: latest[skill.name].version + 1 if skill.name in latest else 1 for skill in skills}
    drafts = {skill.name: _draft(skill, versions[skill.name], ctx=ctx) for skill in skills}
    await store.remember(tx, agent_id=ctx.agent_id, drafts=list(drafts.values()))
    rows = [_row(skill, versions[skill.name], drafts[skill.name]) for skill in skills]
    await SQL["insert_procedures"].run(tx, agent_id=ctx.agent_id, procedures=json.dumps(rows))
    pairs = [(drafts[name].memory_id, latest[name].memory_id) for name in drafts if name in latest]
    await store.connect(tx, "supersedes", pairs, ctx=ctx)
    return list(drafts.values())


async def _set(tx: Tx, memory_ids: Sequence[UUID], *, retired: bool, ctx: Ground) -> None:
    if memory_ids:
        await SQL["retire_procedures"].run(tx, agent_id=ctx.agent_id, memory_ids=memory_ids, retired=retired)
        await review(tx, ctx, "procedure", memory_ids)


def section(name: str) -> str:
    """The header under which a context shows a procedure."""
    return f"## Procedure: {name}\n"


def _forms(skill: Skill, count: Count) -> Forms:
    """The micro says what it is for, the summary is its core band. Both cost their header too."""
    steps = " ".join(f"{place}. {one_line(step)}" for place, step in enumerate(skill.core, 1))
    core = forms(steps, count=count, most=CORE_TOKENS)
    what = forms(f"{skill.name}: {skill.description}", count=count).micro
    header = count(section(skill.name))
    return Forms(
        micro=what,
        summary=core.summary,
        micro_tokens=header + count(bullet(what)),
        summary_tokens=header + core.summary_tokens,
    )


def _draft(skill: Skill, version: int, *, ctx: Ground) -> Draft:
    about = "\n".join([skill.name.replace("-", " "), skill.description, *skill.triggers, *skill.goals])
    return Draft(
        memory_id=new_id(),
        kind="procedure",
        state="ACTIVE",
        forms=_forms(skill, ctx.count_tokens),
        full_text="\n".join([skill.description, *skill.goals, *skill.core, skill.details]),
        indexed=f"{about}\n" + "\n".join(skill.core),
        cue=one_line(about),
        occurred_at=ctx.now,
        created_at=ctx.now,
        origin=ctx.origin,
        trust=ctx.trust,
        content_hash=_hash(skill, version),
        ref=f"{skill.name} {version}",
    )


def _row(skill: Skill, version: int, draft: Draft) -> dict[str, object]:
    fields = skill.model_dump(
        include={"description", "domain", "triggers", "frames", "tools", "goals", "core", "details"}
    )
    return {**fields, "memory_id": str(draft.memory_id), "name": skill.name, "version": version}
