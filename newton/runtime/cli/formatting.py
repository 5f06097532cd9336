"""Formatting of results as plain text for terminals and pipes."""

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from newton.cognition.assembly.context_notes import MISSING_SOURCES
from newton.cognition.assembly.fill import format_verdict
from newton.memory.lookup import short_id
from newton.operations.text_format import format_replaced, pluralize
from newton.runtime.cli.frame_text import format_frame, format_frame_features
from newton.runtime.cli.printing import print_notice, say, to_json
from newton.settings import DEFAULT_AGENT

if TYPE_CHECKING:  # the modules of these types load slowly
    from newton.agent.services.fact_intake import RememberReport
    from newton.client.context import LayerTokens, QuestionReport
    from newton.cognition.bundles.bundle import Bundle
    from newton.cognition.bundles.explanation import BundleExplanation
    from newton.cognition.frames.selection import FrameEvidence
    from newton.content.profiles import Profile
    from newton.memory.lookup import MemoryMention
    from newton.memory.transitions import AppliedTransition, PlannedTransition
    from newton.runtime.chat_backend.view_models import (
        ContextView,
        ExplanationView,
        ItemView,
        ProposalView,
        RuleChangeView,
        TurnView,
    )

REMEMBER_MESSAGES = {
    "new": "Remembered. ({id})",
    "confirmed": "The memory is already stored; it is now confirmed. ({id})",
    "unchanged": "The memory is already stored; nothing changed. ({id})",
}


def print_json(value: object) -> None:
    say(to_json(value))


def format_remember_report(report: "RememberReport", *, settle_command: str = "newton conflicts settle") -> str:
    """Format the result of storing a fact: its id, the facts that it replaced, and known facts that it may contradict.

    `settle_command` is the command shown for deciding which of two contradicting facts is right.
    """
    memory_id = short_id(report.result.memory_id)
    lines = [REMEMBER_MESSAGES[report.result.status].format(id=memory_id)]
    lines += [f"  {format_redactions(report.result.redacted)}"] if report.result.redacted else []
    lines += [f"  Replaced: {format_mention(one)}" for one in report.replaced]
    lines += [f"  May contradict: {format_mention(one)}" for one in report.contested]
    lines += (
        [f"  All these facts are kept. To say which is right: `{settle_command} {memory_id} newer|older|both|same`"]
        if report.contested
        else []
    )
    return "\n".join(lines)


def format_redactions(redacted: Mapping[str, int]) -> str:
    """Format the secrets, counted by kind, that were removed before a text was stored.

    >>> format_redactions({"jwt": 2, "password": 1})
    'Stored without 3 secrets: 2 jwt, 1 password.'
    """
    kinds = ", ".join(f"{number} {kind}" for kind, number in redacted.items())
    return f"Stored without {pluralize(sum(redacted.values()), 'secret')}: {kinds}."


def format_mention(mention: "MemoryMention") -> str:
    return f"{short_id(mention.memory_id)} {mention.text}"


def mention_to_json(mention: "MemoryMention") -> dict[str, str]:
    return {"memory_id": str(mention.memory_id), "text": mention.text}


def print_censor_warning(warning: str | None) -> None:
    """Print the warning of a censor (a prohibition) that a stored text matches; print nothing if it is None."""
    if warning:
        print_notice(f"(A censor forbids the text, which is stored nevertheless. The censor: {warning})")


def format_transitions(transitions: "Sequence[AppliedTransition]") -> str:
    """Format state transitions of memories, each on a line of its own after a line break."""
    return "".join(f"\n  {step.event}: {short_id(step.memory_id)} {micro}" for step, micro in transitions)


def transition_to_json(step: "PlannedTransition") -> dict[str, object]:
    return {
        "memory_id": str(step.memory_id),
        "event": step.event,
        "from_state": step.from_state,
        "to_state": step.to_state,
        "reason": step.reason,
    }


def print_debug_lines(lines: Sequence[str]) -> None:
    """Print the debug lines of a turn on standard error."""
    for line in lines:
        print_notice(line)


def print_new_agent(name: str) -> None:
    """Print that the agent `name` was created, unless it is the default agent."""
    if name != DEFAULT_AGENT:
        print_notice(f"Created agent {name}.")
        print_notice(f"  If the name is a typing error, `newton agents delete {shlex.quote(name)}` deletes it.")


def print_missing_sources(sources: Mapping[str, str]) -> None:
    for source, reason in sources.items():
        effect = f"; {MISSING_SOURCES[source].effect}" if source in MISSING_SOURCES else ""
        print_notice(f"({source} not available: {reason}{effect})")


def print_hidden_identity_lines(lines: int, *, budget: int | None = None) -> None:
    """Print that `lines` lines of the identity did not fit into a context; print nothing for 0.

    `budget` is the token budget of the context, or None for the setting `context_tokens`.
    """
    if lines:
        command = f"newton identity --max-tokens {budget}" if budget else "newton identity"
        print_notice(
            f"({pluralize(lines, 'line')} of the identity did not fit into the context; `{command}` shows which)"
        )


