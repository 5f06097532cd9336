"""Application of checked items, which a reconciliation or a tool of the chat model has proposed, to stored data."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from uuid import UUID

from pydantic import ValidationError

from newton.agent.reconciliation.fact_changes import FactChanger, StoredLine
from newton.agent.reconciliation.line_changes import LineChange, LineEffect, insert_changes
from newton.agent.reconciliation.unkept_lines import hide_read
from newton.brain import decisions
from newton.brain.decisions import DecisionAmendment
from newton.content.skills import SkillFile, make_slug
from newton.db.pool import Tx, savepoint
from newton.db.queries import load
from newton.dialogue import message_queues
from newton.errors import ConflictError, InputError, NotFoundError
from newton.heart import episodes, procedures
from newton.heart.episodes import EpisodeSummary
from newton.heart.identity import identity_store, user_rules
from newton.heart.identity.identity_store import IdentityEdit, MessageRef
from newton.heart.identity.standing_wishes import StandingInstruction
from newton.heart.identity.tenets import IdentityTenet
from newton.heart.identity.user_rules import RuleSource
from newton.heart.lifecycle.engine import LifecycleContext
from newton.heart.reconciliation.line_statements import LineStatement, relate, restore_case
from newton.heart.reconciliation.reconciling_types import CheckedItem, NewLine, Operation
from newton.memory.memory import lowest_trust
from newton.memory.representations import one_line

SQL = load("newton.agent.reconciliation", "item_application.sql")

MAX_TITLE = 60
_ENDS: frozenset[Operation] = frozenset({"end", "retract"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationContext:
    """The origin, trust and time of changes (`ctx`), the user's names, and the time zone of days."""

    ctx: LifecycleContext
    user_names: Sequence[str] = ()
    zone: tzinfo | None = None


@dataclass(frozen=True, slots=True)
class AppliedItems:
    """The effects of the applied items (proposed changes), and the items that failed, each with the reason."""

    changes: tuple[LineChange, ...] = ()
    failed: tuple[tuple[CheckedItem, str], ...] = ()


async def apply_items(tx: Tx, items: Sequence[CheckedItem], context: ApplicationContext) -> AppliedItems:
    """Apply checked items (changes that a model proposed) in an open transaction, and record their effects.

    Each is applied to what is stored now, with the trust, origin and time of its line. What a person changed, said or
    deleted since the items were proposed is kept: such an item fails alone.
    """
    lines = await _load_lines(tx, items, context.ctx)
    facts = FactChanger(tx=tx, ctx=context.ctx, lines=lines, user_names=context.user_names, zone=context.zone)
    applier = _ItemApplier(tx=tx, context=context, facts=facts)
    failed: list[tuple[CheckedItem, str]] = []
    facts.plan(items)
    for item in items:
        count = len(facts.changes)
        try:
            async with savepoint(tx):
                await applier.apply(item)
        except (ConflictError, InputError, NotFoundError) as error:
            del facts.changes[count:]
            failed.append((item, error.what))
    await facts.finish()
    await insert_changes(tx, facts.changes, ctx=context.ctx)
    return AppliedItems((*facts.changes, *applier.hidden), tuple(failed))


async def list_drafts(tx: Tx, lines: Sequence[NewLine], *, agent_id: UUID) -> Mapping[UUID, UUID]:
    """Return the facts that only these lines state, each with the memory id of its line."""
    ids = [line.memory_id for line in lines]
    rows = await SQL["list_drafts"].fetch_all(tx, agent_id=agent_id, line_ids=ids)
    return {row["memory_id"]: row["line_id"] for row in rows}


