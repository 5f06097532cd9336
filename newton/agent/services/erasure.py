"""Erasure, on request, of everything that is stored about a person or thing, or of a whole agent."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasurePlan:
    """The data that an erasure affects.

    `memories` are deleted (id, kind, short form); `decisions` and `tenets` (lines of the identity) lose their text.
    `related` are the ids and kinds of other records that contain one of the `names`, such as contexts, tasks and
    documents.
    """

    agent_id: UUID
    names: tuple[str, ...]
    memories: Sequence[tuple[UUID, str, str]]
    decisions: Sequence[UUID]
    tenets: Sequence[UUID]
    related: Sequence[tuple[UUID, str]]

    @property
    def token(self) -> str:
        """Return a hash of this plan. A caller passes it to `erase` to confirm exactly this plan."""
        ids = [*(memory_id for memory_id, _, _ in self.memories), *self.decisions, *self.tenets]
        ids += [related_id for related_id, _ in self.related]
        return digest(str(self.agent_id), *self.names, *map(str, ids)).hex()[:TOKEN_LENGTH]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureService:
    """Erases all that one agent stores about a subject (a person or thing), or all data of the agent."""

    scope: AgentScope

    async def plan(self, subject: str) -> ErasurePlan:
        """Return the data that the erasure of a subject, under all its known names, would affect."""
        async with self.scope.transaction() as tx:
            return await self._plan(tx, subject)

    async def erase(self, subject: str, *, token: str, reason: str) -> ErasurePlan:
        """Erase a subject, and all memories derived from it, in one transaction; return the plan that was carried out.

        Raises ConflictError if `token` is not that of the current plan, and InputError for a reason that contains a
        name of the subject, because the reason stays stored.
        """
        async with self.scope.write() as (tx, ctx):
            plan = await self._plan(tx, subject)
            if token != plan.token:
                raise ConflictError(
                    "The data to erase has changed since the plan was shown.",
                    hint="Run the command again without --confirm; it shows the new plan and a new token.",
                )
            reason, pattern = clean_text(reason, what="reason"), _name_pattern(plan.names)
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

    async def _plan(self, tx: Tx, subject: str) -> ErasurePlan:
        agent_id, subject = self.scope.agent_id, clean_text(subject, what="subject")
        rows = await SQL["find_aliases"].fetch_all(tx, agent_id=agent_id, key=normalize_name(subject))
        names = tuple(sorted({subject, *(name for row in rows for name in (row["name"], *row["aliases"]))}))
        keys = list({key for name in names for key in (normalize_name(name), name.casefold(), name.lower())})
        pattern = _name_pattern(names)
        memories = await SQL["find_memories_about"].fetch_all(
            tx, agent_id=agent_id, keys=keys, pattern=pattern, shipped=procedures.DISK_ORIGIN
        )
        tenets = await SQL["find_tenets"].fetch_all(tx, agent_id=agent_id, pattern=pattern)
        related = await SQL["find_other_records"].fetch_all(tx, agent_id=agent_id, pattern=pattern)
        if not memories and not tenets and not related:
            raise InputError(f"Nothing is stored about {subject!r}.", hint="`newton entities` lists the known names.")
        return ErasurePlan(
            agent_id=agent_id,
            names=names,
            memories=[tuple(row) for row in memories if row["kind"] != "decision"],
            decisions=[row["memory_id"] for row in memories if row["kind"] == "decision"],
            tenets=[row["tenet_id"] for row in tenets],
            related=[tuple(row) for row in related],
        )


async def _erase_tenet(tx: Tx, tenet_id: UUID, edit: IdentityEdit) -> None:
    """Erase the text of a line of the identity, unless it was erased already with another line of the same text."""
    tenets = await identity_store.list_tenets(tx, agent_id=edit.ctx.agent_id)
    if any(tenet.tenet_id == tenet_id and tenet.words for tenet in tenets):
        await identity_store.erase(tx, str(tenet_id), edit=edit)


def _name_pattern(names: Sequence[str]) -> str:
    """Return a regular expression that matches any of the names as a whole word."""
    return rf"(^|\W)({'|'.join(re.escape(name) for name in names)})(\W|$)"