def print_receipt(turn: "TurnView", *, undo: str) -> None:
    """Print what was learnt from an input, what no longer holds, and how to take it back, if `undo` says it; then what
    waits for approval.

    The `proposals` of the turn are left out, because `print_proposals` prints them.
    """
    parts = [("learnt", turn.learnt), ("no longer", turn.no_longer), ("kept out of memory", turn.kept_out)]
    told = [f"{name}: {' | '.join(texts)}" for name, texts in parts if texts]
    if told:
        print_notice(f"({'; '.join([*told, *([f'undo: {undo}'] if undo else [])])})")
    for line in turn.pending_approvals:
        if not any(short_id(one.line_id) in line for one in turn.proposals):
            print_notice(f"({line})")


def print_rule_changes(changes: "Sequence[RuleChangeView]", *, undo: str | None = None) -> None:
    """Print what an input changed in the user's rules, and how to take it back: with `undo`, else with a command."""
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
        lines = "".join(f"\n  {n}. {text}" for n, text in enumerate(texts, 1))
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


def format_question(report: "QuestionReport") -> str:
    """Format the kind of question that the input asks, the words that decided, and the rules for gathering."""
    phrase = f" ({report['phrase']})" if report["phrase"] else ""
    return "; ".join([f"question: {report['kind']}{phrase}", *report["rules"]])


def format_bundle_line(context: "ContextView") -> str:
    """Format one line on a context: its frame (kind of input), scoring profile, tokens and best evidence."""
    best = "" if context.best_evidence is None else f" · best evidence {context.best_evidence:.2f}"
    best = " · no memories" if context.has_nothing_relevant else best
    best += "" if context.sufficiency is None else f" · sufficient with probability {context.sufficiency:.2f}"
    tokens = f"{context.tokens} of {context.budget} tokens"
    return f"{format_frame(context.frame)} · profile {context.profile} · {tokens}{best}"


def print_empty_filters(bundle: "Bundle") -> None:
    """Print the filters of a context that no memory matches; print nothing if there are none."""
    if filters := [_format_filter(name, values) for name, values in bundle.unmatched_filters.items()]:
        print_notice(f"(No memory matches these filters: {'; '.join(filters)})")


def _format_filter(name: str, values: Sequence[str]) -> str:
    if name in ("since", "until"):
        values = [f"{datetime.fromisoformat(value):%Y-%m-%d %H:%M}" for value in values]
    return f"{name} {', '.join(values)}"


def print_unknown_times(times: Sequence[str]) -> None:
    """Print the times named in an input at which no memory occurred; print nothing if there are none."""
    if times:
        print_notice(f"(No memory of the requested time: {', '.join(times)})")


def format_bundle(context: "ContextView") -> str:
    """Format a context by layer (section), with the score and evidence of each item and the best items left out."""
    lines = [
        format_bundle_line(context),
        f"reason: {context.frame['reason']}",
        format_question(context.question),
        f"bundle {context.bundle_id}",
        "each item: score, evidence (0: no match, about 1: clear match, -: not searched), text",
    ]
    for name, layer in context.layers.items():
        items = [(n, c) for n, c in enumerate(context.items, 1) if c.layer == name]
        if layer["used"]:
            lines.append(f"\n{_format_layer_tokens(name, layer)}")
            lines += [f"  {n:>3}. {_format_item(c)}" for n, c in items]
            if name == "identity":
                lines += [f"       always {line}" for line in context.identity.lines]
    if context.dropped:
        lines.append(f"\n{context.dropped} candidates left out; the best of them:")
        lines += [f"       {_format_item(c)}  ({c.reason})" for c in context.near_misses]
    return "\n".join(lines)


def _format_layer_tokens(name: str, layer: "LayerTokens") -> str:
    """Format the tokens that a layer of a context uses, its maximum, and its share if that is not the maximum.

    >>> _format_layer_tokens("procedures", {"share": 253, "ceiling": 4_000, "used": 374})
    'procedures  374 of at most 4,000 tokens (share 253)'
    """
    share = "" if layer["share"] == layer["ceiling"] else f" (share {layer['share']:,})"
    return f"{name}  {layer['used']:,} of at most {layer['ceiling']:,} tokens{share}"


def _format_item(item: "ItemView") -> str:
    return f"{item.score:.3f}  {'   -' if item.evidence is None else f'{item.evidence:.2f}'}  {item.text}"


def format_refresh(turn: "TurnView") -> str:
    """Format whether and why a turn reused or rebuilt its context, and how it differs from the context before."""
    lines = [f"{turn.context_source}: {turn.context_reason}"]
    if turn.context_summary and (before := turn.context_summary.continued_from):
        lines.append(
            f"updated from context {short_id(before.bundle_id)}: {before.added} added, {before.evicted} removed"
        )
    return "\n".join(lines)


