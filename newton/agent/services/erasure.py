"""Erasure, on request, of everything that is stored about a person or thing, or of a whole agent."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import UUID

from newton.agent.erasure import text_scan
from newton.agent.erasure.person_names import NameNearMiss, PersonNames, find_person_names
from newton.agent.events import clear
from newton.agent.scope import AgentScope
from newton.brain import decisions
from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import ConflictError, InputError
from newton.heart import procedures
from newton.heart.entities.name_recognition import normalize_name
from newton.heart.identity import identity_store
from newton.heart.identity.identity_store import IdentityEdit
from newton.memory.forgetting import forget
from newton.memory.hygiene import clean_text
from newton.memory.memory import digest

SQL = load("newton.agent.services", "erasure.sql")

TOKEN_LENGTH = 8  # characters
MAX_NAMED_NEAR_MISSES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasurePlan:
    """The data that an erasure affects.

    `memories` are deleted (id, kind, short form); `decisions` and `tenets` (lines of the identity) lose their text.
    `related` are the ids and kinds of other records that contain one of the `names`, such as contexts, tasks and
    documents. `names` are the spellings that the memory connects with the subject, and `pattern` finds them.
    `near_misses` are similar names, which are not erased. `remains`, of an erasure that was carried out, counts what a
    scan of all tables and of the logs still finds, by table or file.
    """

    agent_id: UUID
    names: tuple[str, ...]
    pattern: str
    near_misses: tuple[NameNearMiss, ...]
    memories: Sequence[tuple[UUID, str, str]]
    decisions: Sequence[UUID]
    tenets: Sequence[UUID]
    related: Sequence[tuple[UUID, str]]
    remains: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def token(self) -> str:
        """Return a hash of this plan. A caller passes it to `erase` to confirm exactly this plan."""
        ids = [*(memory_id for memory_id, _, _ in self.memories), *self.decisions, *self.tenets]
        ids += [related_id for related_id, _ in self.related]
        return digest(str(self.agent_id), *self.names, *map(str, ids)).hex()[:TOKEN_LENGTH]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureService:
    """Erases all that one agent stores about a subject (a person or thing), or all data of the agent.

    `logs` are the log files of the database and the daemon that this process can read.
    """

    scope: AgentScope
    logs: tuple[Path, ...] = ()

    async def plan(self, subject: str, *, also: Sequence[str] = ()) -> ErasurePlan:
        """Return what the erasure of a subject, under all its known names and those in `also`, would affect."""
        async with self.scope.transaction() as tx:
            return await self._plan(tx, subject, also)

    async def erase(self, subject: str, *, token: str, reason: str, also: Sequence[str] = ()) -> ErasurePlan:
        """Erase a subject, and all memories derived from it, in one transaction; return the plan that was carried out.

        Afterwards the names are overwritten in the logs, and `remains` of the plan says what a scan of all tables and
        logs still finds. Raises ConflictError if `token` is not that of the current plan, and InputError for a reason
        that contains a name of the subject, because the reason stays stored.
        """
        plan = await self._erase(subject, token=token, reason=reason, also=also)
        text_scan.mask_in_logs(self.logs, plan.names)
        async with self.scope.transaction() as tx:
            remains = await text_scan.count_matches(tx, plan.pattern, agent_id=self.scope.agent_id)
        return replace(plan, remains={**remains, **text_scan.count_in_logs(self.logs, plan.names)})

    async def _erase(self, subject: str, *, token: str, reason: str, also: Sequence[str]) -> ErasurePlan:
        async with self.scope.write() as (tx, ctx):
            plan = await self._plan(tx, subject, also)
            if token != plan.token:
                raise ConflictError(
                    "The data to erase has changed since the plan was shown.",
                    hint="Run the command again without --confirm; it shows the new plan and a new token.",
                )
            reason, pattern = clean_text(reason, what="reason"), plan.pattern
            if re.search(pattern, reason, re.IGNORECASE):
                raise InputError(
                    "The reason names the subject to erase.",
                    hint="Omit the name from the reason, because the reason stays stored.",
                )
            for decision_id in plan.decisions:
                await decisions.erase(tx, decision_id, reason=reason, ctx=ctx)
            if plan.memories:
                await forget(tx, [memory[0] for memory in plan.memories], derived=True, reason=reason, ctx=ctx)
            ids, kinds = [related[0] for related in plan.related], [related[1] for related in plan.related]
            record = {"now": ctx.now, "reason": reason, "origin": ctx.origin}
            await SQL["record_forgotten"].execute(tx, agent_id=ctx.agent_id, ids=ids, kinds=kinds, **record)
            await SQL["redact_references"].execute(tx, agent_id=ctx.agent_id, ids=ids, pattern=pattern)
            for tenet_id in plan.tenets:
                await _erase_tenet(tx, tenet_id, IdentityEdit(ctx=ctx, reason=reason))
            counts = {name: len(getattr(plan, name)) for name in ("memories", "decisions", "tenets")}
            self.scope.publish("subject.erased", counts)
            return plan

    async def erase_agent(self) -> None:
        """Delete all data of the agent, except its access tokens."""
        async with self.scope.write() as (tx, ctx):
            await SQL["erase_agent"].execute(tx, agent_id=ctx.agent_id)
            clear(agent_id=ctx.agent_id, now=ctx.now)

    async def _plan(self, tx: Tx, subject: str, also: Sequence[str]) -> ErasurePlan:
        agent_id, subject = self.scope.agent_id, clean_text(subject, what="subject").strip()
        also = [clean_text(name, what="name").strip() for name in also]
        names = await self._find_names(tx, subject, also)
        keys = list({key for name in names.spellings for key in (normalize_name(name), name.casefold(), name.lower())})
        archived = await text_scan.list_archived_texts(tx, agent_id=agent_id)
        expression = re.compile(names.pattern)
        memories = await SQL["find_memories_about"].fetch_all(
            tx,
            agent_id=agent_id,
            keys=keys,
            pattern=names.pattern,
            shipped=procedures.DISK_ORIGIN,
            archived=[memory_id for memory_id, text in archived.items() if expression.search(text)],
        )
        tenets = await SQL["find_tenets"].fetch_all(tx, agent_id=agent_id, pattern=names.pattern)
        related = await SQL["find_other_records"].fetch_all(tx, agent_id=agent_id, pattern=names.pattern)
        if not memories and not tenets and not related:
            raise _not_found(subject, names.near_misses)
        return ErasurePlan(
            agent_id=agent_id,
            names=names.spellings,
            pattern=names.pattern,
            near_misses=names.near_misses,
            memories=[tuple(row) for row in memories if row["kind"] != "decision"],
            decisions=[row["memory_id"] for row in memories if row["kind"] == "decision"],
            tenets=[row["tenet_id"] for row in tenets],
            related=[tuple(row) for row in related],
        )

    async def _find_names(self, tx: Tx, subject: str, also: Sequence[str]) -> PersonNames:
        """Return the names of the subject that the texts of the agent and its entities state."""
        agent_id, key = self.scope.agent_id, normalize_name(subject)
        rows = await SQL["list_names"].fetch_all(tx, agent_id=agent_id)
        own = [row for row in rows if key in map(normalize_name, (row["name"], *row["aliases"]))]
        others = [row["name"] for row in rows if row not in own and " " in row["name"]]
        lines = await text_scan.list_lines(tx, agent_id=agent_id)
        aliases = [name for row in own for name in (row["name"], *row["aliases"])]
        return await asyncio.to_thread(find_person_names, subject, aliases, lines, others=others, also=also)


def _not_found(subject: str, near_misses: Sequence[NameNearMiss]) -> InputError:
    similar = ", ".join(repr(one.name) for one in near_misses[:MAX_NAMED_NEAR_MISSES])
    hint = f"Similar names are stored: {similar}." if similar else "`newton entities` lists the known names."
    return InputError(f"Nothing is stored about {subject!r}.", hint=hint)


async def _erase_tenet(tx: Tx, tenet_id: UUID, edit: IdentityEdit) -> None:
    """Erase the text of a line of the identity, unless it was erased already with another line of the same text."""
    tenets = await identity_store.list_tenets(tx, agent_id=edit.ctx.agent_id)
    if any(tenet.tenet_id == tenet_id and tenet.words for tenet in tenets):
        await identity_store.erase(tx, str(tenet_id), edit=edit)