async def _load_lines(tx: Tx, items: Sequence[CheckedItem], ctx: LifecycleContext) -> Mapping[UUID, StoredLine]:
    """Return the stored messages of the items, each with the facts that it states, by memory id."""
    said = {item.line.memory_id: item.line for item in items if item.line}
    stated = defaultdict[UUID, list[LineStatement]](list)
    for row in await SQL["list_stated"].fetch_all(tx, agent_id=ctx.agent_id, line_ids=list(said)):
        text = restore_case(row["text"], said[row["line_id"]].text)
        stated[row["line_id"]].append(LineStatement(row["memory_id"], text, row["subject"]))
    rows = await SQL["list_lines"].fetch_all(tx, agent_id=ctx.agent_id, line_ids=list(said))
    return {
        row["memory_id"]: StoredLine(
            memory_id=row["memory_id"],
            session_id=row["thread_id"],
            position=row["position"],
            session=row["session"],
            trust=lowest_trust([row["trust"], said[row["memory_id"]].trust]),
            origin=row["origin"],
            said_at=row["said_at"],
            stated=tuple(stated[row["memory_id"]]),
        )
        for row in rows
    }


@dataclass(slots=True, kw_only=True)
class _ItemApplier:
    """Applies one item after the other, as the kind of what it concerns (rule, procedure, decision, fact) requires."""

    tx: Tx
    context: ApplicationContext
    facts: FactChanger
    hidden: list[LineChange] = field(default_factory=list[LineChange])  # already recorded

    async def apply(self, item: CheckedItem) -> None:
        """Apply an item as its operation and the kinds of its known items require."""
        kinds = {one.kind for one in item.known}
        if item.op == "hide":
            await self._hide(item)
        elif item.op in ("rule", "wish") or kinds & {"rule", "wish"}:
            await self._apply_rule(item)
        elif item.op == "procedure" or kinds == {"procedure"}:
            await self._apply_procedure(item)
        elif item.op == "episode":
            await self._apply_episode(item)
        elif kinds == {"decision"} and await self._amend_decisions(item):
            return
        else:
            await self.facts.apply(item)

    def _find_line(self, item: CheckedItem) -> tuple[StoredLine, LifecycleContext]:
        line = self.facts.find_line(item)
        return line, replace(self.context.ctx, trust=line.trust, origin=line.origin)

    async def _hide(self, item: CheckedItem) -> None:
        line_id, fact_ids = self.facts.find_line(item).memory_id, [one.item_id for one in item.known]
        self.hidden += await hide_read(self.tx, line_id, fact_ids, ctx=self.context.ctx)

    async def _apply_rule(self, item: CheckedItem) -> None:
        """Lift, change or lay down a rule or wish of the user. Raises InputError for a line outside of a session."""
        line, line_ctx = self._find_line(item)
        if line.session_id is None or line.position is None:
            raise InputError("A told episode lays down no rules.", hint="Say the rule in a session.")
        message, edit = MessageRef(line.session_id, line.position), IdentityEdit(ctx=line_ctx)
        source = RuleSource(message=message, said_at=line.said_at)
        ids = [one.item_id for one in item.known if one.kind in ("rule", "wish")]
        if ids and (item.op in _ENDS or item.op == "update") and not item.needs_approval and not item.contests:
            change = await user_rules.lift_rule(self.tx, ids, item.text or None, source=source, edit=edit)
            self._note("lifted", [one.tenet_id for one in change.removed], line)
            self._note("ruled", [change.added.tenet_id] if change.added else [], line)
        elif item.text and item.op in ("rule", "wish", "update"):
            part = "preference" if item.op == "wish" or {one.kind for one in item.known} == {"wish"} else "instruction"
            await self._lay_down(StandingInstruction(part, item.text), item, source, edit)

    async def _lay_down(
        self, rule: StandingInstruction, item: CheckedItem, source: RuleSource, edit: IdentityEdit
    ) -> None:
        """Put a rule in force unless the message has stated it already; propose it if a person must approve it."""
        line, _ = self._find_line(item)
        known = await identity_store.list_tenets(self.tx, agent_id=edit.agent_id)
        message = source.message
        same_message = [
            one for one in known if (one.session_id, one.position) == (message.session_id, message.position)
        ]
        names = self.context.user_names
        if any(relate(rule.text, one.words or "", user_names=names) != "differs" for one in same_message):
            return
        proposed: list[IdentityTenet] = []
        try:
            if item.needs_approval:
                raise ConflictError("A person must approve the rule.", hint="`newton identity` lists proposals.")
            change = await user_rules.apply_rule(self.tx, rule, source=source, edit=edit)
            self._note("ruled", [change.added.tenet_id] if change.added else [], line)
            self._note("lifted", [one.tenet_id for one in change.removed], line)
        except ConflictError:
            found = await identity_store.propose(self.tx, [rule], message_ref=source.message, edit=edit)
            proposed = [one.tenet for one in found]
        self._note("proposed", [one.tenet_id for one in proposed], line)

    async def _apply_procedure(self, item: CheckedItem) -> None:
        """Retire, change or add the procedure that an item concerns."""
        line, line_ctx = self._find_line(item)
        names = await self._find_procedure_names(item)
        if item.op in _ENDS and not item.contests:
            for name in names:
                await procedures.retire_procedure(self.tx, name, ctx=line_ctx)
            self._note("ended", [one.item_id for one in item.known], line)
        elif item.op == "update" and names and not item.contests:
            await procedures.put_procedure(self.tx, _to_skill(item.text, name=names[0]), ctx=line_ctx)
            self._note("replaced", [one.item_id for one in item.known], line)
        elif item.op == "procedure":
            memory_id = await procedures.add_procedure(self.tx, _to_skill(item.text), ctx=line_ctx)
            self._note("learnt", [memory_id] if memory_id else [], line)

    async def _find_procedure_names(self, item: CheckedItem) -> list[str]:
        if not item.known:
            return []
        versions = await procedures.list_versions(self.tx, agent_id=self.context.ctx.agent_id)
        names = {one.memory_id: one.name for one in versions}
        return [names[one.item_id] for one in item.known if one.item_id in names]

    async def _apply_episode(self, item: CheckedItem) -> None:
        """Set the summary of a conversation that has ended; an open session has no episode yet."""
        line, line_ctx = self._find_line(item)
        if line.session_id is None or line.position is None:
            return
        found = await message_queues.find_episode(self.tx, line.session_id, line.position, agent_id=line_ctx.agent_id)
        if found:
            title = one_line(item.text)[:MAX_TITLE].rstrip(" .")
            summary = EpisodeSummary(title=title, summary=item.text, outcome=None)
            await episodes.set_summary(self.tx, found, summary, ctx=line_ctx)

    async def _amend_decisions(self, item: CheckedItem) -> bool:
        """Add the text of a line to decisions; return False if the known items are facts about a decision.

        Their confidence and their outcome stay as they are, so that the calibration does not change.
        """
        line, line_ctx = self._find_line(item)
        ids = [one.item_id for one in item.known]
        rows = await SQL["list_decisions"].fetch_all(self.tx, agent_id=line_ctx.agent_id, memory_ids=ids)
        if not rows:
            return False
        day = f"{line.said_at.astimezone(self.context.zone):%Y-%m-%d}"
        texts = {"update": f"Changed on {day}: {item.text}", **dict.fromkeys(_ENDS, f"No longer holds since {day}.")}
        if text := texts.get(item.op) if not item.contests else f"In doubt since {day}: {item.text}":
            for row in rows:
                await decisions.amend(self.tx, row["memory_id"], DecisionAmendment(text=text), ctx=line_ctx)
            self._note("replaced" if item.op == "update" else "ended", [row["memory_id"] for row in rows], line)
        return True

    def _note(self, effect: LineEffect, target_ids: Sequence[UUID], line: StoredLine) -> None:
        self.facts.changes += [LineChange(effect, target_id, line.memory_id) for target_id in target_ids]


def _to_skill(text: str, *, name: str = "") -> SkillFile:
    """Return a procedure from a text of the form "name: step; step". Raises InputError if it has no step."""
    title, _, rest = text.partition(":")
    steps = tuple(step.strip() for step in rest.split(";") if step.strip())
    if not steps:
        raise InputError("A procedure needs a name and steps.", hint="Give them as `name: step; step`.")
    try:
        return SkillFile(name=name or make_slug(title), description=one_line(title), core=steps)
    except ValidationError as error:
        raise InputError("The procedure is not valid.", hint=str(error)) from None
