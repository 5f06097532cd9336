"""Erasure of everything said by or about a subject, or of a whole agent."""

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
    """Effects of an erasure: memories to delete (kind, short form), decisions that lose their text, identity lines;
    and `related`: contexts, tasks, documents, sessions, checkpoints and forget reasons that lose text or names."""

    agent_id: UUID
    names: tuple[str, ...]
    memories: Sequence[tuple[UUID, str, str]]
    decisions: Sequence[UUID]
    tenets: Sequence[UUID]
    related: Sequence[tuple[UUID, str]]

    @property
    def token(self) -> str:
        """Return a token of this exact plan, which confirms that the caller has seen it."""
        ids = [*(memory_id for memory_id, _, _ in self.memories), *self.decisions, *self.tenets]
        ids += [one for one, _ in self.related]
        return digest(str(self.agent_id), *self.names, *(str(one) for one in ids)).hex()[:TOKEN_LENGTH]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureService:
    """Erasure for one agent, by a person."""

    scope: AgentScope

    async def plan(self, subject: str) -> ErasurePlan:
        """Return what erasing a subject, under all its known names, would affect."""
        async with self.scope.transaction() as tx:
            return await self._plan(tx, subject)

    async def erase(self, subject: str, *, token: str, reason: str) -> ErasurePlan:
        """Erase a subject in one transaction, recorded first. Return what was erased.

        Derived memories are erased too. Raises ConflictError when `token` is not of the current plan, and InputError
        for a reason that names the subject, because the reason is kept.
        """
        async with self.scope.transaction() as tx:
            found = await self._plan(tx, subject)
            if token != found.token:
                raise ConflictError(
                    "The data to erase has changed since the plan was shown.",
                    hint="Run it without --confirm again, and pass the new token.",
                )
            ctx, why = self.scope.write_context(), clean_text(reason, what="reason")
            if re.search(_name_pattern(found.names), why, re.IGNORECASE):
                raise InputError(
                    "The reason names the subject to erase.", hint="Leave the name out: the reason is kept."
                )
            for decision_id in found.decisions:
                await decisions.erase(tx, decision_id, reason=why, ctx=ctx)
            if found.memories:
                await forget(tx, [one[0] for one in found.memories], derived=True, reason=why, ctx=ctx)
            await self._redact_related(tx, found, reason=why)
            for tenet_id in found.tenets:
                await self._erase_identity_line(tx, tenet_id, IdentityEdit(ctx=ctx, reason=why))
            about = {name: len(getattr(found, name)) for name in ("memories", "decisions", "tenets")}
            self.scope.publish("subject.erased", about)
            return found

    async def _redact_related(self, tx: Tx, plan: ErasurePlan, *, reason: str) -> None:
        ids, kinds = [one for one, _ in plan.related], [kind for _, kind in plan.related]
        noted = {"now": self.scope.now(), "reason": reason, "origin": self.scope.origin}
        await SQL["record_forgotten"].execute(tx, agent_id=self.scope.agent_id, ids=ids, kinds=kinds, **noted)
        await SQL["redact_references"].execute(
            tx, agent_id=self.scope.agent_id, ids=ids, pattern=_name_pattern(plan.names)
        )

    async def _erase_identity_line(self, tx: Tx, tenet_id: UUID, edit: IdentityEdit) -> None:
        held = {one.tenet_id for one in await identity_store.list_tenets(tx, agent_id=self.scope.agent_id) if one.words}
        if tenet_id in held:  # erased already with another line of the same text
            await identity_store.erase(tx, str(tenet_id), edit=edit)

    async def erase_agent(self) -> None:
        """Delete the agent with all its data. Access tokens remain."""
        async with self.scope.transaction() as tx:
            await SQL["erase_agent"].execute(tx, agent_id=self.scope.agent_id)
            clear(agent_id=self.scope.agent_id, now=self.scope.now())

    async def _plan(self, tx: Tx, subject: str) -> ErasurePlan:
        said = clean_text(subject, what="subject")
        rows = await SQL["find_aliases"].fetch_all(tx, agent_id=self.scope.agent_id, key=normalize_name(said))
        others = [name for row in rows for name in (row["name"], *row["aliases"])]
        names = tuple(sorted({said, *others}))
        keys = list({one for name in names for one in (normalize_name(name), name.casefold(), name.lower())})
        pattern = _name_pattern(names)
        about = await SQL["find_memories_about"].fetch_all(
            tx, agent_id=self.scope.agent_id, keys=keys, pattern=pattern, shipped=procedures.DISK_ORIGIN
        )
        tenets = await SQL["find_tenets"].fetch_all(tx, agent_id=self.scope.agent_id, pattern=pattern)
        beside = await SQL["find_other_records"].fetch_all(tx, agent_id=self.scope.agent_id, pattern=pattern)
        if not about and not tenets and not beside:
            raise InputError(f"Nothing is told of {said!r} or said by them.", hint="`newton entities` lists the names.")
        return ErasurePlan(
            agent_id=self.scope.agent_id,
            names=names,
            memories=[tuple(row) for row in about if row["kind"] != "decision"],
            decisions=[row["memory_id"] for row in about if row["kind"] == "decision"],
            tenets=[row["tenet_id"] for row in tenets],
            related=[tuple(row) for row in beside],
        )


def _name_pattern(names: Sequence[str]) -> str:
    """Return a regular expression that matches any of the names as a whole word."""
    return rf"(^|\W)({'|'.join(re.escape(name) for name in names)})(\W|$)"
