"""Changes of known facts that follow from no new line: merges, restatements, settled pairs, dropped facts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from newton.agent.reconciliation.line_changes import LineChange
from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import ConflictError
from newton.heart.facts import conflicts, fact_store
from newton.heart.facts.fact_edits import merge_duplicates
from newton.heart.facts.fact_store import NewFact
from newton.heart.lifecycle.engine import LifecycleContext, review
from newton.heart.reconciliation.known_checks import is_spoken
from newton.heart.reconciliation.reconciling_types import CheckedItem, KnownItem
from newton.heart.reconciliation.text_evidence import list_own_names, list_stems
from newton.heart.speakers import may_supersede
from newton.memory import store
from newton.memory.memory import TRUST_TIERS, Trust, digest

SQL = load("newton.agent.reconciliation", "known_changes.sql")


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownState:
    """A known fact as it is now.

    `is_open` means that it is valid now or later, and `is_vouched` that a person confirmed it. `stated_at` is the time
    of its last statement.
    """

    memory_id: UUID
    text: str
    state: str
    trust: Trust
    is_open: bool
    is_vouched: bool
    stated_at: datetime
    valid_from: datetime
    valid_to: datetime | None
    origin: str
    source: str | None


async def lock_facts(tx: Tx, ids: Sequence[UUID], *, agent_id: UUID) -> list[KnownState]:
    """Return facts as they are now, locked until the transaction ends."""
    rows = await SQL["lock_facts"].fetch_all(tx, agent_id=agent_id, memory_ids=sorted(ids))
    return [KnownState(**row) for row in rows]


@dataclass(frozen=True, slots=True)
class KnownChanger:
    """Applies proposed changes (items) of known facts that belong to no new line; adds the effects to `changes`."""

    tx: Tx
    ctx: LifecycleContext
    user_names: Sequence[str]
    changes: list[LineChange]

    async def apply(self, item: CheckedItem) -> None:
        """Apply an item. Raises ConflictError if what it concerns has changed since the model was called."""
        if item.op == "same":
            await self._merge(item.known)
        elif item.op == "update":
            await self._restate(item)
        elif item.op == "not_asserted":
            await self._drop_raw(item)
        else:
            await self._settle(item)

    async def _settle(self, item: CheckedItem) -> None:
        """Decide on two facts that may contradict each other: both hold, or the newer one replaces the older one."""
        first, second = (one.item_id for one in item.known)
        pairs = await conflicts.list_conflicts(self.tx, agent_id=self.ctx.agent_id, memory_id=first)
        pair = next((one for one in pairs if second in (one.first_id, one.second_id)), None)
        if pair is None or (item.op == "newer" and not pair.may_be_replaced):
            raise ConflictError("The pair is settled, or a person must decide on it.", hint="Nothing is to be done.")
        await conflicts.settle(self.tx, pair, "newer" if item.op == "newer" else "both", ctx=self.ctx)

    async def _merge(self, known: Sequence[KnownItem]) -> None:
        """Merge facts that say the same into the oldest of the highest trust, rather one without pronouns."""
        rows = await lock_facts(self.tx, [one.item_id for one in known], agent_id=self.ctx.agent_id)
        current = sorted(
            (row for row in rows if row.is_open),
            key=lambda row: (
                TRUST_TIERS.index(row.trust),
                is_spoken(row.text),
                not self._names_user(row.text),
                row.stated_at,
                row.memory_id,
            ),
        )
        pairs = [(row.memory_id, current[0].memory_id) for row in current[1:]]
        await merge_duplicates(self.tx, pairs, ctx=self.ctx)
        self.changes.extend(LineChange("merged", merged, None) for merged, _ in pairs)

    async def _restate(self, item: CheckedItem) -> None:
        """Replace facts by one statement, which has their lowest trust and their latest time."""
        rows = await lock_facts(self.tx, [one.item_id for one in item.known], agent_id=self.ctx.agent_id)
        trust = TRUST_TIERS[max((TRUST_TIERS.index(row.trust) for row in rows), default=-1)]
        is_free = all(
            row.is_open and row.state != "CORE" and may_supersede(trust, known=row.trust, is_confirmed=row.is_vouched)
            for row in rows
        )
        if not is_free or len(rows) < len(item.known):
            raise ConflictError("What the item concerns has changed meanwhile.", hint="Nothing is to be done.")
        newest, ids = max(rows, key=lambda row: (row.stated_at, row.memory_id)), [row.memory_id for row in rows]
        fact_ctx = replace(self.ctx, trust=trust, origin=newest.origin)
        fact = NewFact(
            ref=f"merged:{newest.memory_id}:{digest(item.text).hex()[:16]}",
            content=item.text,
            valid_from=newest.stated_at,
            subject=item.subject or None,
            source=newest.source,
            sources=tuple(ids),
        )
        doubtful = set[UUID]()
        for one in ids:
            pairs = await conflicts.list_conflicts(self.tx, agent_id=fact_ctx.agent_id, memory_id=one)
            doubtful |= {end for pair in pairs for end in (pair.first_id, pair.second_id)}
        if await fact_store.add_facts(self.tx, [fact], ctx=fact_ctx) != ["new"]:
            raise ConflictError("The statement is known already.", hint="Nothing is to be done.")
        new_id = await fact_store.find_fact_id(self.tx, fact, agent_id=fact_ctx.agent_id)
        for one in ids:
            await fact_store.supersede(self.tx, one, by_fact=new_id, ctx=fact_ctx)
        others = sorted(doubtful - {*ids})
        await store.add_links(self.tx, "contradicts", [(new_id, one) for one in others], ctx=fact_ctx)
        await review(self.tx, fact_ctx, "fact", [new_id, *others])
        self.changes.extend([LineChange("learnt", new_id, None), *(LineChange("replaced", one, None) for one in ids)])

    async def _drop_raw(self, item: CheckedItem) -> None:
        """Retract a fact in a person's words that is unclear alone, if another fact is from the same message."""
        ids = [one.item_id for one in item.known]
        raw = await SQL["list_raw"].fetch_all(self.tx, agent_id=self.ctx.agent_id, memory_ids=ids)
        rows = await lock_facts(self.tx, [row["memory_id"] for row in raw], agent_id=self.ctx.agent_id)
        dropped = [row.memory_id for row in rows if row.is_open and row.state != "CORE" and not row.is_vouched]
        if not dropped or item.contests:
            raise ConflictError("None of these facts is only words of a message.", hint="Nothing is to be done.")
        for one in dropped:
            await fact_store.retract(self.tx, one, ctx=self.ctx)
        self.changes.extend(LineChange("retracted", one, None) for one in dropped)

    def _names_user(self, text: str) -> bool:
        return bool(list_stems(" . ".join(list_own_names(self.user_names))) & list_stems(text))
