"""Changes that the agent's model makes by a tool: with the trust of the user's message, or of the model alone.

A change that the user's message states passes the checks of a reconciliation and has the trust of the message. By
itself, the model can only make a fact unsettled or propose a rule; once it has read foreign text, it can do nothing.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast
from uuid import UUID

from newton.agent.reconciliation.item_application import ApplicationContext, apply_items
from newton.agent.reconciliation.known_items import find_named_item, is_id, list_user_names
from newton.agent.reconciliation.line_changes import LineEffect, read_receipt
from newton.agent.reconciliation.rulings import STATED_KINDS, MessagePlace, build_batch, load_lines_at
from newton.agent.reconciliation.unkept_lines import (
    MessageTopic,
    find_messages,
    find_named_messages,
    hide_messages,
)
from newton.agent.scope import AgentScope
from newton.db.pool import Tx
from newton.errors import ConflictError, ForbiddenError, NewtonError, NotFoundError
from newton.heart.facts import conflicts
from newton.heart.facts.fact_store import NewFact
from newton.heart.identity import identity_store
from newton.heart.identity.identity_store import IdentityEdit
from newton.heart.identity.standing_wishes import StandingInstruction
from newton.heart.reconciliation.asserted_changes import asserts_change
from newton.heart.reconciliation.authority import find_authority, lifts_wish, refers_to
from newton.heart.reconciliation.citations import (
    asks_to_end,
    asks_to_lift,
    is_limited,
    says_statement,
    supports_change,
    wants_forgotten,
)
from newton.heart.reconciliation.item_checks import check_items
from newton.heart.reconciliation.line_sources import LineSources, affirms
from newton.heart.reconciliation.line_statements import relate
from newton.heart.reconciliation.quoted_text import split_own_words
from newton.heart.reconciliation.reconciling_types import (
    KnownItem,
    KnownKind,
    NewLine,
    Operation,
    ProposedItem,
    ReconcilingInput,
)
from newton.heart.reconciliation.text_evidence import list_stems, share_stems
from newton.heart.speakers import concerns_safety
from newton.heart.statements.statement_selection import select_statements
from newton.heart.wills.will_reader import asks_to_forget, is_about, read_will
from newton.ids import new_id
from newton.memory.lookup import find_by_suffix, read_memory
from newton.memory.memory import PERSON_TIERS
from newton.text.questions import is_only_question
from newton.text.sentences import split_sentences

RULE_KINDS: tuple[KnownKind, ...] = ("rule", "wish")
HIDDEN_HINT = "It stays in this conversation and out of all others. `newton forget` deletes it for good."
ASK_USER = "Ask the user to say it in a message of their own, and call the tool again then."


class ToolChange(NamedTuple):
    """A change of memory that a model asks for: its kind, the item (an id or words), and the new text."""

    op: Operation
    name: str | None
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolChanger:
    """Makes changes for the model of one agent, in a turn that answers the message at `place`.

    `has_read_others` means that the prompt has text of a tool or the web.
    """

    scope: AgentScope
    place: MessagePlace
    has_read_others: bool

    async def change(self, change: ToolChange) -> Mapping[str, object]:
        """Make the change, and return its effects as fields of a tool's result.

        Raises NotFoundError for an unknown item, ConflictError if several fit or it has changed, and ForbiddenError if
        only the user may ask for this. Then nothing is changed.
        """
        batch = await self._load_batch(change)
        line, known = batch.lines[-1], batch.known
        if find_authority(batch, line.number, change.text, known) in PERSON_TIERS and self._says(batch, change):
            return await self._apply(batch, change)
        if self.has_read_others or not change.text:
            raise ForbiddenError("The user's message does not say this.", hint=ASK_USER)
        async with self.scope.write("agent") as (tx, _):
            return await (self._contest(tx, known[0], change.text) if known else self._propose(tx, change.text))

    def _says(self, batch: ReconcilingInput, change: ToolChange) -> bool:
        """Return whether the user's message says the change: word for word if the model has read texts of others."""
        line, names, known = batch.lines[-1], batch.user_names, [one.text for one in batch.known]
        if any(one.kind == "fact" and (one.state == "CORE" or concerns_safety(one.text)) for one in batch.known):
            return False  # an app may relay the message, and only a person ends these
        own, foreign = split_own_words(line.text)
        if change.op in RULE_KINDS and not change.text:
            return asks_to_lift(own) or any(lifts_wish(line, one) and not is_limited(own) for one in batch.known)
        if change.op == "retract":
            return all(wants_forgotten(own, one, user_names=names) for one in known)
        if not (self.has_read_others or foreign):
            is_said = supports_change(own, change.text, known, user_names=names)
            is_said &= not known or asserts_change(own, change.text, known, user_names=names)
            return is_said or (bool(change.text) and _affirms_change(batch, change.text))
        if change.text:
            replaced = known[0] if known else ""
            return says_statement(own, change.text, user_names=names, instead_of=replaced)
        return all(asks_to_end(own, one, user_names=names) for one in known)

    async def forget(self, name: str) -> Mapping[str, object]:
        """Retract an item and hide the user's messages that say it, or hide messages by their id or words.

        After texts of others, messages are hidden only if the user's message asks for that in known words. Return what
        was done, as fields of a tool's result. Raises as `change` if nothing was done.
        """
        fields: Mapping[str, object] = {}
        failure: NewtonError | None = None
        try:
            fields = await self.change(ToolChange("retract", name))
        except (NotFoundError, ForbiddenError, ConflictError) as error:
            failure = error
        kept_out, no_longer = await self._hide(name)
        if failure and not kept_out and not no_longer:
            raise failure
        done = [*cast("list[str]", fields.get("done", [])), *(["hidden"] if kept_out else [])]
        return {**fields, "done": done, "hidden_messages": kept_out, "no_longer": no_longer, "hint": HIDDEN_HINT}

    async def _hide(self, name: str) -> tuple[Sequence[str], Sequence[str]]:
        """Hide the messages with this id or these words, if the user's message asks for that or refers to them.

        Return all messages and facts that it hid.
        """
        async with self.scope.write() as (tx, ctx):
            line = (await self._load_lines(tx, ""))[-1]
            memory_id = await self._find_id(tx, name)
            said = (await read_memory(tx, memory_id, agent_id=ctx.agent_id)).full_text if memory_id else name
            if line.source == "person" and line.trust in PERSON_TIERS and self._asks_to_hide(line, name, said):
                found = await self._find_messages(tx, memory_id, name, line)
                await hide_messages(tx, found, request_id=line.memory_id, ctx=ctx)
            receipt = await read_receipt(tx, line.memory_id, agent_id=ctx.agent_id)
            return receipt.kept_out, receipt.no_longer

    def _asks_to_hide(self, line: NewLine, name: str, said: str) -> bool:
        """Return whether a message asks to forget what is said, in known words or, as the model reads it, in none."""
        own, foreign = split_own_words(line.text)
        if wants_forgotten(own, said):
            return True
        will = read_will(own).will
        has_words = asks_to_forget(own) or (will is not None and will.is_likely)
        is_plain = not (has_words or self.has_read_others or foreign or is_limited(own) or is_only_question(own))
        return is_plain and refers_to(own, name)

    async def _find_id(self, tx: Tx, name: str) -> UUID | None:
        digits = name.strip().lstrip("#").lower().replace("-", "")
        return await find_by_suffix(tx, digits, agent_id=self.scope.agent_id) if is_id(digits) else None

    async def _find_messages(self, tx: Tx, memory_id: UUID | None, name: str, line: NewLine) -> list[UUID]:
        agent_id = self.scope.agent_id
        if memory_id:
            return await find_named_messages(tx, memory_id, request_id=line.memory_id, agent_id=agent_id)
        found = await find_messages(tx, MessageTopic(name, "", line.memory_id), agent_id=agent_id)
        # the message that asks is hidden with what it says itself, or if it says nothing else
        is_hidden = is_about(line.text, name) or (found and not select_statements(line.text))
        return [*found, line.memory_id] if is_hidden else found

    async def _load_batch(self, change: ToolChange) -> ReconcilingInput:
        """Return the user's message with those before it, and the item that the change concerns."""
        now = self.scope.now().astimezone()
        async with self.scope.transaction() as tx:
            names = await list_user_names(tx, self.scope)
            lines = await self._load_lines(tx, names[0] if names else "")
        kinds = RULE_KINDS if change.op in RULE_KINDS else STATED_KINDS
        known = (
            [await find_named_item(self.scope, change.name, lines, kinds=kinds, zone=now.tzinfo)] if change.name else []
        )
        return build_batch(lines, tuple(known), names=names, scope=self.scope)

    async def _load_lines(self, tx: Tx, user_name: str) -> tuple[NewLine, ...]:
        """Return the user's message after those before it. Raises ForbiddenError if there is none."""
        lines = await load_lines_at(tx, self.place, user_name=user_name, scope=self.scope)
        if not lines:
            raise ForbiddenError("There is no message of the user.", hint=ASK_USER)
        return lines

    async def _apply(self, batch: ReconcilingInput, change: ToolChange) -> Mapping[str, object]:
        """Check the change as if a model had proposed it for the user's message, and apply it; return its effects."""
        ids = tuple(item.label for item in batch.known)
        item = ProposedItem(line=batch.lines[-1].number, op=_find_operation(change), ids=ids, text=change.text)
        answer = await asyncio.to_thread(check_items, [item], batch)
        if not answer.kept:
            raise ForbiddenError(f"Nothing was changed: {answer.dropped[0].reason}.", hint=ASK_USER)
        async with self.scope.write("agent") as (tx, ctx):
            context = ApplicationContext(ctx=ctx, user_names=batch.user_names, zone=batch.zone)
            applied = await apply_items(tx, answer.kept, context)
            if applied.failed:
                raise ConflictError(applied.failed[0][1], hint="`recall` shows what is known now.")
            self.scope.publish("lines.reconciled", {"changes": len(applied.changes)})
        effects = list[LineEffect](dict.fromkeys(one.effect for one in applied.changes))
        hint = "A person settles it: `newton conflicts`." if "unsettled" in effects else ""
        fields: dict[str, object] = {"done": effects or ["nothing new"], "was": [one.text for one in batch.known]}
        return {**fields, "now": answer.kept[0].text, "hint": hint}

    async def _contest(self, tx: Tx, item: KnownItem, text: str) -> Mapping[str, object]:
        """Store the text as the model's statement beside the fact that it contradicts."""
        if item.kind != "fact":
            raise ForbiddenError("Only the user changes this.", hint=ASK_USER)
        ctx = self.scope.write_context("agent")
        fact = NewFact(ref=str(new_id()), content=text, valid_from=ctx.now, subject=item.subject or None)
        await conflicts.contest(tx, item.item_id, fact, ctx=ctx)
        return {"done": ["unsettled"], "hint": f"The user's message does not say this, so both stand. {ASK_USER}"}

    async def _propose(self, tx: Tx, text: str) -> Mapping[str, object]:
        """Propose the text as a rule, unless the user's message has put it in force in other words."""
        known = await identity_store.list_tenets(tx, agent_id=self.scope.agent_id)
        heard = [one.words for one in known if one.words and (one.session_id, one.position) == self.place]
        if any(relate(text, words, user_names=()) != "differs" for words in heard):
            return {"done": ["nothing new"], "now": heard, "hint": "It is in force in the user's own words."}
        edit = IdentityEdit(ctx=self.scope.write_context("agent"))
        rule = [StandingInstruction("instruction", text)]
        await identity_store.propose(tx, rule, message_ref=None, edit=edit)
        return {"done": ["proposed"], "hint": "It applies once a person accepts it. Tell the user."}


def _affirms_change(batch: ReconcilingInput, text: str) -> bool:
    """Return whether the user's message only says yes to the assistant's last question, which has all that is new."""
    line = batch.lines[-1]
    is_bare = affirms(line.text) and not select_statements(line.text)
    answered = LineSources(batch).find_answered(line) if is_bare else None
    questions = [one for one in split_sentences(answered.text) if one.rstrip().endswith("?")] if answered else []
    new = list_stems(text) - frozenset[str]().union(*(list_stems(one.text) for one in batch.known))
    return bool(questions and new) and len(share_stems(new, list_stems(questions[-1]))) == len(new)


def _find_operation(change: ToolChange) -> Operation:
    """Return the operation of a reconciliation that corresponds to the change; a rule is added, changed or lifted."""
    if change.op not in RULE_KINDS or change.name is None:
        return change.op
    return "update" if change.text else "end"
