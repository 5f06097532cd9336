"""Application of checked items to facts: what a line adds, confirms, replaces, ends or makes unsettled."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta, tzinfo
from uuid import UUID

from newton.agent.reconciliation.known_changes import KnownChanger, KnownState, lock_facts
from newton.agent.reconciliation.line_changes import LineChange, LineEffect
from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import ConflictError
from newton.heart.facts import fact_edits, fact_store
from newton.heart.facts.attributes import normalize_subject
from newton.heart.facts.fact_edits import merge_duplicates
from newton.heart.facts.fact_store import NewFact
from newton.heart.lifecycle.engine import LifecycleContext, review
from newton.heart.reconciliation.known_checks import is_fragment
from newton.heart.reconciliation.line_statements import LineStatement, find_containing, find_resolved
from newton.heart.reconciliation.reconciling_types import CheckedItem, Operation
from newton.heart.speakers import may_supersede
from newton.heart.wills.will_reader import asks_to_forget
from newton.memory import store
from newton.memory.memory import Trust, digest, lowest_trust

SQL = load("newton.agent.reconciliation", "fact_changes.sql")

_STORED: frozenset[Operation] = frozenset({"add", "update", "decision"})
MAX_STATEMENT = 300  # characters of a line that stands for a statement


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredLine:
    """A message as it is stored now, with the facts that it states."""

    memory_id: UUID
    session_id: UUID | None
    position: int | None
    session: str | None
    trust: Trust
    origin: str
    said_at: datetime
    stated: tuple[LineStatement, ...] = ()

    @property
    def source(self) -> str:
        return f"session {self.session}" if self.session else "episode"

    def follows(self, other: "StoredLine") -> bool:
        """Return whether this message was said after the other one in the same session, with the same authority."""
        mine, theirs = ((one.session_id, one.trust, one.origin) for one in (self, other))
        return mine == theirs and (self.position or 0) > (other.position or 0)


@dataclass(slots=True, kw_only=True)
class FactChanger:
    """Applies changes that a model proposed (items) to facts, in one transaction. `changes` are the effects so far."""

    tx: Tx
    ctx: LifecycleContext
    lines: Mapping[UUID, StoredLine]
    user_names: Sequence[str]
    zone: tzinfo | None
    changes: list[LineChange] = field(default_factory=list[LineChange])
    _said: list[str] = field(default_factory=list[str])
    _named: set[UUID] = field(default_factory=set[UUID])
    _resolved: set[UUID] = field(default_factory=set[UUID])
    _stored: dict[UUID, dict[str, UUID]] = field(default_factory=lambda: defaultdict[UUID, dict[str, UUID]](dict))

    def plan(self, items: Sequence[CheckedItem]) -> None:
        """Find the facts in the person's words that the items are going to replace, before they are applied."""
        texts = defaultdict[UUID, list[str]](list)
        self._said = [item.text for item in items]
        for item in items:
            if item.op in _STORED and item.line and not item.contests:
                texts[item.line.memory_id].append(item.text)
                self._named |= {one.item_id for one in item.known}
        for line in self.lines.values():
            self._resolved |= self._find_resolved(line, texts).keys()

    async def finish(self) -> None:
        """Supersede or merge the facts in the person's words that the stored items together say in other words."""
        for line in self.lines.values():
            resolved, stored = self._find_resolved(line, self._stored), self._stored[line.memory_id].values()
            ids = sorted((resolved.keys() & self._resolved) - set(stored))
            line_ctx = replace(self.ctx, trust=line.trust, origin=line.origin)
            for row in await lock_facts(self.tx, ids, agent_id=self.ctx.agent_id):
                told, text = resolved[row.memory_id]
                if not row.is_open or row.state == "CORE" or row.is_vouched:
                    continue
                if told == line.memory_id:
                    by, besides = self._stored[told][text], [one.text for one in line.stated]
                    await fact_store.supersede(self.tx, row.memory_id, by_fact=by, ctx=line_ctx, besides=besides)
                else:  # nothing that the line says has changed
                    await merge_duplicates(self.tx, [(row.memory_id, self._stored[told][text])], ctx=line_ctx)

    def _find_resolved(self, line: StoredLine, texts: Mapping[UUID, Iterable[str]]) -> Mapping[UUID, tuple[UUID, str]]:
        """Return the facts of a line that the items on it say together, or that one on a later line says alone.

        `texts` are those of the items by line. Each fact has the line and the text that say most of it.
        """
        line_texts = [(line.memory_id, text) for text in texts.get(line.memory_id, ())]
        later = [
            (one.memory_id, text)
            for one in self.lines.values()
            for text in texts.get(one.memory_id, ())
            if one.follows(line)
        ]
        resolved = find_resolved(
            line.stated, [text for _, text in line_texts], named=self._named, user_names=self.user_names
        )
        found = {one: line_texts[n] for one, n in resolved.items()}
        for later_text in later:
            rest = [one for one in line.stated if one.memory_id not in found and not is_fragment(one.text)]
            resolved = find_resolved(rest, [later_text[1]], named=(), user_names=self.user_names, is_same_line=False)
            found |= dict.fromkeys(resolved, later_text)
        return found

    async def apply(self, item: CheckedItem) -> None:
        """Apply an item whose known items are facts, or that adds one.

        Raises ConflictError if a person has changed what the item concerns since the call.
        """
        if item.line is None:
            await KnownChanger(self.tx, self.ctx, self.user_names, self.changes).apply(item)
            return
        line = self.find_line(item)
        if item.op == "not_asserted":
            await self._withdraw(item, line)
            return
        targets = await self._lock(item, line) if item.known else []
        is_own = {one.item_id for one in item.known} <= {one.memory_id for one in line.stated}
        if item.known and not targets and not (is_own and item.op in _STORED):
            raise ConflictError("What the item concerns has changed meanwhile.", hint="Nothing is to be done.")
        line_ctx = replace(self.ctx, trust=line.trust, origin=line.origin)
        if item.op in ("add", "decision") or (item.op == "update" and not self._contests(item, targets, line)):
            await self._replace(item, line, targets, line_ctx)
        elif item.op == "confirm":
            await self._confirm(line, targets, line_ctx)
        elif item.op in ("end", "retract") and not self._contests(item, targets, line):
            await self._end(item, line, targets, line_ctx)
        else:
            await self._contest(item, line, targets, line_ctx)

    def find_line(self, item: CheckedItem) -> StoredLine:
        """Return the stored message of an item. Raises ConflictError if it was deleted meanwhile."""
        line = self.lines.get(item.line.memory_id) if item.line else None
        if line is None:
            raise ConflictError("The message was deleted meanwhile.", hint="Nothing is to be done.")
        return line

    async def _lock(self, item: CheckedItem, line: StoredLine) -> list[KnownState]:
        """Lock the known facts, and return those that are open and were not stated again after the line.

        A line does not change the facts that it states itself: these are the person's own words. It retracts them if
        it asks to forget them.
        """
        rows = await lock_facts(self.tx, [one.item_id for one in item.known], agent_id=self.ctx.agent_id)
        is_forgotten = item.op == "retract" and item.line is not None and asks_to_forget(item.line.text)
        stated = set[UUID]() if item.op == "confirm" or is_forgotten else {one.memory_id for one in line.stated}
        current = [row for row in rows if row.is_open and row.memory_id not in stated]
        return [row for row in current if row.stated_at <= line.said_at]

    def _contests(self, item: CheckedItem, targets: Sequence[KnownState], line: StoredLine) -> bool:
        """Return whether an item only contradicts the known facts, because its line may not replace them."""
        return item.contests or any(
            row.state == "CORE" or not may_supersede(line.trust, known=row.trust, is_confirmed=row.is_vouched)
            for row in targets
        )

    async def _replace(
        self, item: CheckedItem, line: StoredLine, targets: Sequence[KnownState], line_ctx: LifecycleContext
    ) -> None:
        """Store the statement, and let it supersede the known facts at once.

        A day in the future is part of the statement ("The flight is on 4 May"), not the day from which it holds.
        """
        standing = [one for one in line.stated if one.memory_id not in self._resolved]
        statement = find_containing(item.text, standing, user_names=self.user_names)
        new_id = await self._keep(statement, item, line_ctx) if statement else await self._store(item, line, line_ctx)
        for row in targets:
            if row.memory_id != new_id:
                besides = [*self._said, item.line.text if item.line else ""]
                await fact_store.supersede(self.tx, row.memory_id, by_fact=new_id, ctx=line_ctx, besides=besides)
                self._note("replaced", row.memory_id, line)
        self._stored[line.memory_id][item.text] = new_id

    async def _keep(self, statement: LineStatement, item: CheckedItem, line_ctx: LifecycleContext) -> UUID:
        """Keep the fact in the person's words, and add the subject if it has none."""
        if item.subject and not statement.subject:
            await fact_edits.set_subject(self.tx, statement.memory_id, item.subject, ctx=line_ctx)
        return statement.memory_id

    async def _store(self, item: CheckedItem, line: StoredLine, line_ctx: LifecycleContext) -> UUID:
        """Store a new fact; return its id."""
        fact = NewFact(
            ref=f"told:{line.memory_id}:{digest(item.text).hex()[:16]}",
            content=item.text,
            valid_from=self._find_start(item, line),
            subject=item.subject or None,
            attribute=_find_attribute(item),
            source=line.source,
            sources=(line.memory_id,),
            tags=("decision",) if item.op == "decision" else (),
        )
        (outcome,) = await fact_store.add_facts(self.tx, [fact], ctx=line_ctx)
        new_id = await fact_store.find_fact_id(self.tx, fact, agent_id=line_ctx.agent_id)
        await fact_store.ensure_not_inactive(self.tx, new_id, ctx=line_ctx)
        if outcome != "unchanged":
            self._note("learnt" if outcome == "new" else "confirmed", new_id, line)
        return new_id

    async def _confirm(self, line: StoredLine, targets: Sequence[KnownState], line_ctx: LifecycleContext) -> None:
        """Count the line as evidence of known facts, once. A fact of the line that says the same is merged."""
        stated = {one.memory_id: one for one in line.stated}
        for row in targets:
            if row.memory_id in stated:
                continue
            same = find_containing(row.text, line.stated, user_names=self.user_names)
            if same:
                await merge_duplicates(self.tx, [(same.memory_id, row.memory_id)], ctx=line_ctx)
            else:
                ref, day = f"told:{line.memory_id}:confirmed", f"{line.said_at.astimezone(self.zone):%Y-%m-%d}"
                source, at_line = f"{line.origin} {day}", replace(line_ctx, now=line.said_at)
                await fact_store.confirm(self.tx, row.memory_id, ref=ref, source=source, ctx=at_line)
            self._note("confirmed", row.memory_id, line)

    async def _end(
        self, item: CheckedItem, line: StoredLine, targets: Sequence[KnownState], line_ctx: LifecycleContext
    ) -> None:
        """End or retract the known facts; retract also a fact that would end before it begins."""
        for row in targets:
            # what ends before it begins never held
            is_void = line.said_at < row.valid_from >= self._find_end(item, line)
            if item.op == "retract" or is_void:
                await fact_store.retract(self.tx, row.memory_id, ctx=line_ctx)
                self._note("retracted", row.memory_id, line)
            else:
                line_text = item.line.text if item.line else ""
                await fact_store.keep_rest(self.tx, [(None, row.memory_id)], ctx=line_ctx, besides=[line_text])
                await self._set_end(row, self._find_end(item, line), line, line_ctx)

    async def _set_end(self, row: KnownState, ended: datetime, line: StoredLine, line_ctx: LifecycleContext) -> None:
        """End a fact, and those that it superseded, which would otherwise hold again."""
        at = max(ended, row.valid_from, row.stated_at)
        earlier = await SQL["list_predecessors"].fetch_all(self.tx, agent_id=line_ctx.agent_id, memory_id=row.memory_id)
        for one in earlier:
            await fact_edits.set_end(self.tx, one["memory_id"], max(at, one["valid_from"]), ctx=line_ctx)
        await fact_edits.set_end(self.tx, row.memory_id, at, ctx=line_ctx)
        self._note("ended", row.memory_id, line, former_end=row.valid_to)

    async def _contest(
        self, item: CheckedItem, line: StoredLine, targets: Sequence[KnownState], line_ctx: LifecycleContext
    ) -> None:
        """Store the line's statement as contradicting the known facts, which are unsettled until a person decides.

        If the line does not say the change, that is the model's reading of it.
        """
        assert item.line is not None
        if "line does not say the change" in item.weakened:
            line_ctx = replace(line_ctx, trust=lowest_trust([line.trust, "agent"]))
        text = item.text or " ".join(item.line.text.split())[:MAX_STATEMENT]
        statement = find_containing(text, line.stated, user_names=self.user_names)
        added_item = replace(item, op="add", text=text)
        new_id = (
            await self._keep(statement, added_item, line_ctx)
            if statement
            else await self._store(added_item, line, line_ctx)
        )
        pairs = [(new_id, row.memory_id) for row in targets if row.memory_id != new_id]
        await store.add_links(self.tx, "contradicts", pairs, ctx=line_ctx)
        await review(self.tx, line_ctx, "fact", [new_id, *(known for _, known in pairs)])
        for _, known in pairs:
            self._note("unsettled", known, line)

    async def _withdraw(self, item: CheckedItem, line: StoredLine) -> None:
        """Retract facts that a line states by its form only, as a dream or a quotation does."""
        stated = {one.memory_id for one in line.stated}
        rows = await lock_facts(
            self.tx, [one.item_id for one in item.known if one.item_id in stated], agent_id=self.ctx.agent_id
        )
        open_rows = [row for row in rows if row.is_open and row.state != "CORE" and not row.is_vouched]
        if not open_rows or item.contests:
            raise ConflictError("The line states none of these facts alone.", hint="Nothing is to be done.")
        for row in open_rows:
            await fact_store.retract(self.tx, row.memory_id, ctx=self.ctx)
            self._note("retracted", row.memory_id, line)

    def _find_end(self, item: CheckedItem, line: StoredLine) -> datetime:
        """Return the time at which a fact ends; for a day in the future its end, because the last day still counts."""
        is_later = item.when is not None and item.when > line.said_at.astimezone(self.zone).date()
        return self._to_start(item.when + timedelta(days=1)) if item.when and is_later else self._find_start(item, line)

    def _find_start(self, item: CheckedItem, line: StoredLine) -> datetime:
        """Return the time from which a statement is valid: the start of its day if past, else the line's time."""
        if item.when is None or item.when >= line.said_at.astimezone(self.zone).date():
            return line.said_at
        return self._to_start(item.when)

    def _to_start(self, day: date) -> datetime:
        return datetime.combine(day, time(), tzinfo=self.zone)

    def _note(
        self, effect: LineEffect, target_id: UUID, line: StoredLine, *, former_end: datetime | None = None
    ) -> None:
        self.changes.append(LineChange(effect, target_id, line.memory_id, former_end))


def _find_attribute(item: CheckedItem) -> str | None:
    """Return the attribute of a known fact that an item updates, if both are about the same."""
    known = {
        one.attribute
        for one in item.known
        if one.attribute and normalize_subject(one.subject) == normalize_subject(item.subject)
    }
    return known.pop() if item.op == "update" and len(known) == 1 else None