def truncate(text: str, max_chars: int) -> str:
    """Join the lines of a text; cut it to about `max_chars` characters and an ellipsis if it is longer.

    >>> truncate("What is\\nthis?", 8)
    'What is …'
    """
    line = " ".join(text.split())
    return line if len(line) <= max_chars else f"{line[: max_chars - 1].rstrip()} …"


def format_bundle_explanation(explanation: "BundleExplanation") -> str:
    """Format the explanation of a context: frame, profile and, by layer (section), the items and the best left out."""
    stored, trace = explanation.stored, explanation.stored.trace
    choice = trace.frame_choice
    as_of = f" · as of {stored.as_of:%Y-%m-%d %H:%M}" if stored.as_of else ""
    session = f" · session {stored.session}" if stored.session else ""
    lines = [
        f"bundle {stored.bundle_id}",
        f"{stored.created_at:%Y-%m-%d %H:%M}{as_of}{session} · {stored.tokens} of {stored.budget} tokens",
        f"input: {truncate(stored.input, 200)}",
        format_frame(choice.as_json()),
        f"  reason: {choice.reason}",
        *format_frame_features(choice.as_json()),
        *(
            f"  {name}: {_format_evidence(choice.evidence[name])}"
            for name in (choice.frame, choice.runner_up)
            if name is not None and name in choice.evidence
        ),
        format_question(trace.assembly_input.gathering.as_json()),
        f"profile {stored.profile}: {_format_weights(trace.assembly_input.profile)}",
        *(f"{source} not available: {reason}" for source, reason in trace.missing.items()),
    ]
    for name, layer in trace.layers.items():
        if layer.used or name in explanation.near_misses:
            lines += ["", _format_layer_tokens(name, layer.as_json()), *_format_layer(explanation, name)]
    out = Counter(item.stored_candidate.reason for item in explanation.items if not item.stored_candidate.detail)
    if out:
        reasons = ", ".join(f"{number} {reason}" for reason, number in out.most_common())
        lines += ["", f"{out.total()} left out: {reasons}"]
    return "\n".join(lines)


def _format_weights(profile: "Profile") -> str:
    return profile.expression or ", ".join(f"{name} {weight:g}" for name, weight in profile.weights.nonzero.items())


def _format_evidence(evidence: "FrameEvidence") -> str:
    return f"patterns {evidence.pattern:.2f}, examples {evidence.example:.2f}, prior of the session {evidence.prior:g}"


def _format_layer(explanation: "BundleExplanation", name: str) -> list[str]:
    lines: list[str] = []
    for item in explanation.items:
        if item.layer == name and item.rank:
            candidate = item.stored_candidate
            reason = "; ".join(filter(None, (candidate.reason, item.note, item.contradiction_text)))
            score = f"{item.rank:>3}. {candidate.score:.3f}"
            lines.append(f"  {score}  {item.list_line}  ({candidate.tokens} tokens, {reason})")
    if missed := explanation.near_misses.get(name):
        lines.append(f"  best left out: {missed.stored_candidate.score:.3f}  {missed.list_line}")
    return lines


def format_candidate_explanation(item: "ExplanationView") -> str:
    """Format why a memory is in a context or not: its state, its score by feature, and the best memory left out."""
    if item.score is None or item.reason is None:
        return f"{item.text.strip()}\n{item.kind} {item.memory_id or ''}\nwhy: {item.found_by} · {item.tokens} tokens"
    parts = sorted(item.contributions.items(), key=lambda part: -abs(part[1]))
    assigned = {"similarity": "as the best match"} if item.origin == "standing" else {}
    weights = {name: f" × {weight:g}" for name, weight in item.weights.items()}
    lines = [
        item.text,
        f"{item.kind} {item.memory_id}" + (f" · ref {item.ref}" if item.ref else ""),
        f"{item.state}{', quarantined' if item.quarantined else ''} · trust {item.trust}",
        f"why: {item.found_by}",
        *([item.note] if item.note else []),
        *([item.contradiction_note] if item.contradiction_note else []),
        *([f"derived from {', '.join(str(source) for source in item.sources)}"] if item.sources else []),
        f"{format_verdict(item.detail, item.reason)} · {item.tokens} tokens · score {item.score:.4f} =",
        *(
            f"  {value:+.4f}  {assigned.get(name, name)} {item.features[name]:.3f}{weights.get(name, '')}"
            for name, value in parts
        ),
        f"  (cosine {item.features['cosine']:.3f}, words {item.features['lexical']:.3f})",
    ]
    if item.near_miss:
        lines.append(f"best left out of {item.layer}: {item.near_miss.score:.4f}  {item.near_miss.text}")
    return "\n".join(lines)
