"""Formatting of results as plain text for terminals and pipes."""

import shlex
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from newton.memory.lookup import short_id
from newton.memory.representations import one_line
from newton.operations.contexts.context_text import format_context_line, format_layer_tokens, format_question
from newton.operations.text_format import format_replaced
from newton.runtime.cli.printing import print_notice, say, to_json
from newton.settings import DEFAULT_AGENT

if TYPE_CHECKING:  # the modules of these types load slowly
    from newton.memory.store import PlannedTransition
    from newton.runtime.chat_backend.view_models import (
        ContextView,
        ItemView,
        ProposalView,
        RuleChangeView,
        TurnView,
    )


def print_json(value: object) -> None:
    say(to_json(value))


def transition_to_json(transition: "PlannedTransition") -> dict[str, object]:
    return {
        "memory_id": str(transition.memory_id),
        "event": transition.event,
        "from_state": transition.from_state,
        "to_state": transition.to_state,
        "reason": transition.reason,
    }


def print_new_agent(name: str) -> None:
    """Print that the agent `name` was created, unless it is the default agent."""
    if name != DEFAULT_AGENT:
        print_notice(f"Created agent {name}.")
        print_notice(f"  If the name is a typing error, `newton agents delete {shlex.quote(name)}` deletes it.")


def print_new_project(name: str, agent: str) -> None:
    """Print that the project `name` of an agent was created."""
    of_agent = "" if agent == DEFAULT_AGENT else f" --agent {shlex.quote(agent)}"
    print_notice(f"Created project {name}.")
    print_notice(f"  If the name is a typing error, `newton projects delete {shlex.quote(name)}{of_agent}` deletes it.")


def print_notices(lines: Iterable[str]) -> None:
    """Print each line on standard error."""
    for line in lines:
        print_notice(line)


def print_receipt(turn: "TurnView", *, undo: str) -> None:
    """Print which facts were learnt from an input or ended by it, with `undo` (how to take that back), then what waits
    for approval.

    The `proposals` of the turn are left out, because `print_proposals` prints them.
    """
    parts = [("learnt", turn.learnt), ("no longer", turn.no_longer), ("kept out of memory", turn.kept_out)]
    told = [f"{name}: {' | '.join(map(one_line, texts))}" for name, texts in parts if texts]
    if told:
        print_notice(f"({'; '.join([*told, *([f'undo: {undo}'] if undo else [])])})")
    for line in turn.pending_approvals:
        if not any(short_id(one.line_id) in line for one in turn.proposals):
            print_notice(f"({line})")


def print_rule_changes(changes: "Sequence[RuleChangeView]", *, undo: str | None = None) -> None:
    """Print what an input changed in the user's rules. `undo` is how to take it back; None names a command."""
    for change in changes:
        way = undo or f"`newton identity {_find_undo_command(change)}`"
        print_notice(f"({format_rule_change(change)}. {way} takes it back; `newton identity` lists your rules.)")


def _find_undo_command(change: "RuleChangeView") -> str:
    if change.added and not change.removed:
        return f"remove {short_id(change.added.line_id)}"
    return f"rollback {change.version}"


def format_rule_change(change: "RuleChangeView") -> str:
    parts = [f"In force: {change.added.text}"] if change.added else []
    return ". ".join([*parts, *(f"No longer in force: {line.text}" for line in change.removed)])


def print_proposals(proposals: "Sequence[ProposalView]") -> None:
    """Print instructions of an input that may always apply, and the chat commands that accept or reject them."""
    texts = [format_proposal(proposal) for proposal in proposals]
    if len(texts) == 1:
        print_notice(f"\n(Should this always apply? {texts[0]}. /yes adds it to the identity, /no rejects it.)")
    elif texts:
        lines = "".join(f"\n  {number}. {text}" for number, text in enumerate(texts, 1))
        print_notice(
            f"\n(Should these always apply?{lines}\n/yes adds all to the identity, /yes 1 the first, /no rejects all.)"
        )


def format_proposal(proposal: "ProposalView") -> str:
    return f"{proposal.text}{format_replaced(one.text for one in proposal.conflicts_with)}"


def format_pending_proposals(proposals: "Sequence[ProposalView]") -> str:
    """Format the lines proposed for the identity in earlier conversations, with the commands that accept them."""
    if not proposals:
        return "No proposed identity lines are pending, in this conversation or another."
    lines = [f"{n}. {one.text}: `newton identity accept {short_id(one.line_id)}`" for n, one in enumerate(proposals, 1)]
    return "\n  ".join(["Identity lines proposed in earlier conversations, and the commands that accept them:", *lines])


def format_bundle(context: "ContextView") -> str:
    """Format a context by layer (section), with the score and evidence of each item and the best items left out."""
    lines = [
        format_context_line(
            context.frame,
            context.profile,
            f"{context.tokens} of {context.budget} tokens",
            best=context.best_evidence,
            sufficiency=context.sufficiency,
            has_nothing_relevant=context.has_nothing_relevant,
        ),
        f"reason: {context.frame['reason']}",
        format_question(context.question),
        f"bundle {context.bundle_id}",
        "each item: score, evidence (0: no match, about 1: clear match, -: not searched), text",
    ]
    for name, layer in context.layers.items():
        items = [(number, item) for number, item in enumerate(context.items, 1) if item.layer == name]
        if layer["used"]:
            lines.append(f"\n{format_layer_tokens(name, layer)}")
            lines += [f"  {number:>3}. {_format_item(item)}" for number, item in items]
            if name == "identity":
                lines += [f"       always {line}" for line in context.identity.lines]
    if context.dropped:
        lines.append(f"\n{context.dropped} candidates left out; the best of them:")
        lines += [f"       {_format_item(item)}  ({item.reason})" for item in context.near_misses]
    return "\n".join(lines)


def _format_item(item: "ItemView") -> str:
    return f"{item.score:.3f}  {'   -' if item.evidence is None else f'{item.evidence:.2f}'}  {one_line(item.text)}"


def format_refresh(turn: "TurnView") -> str:
    """Format whether and why a turn reused or rebuilt its context, and how it differs from the context before."""
    lines = [f"{turn.context_source}: {turn.context_reason}"]
    if turn.context_summary and (before := turn.context_summary.continued_from):
        lines.append(
            f"updated from context {short_id(before.bundle_id)}: {before.added} added, {before.evicted} removed"
        )
    return "\n".join(lines)
