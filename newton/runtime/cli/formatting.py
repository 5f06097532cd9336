"""How answers look to a person: plain text that also reads well when it is piped."""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from newton.agent.services.memories import RememberResult
from newton.client.context import FrameSelection
from newton.cognition.bundles.bundle import Bundle
from newton.cognition.bundles.explanation import BundleExplanation, CandidateExplanation
from newton.cognition.bundles.replay import format_verdict
from newton.cognition.frames.selection import FrameChoice, FrameEvidence
from newton.content.profiles import Profile
from newton.errors import InputError
from newton.heart.identity.tenets import Tenet
from newton.memory.lookup import short_id
from newton.memory.transitions import AppliedTransition
from newton.runtime.chat_backend.view_models import (
    ContextView,
    ExplanationView,
    IdentityLineView,
    ItemView,
    ProposalView,
    TurnView,
)
from newton.runtime.cli.printing import json_of, say

REMEMBER_MESSAGES = {
    "new": "Remembered. ({id})",
    "confirmed": "Known already; confirmed once more. ({id})",
    "unchanged": "Known already; nothing changed. ({id})",
}


def print_json(value: object) -> None:
    say(json_of(value))


def pluralize(number: int, singular: str, plural: str | None = None) -> str:
    """
    >>> pluralize(1, "file"), pluralize(1_200, "file"), pluralize(2, "entry", "entries")
    ('1 file', '1,200 files', '2 entries')
    """
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def format_remember_result(result: RememberResult, transitions: Sequence[AppliedTransition]) -> str:
    """What became of a fact that was told, and of others through it."""
    others = [change for change in transitions if change.transition.memory_id != result.memory_id]
    return REMEMBER_MESSAGES[result.status].format(id=short_id(result.memory_id)) + format_transitions(others)


def format_transitions(transitions: Sequence[AppliedTransition]) -> str:
    """What became of memories, a line each."""
    return "".join(f"\n  {step.event}: {short_id(step.memory_id)} {micro}" for step, micro in transitions)


def print_notice(text: str) -> None:
    """A remark beside the answer; it never mixes with what a program reads."""
    sys.stdout.flush()  # where both go to one file, they stand in their order
    say(text, aside=True)


def print_status(text: str) -> None:
    """What is going on, in a line of its own that the next one takes the place of; only where a person watches."""
    if is_interactive():
        say(text, start="\r\x1b[K", end="", aside=True, flush=True)


def is_interactive() -> bool:
    """Whether a person sees remarks as they come."""
    return sys.stderr.isatty()


def write_page(path: Path, content: str) -> None:
    """Writes a page to a file. Raises InputError when it cannot be written."""
    try:
        path.write_text(content, encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"{path} cannot be written: {error.strerror}.", hint="Name a file in a folder of yours."
        ) from None
    print_notice(f"Written to {path}.")


# What it means for an answer that a source gave nothing.
MISSING_SOURCE_EFFECTS = {
    "embeddings": "memories were found by their words alone",
    "words": "memories were found by their meaning alone",
    "times": "what happened at the time asked for was not looked up",
    "memories": "nothing was searched for",
    "identity and constraints": "who you are to it and what is forbidden is not in it",
    "session": "where the conversation stands is not known",
    "entities and procedures": "nothing was looked up by name or trigger",
    "events": "what happened last was not looked up",
    "procedures": "one that was asked for may not be in it",
    "tasks": "`newton tasks` shows all of them",
}


def print_missing_sources(sources: Mapping[str, str]) -> None:
    for source, why in sources.items():
        print_notice(
            f"({source} missing: {why}"
            + (f"; {MISSING_SOURCE_EFFECTS[source]})" if source in MISSING_SOURCE_EFFECTS else ")")
        )


def format_frame(choice: FrameSelection) -> str:
    """The frame, and how surely it was chosen."""
    next_one = f", then {choice['runner_up']}" if choice["runner_up"] else ""
    sure = "unsure" if choice["unsure"] else f"{choice['confidence']:.0%} sure"
    return f"frame {choice['name']} ({'forced' if choice['forced'] else sure + next_one})"


def print_hidden_identity_lines(lines: int, *, budget: int | None = None) -> None:
    """How many lines of the identity a context of so many tokens, or of the usual number, has no room for."""
    if lines:
        many = pluralize(lines, "line")
        command = f"newton identity --tokens {budget}" if budget else "newton identity"
        print_notice(f"({many} of the identity had no room in this context; `{command}` shows which)")


def format_replaced_lines(lines: Sequence[Tenet | IdentityLineView]) -> str:
    """What a line takes the place of, behind its words."""
    return f" (in the place of: {'; '.join(tenet.text for tenet in lines)})" if lines else ""


def print_proposals(proposals: Sequence[ProposalView]) -> None:
    """How to say yes to what a person seems to want from now on."""
    told = [format_proposal(wish) for wish in proposals]
    if len(told) == 1:
        print_notice(f"\n(Always? {told[0]}. /yes keeps it for good, /no drops it.)")
    elif told:
        lines = "".join(f"\n  {n}. {words}" for n, words in enumerate(told, 1))
        print_notice(f"\n(Always?{lines}\n/yes keeps all of it for good, /yes 1 only the first, /no drops it.)")


def format_proposal(proposal: ProposalView) -> str:
    """What is wanted, and what it takes the place of."""
    return f"{proposal.text}{format_replaced_lines(proposal.conflicts_with)}"


def format_pending_proposals(proposals: Sequence[ProposalView]) -> str:
    """What waits for a yes though it was not proposed here, and the commands that give it."""
    if not proposals:
        return "Nothing waits for a yes anywhere."
    listed = [
        f"{n}. {one.text}: `newton identity accept {short_id(one.line_id)}`" for n, one in enumerate(proposals, 1)
    ]
    return "\n  ".join(["What waits was proposed before; `newton identity reject` drops it:", *listed])


def format_bundle_line(context: ContextView) -> str:
    """A context in a line: frame, profile, tokens, and how near the nearest of it is to the input."""
    nearest = "" if context.best_evidence is None else f" · best evidence {context.best_evidence:.2f}"
    tokens = f"{context.tokens} of {context.budget} tokens"
    return f"{format_frame(context.frame)} · profile {context.profile} · {tokens}{nearest}"


def print_empty_filters(bundle: Bundle) -> None:
    """Which filters left nothing that could be chosen from."""
    left = bundle.unmatched_filters
    if said := [f"{name} {', '.join(values)}" for name, values in left.items()]:
        print_notice(f"(Nothing was left by the filters: {'; '.join(said)})")


def print_unknown_times(times: Sequence[str]) -> None:
    """That nothing is known of the times asked for."""
    if times:
        print_notice(f"(Nothing is known of the time asked for: {', '.join(times)})")


def format_bundle(context: ContextView) -> str:
    """What the model was given, by layer, each item with its score and its evidence."""
    lines = [
        format_bundle_line(context),
        f"because {context.frame['reason']}",
        f"bundle {context.bundle_id}",
        "each item: its score by the profile, and its evidence: 0 for none, about 1 for plain; - was looked up",
    ]
    for name, layer in context.layers.items():
        items = [(n, c) for n, c in enumerate(context.items, 1) if c.layer == name]
        if layer["used"]:
            lines.append(f"\n{name}  {layer['used']} tokens used, {layer['budget']} allotted")
            lines += [f"  {n:>3}. {_format_item(c)}" for n, c in items]
            if name == "identity":
                lines += [f"       always {line}" for line in context.identity.lines]
    if context.dropped:
        lines.append(f"\n{context.dropped} looked at and left out; the best of them:")
        lines += [f"       {_format_item(c)}  ({c.reason})" for c in context.near_misses]
    return "\n".join(lines)


def _format_item(item: ItemView) -> str:
    return f"{item.score:.3f}  {'   -' if item.evidence is None else f'{item.evidence:.2f}'}  {item.text}"


def format_refresh(turn: TurnView) -> str:
    """Whether the context was made for this input, and why; and what became of that which it continues."""
    lines = [f"{turn.context_source}: {turn.context_reason}"]
    if before := turn.context_summary.continued_from:
        lines.append(f"continues {short_id(before.bundle_id)}: {before.added} added, {before.evicted} evicted")
    return "\n".join(lines)


def truncate(text: str, max_chars: int) -> str:
    """
    >>> truncate("What is\\nthis?", 8)
    'What is …'
    """
    line = " ".join(text.split())
    return line if len(line) <= max_chars else f"{line[: max_chars - 1].rstrip()} …"


def format_bundle_explanation(explanation: BundleExplanation) -> str:
    """Why a context is as it is: the frame, the profile, each layer with what is in, and what just missed."""
    stored, trace = explanation.stored, explanation.stored.trace
    choice = trace.frame_choice
    moment = f" · as of {stored.as_of:%Y-%m-%d %H:%M}" if stored.as_of else ""
    session = f" · session {stored.session}" if stored.session else ""
    lines = [
        f"bundle {stored.bundle_id}",
        f"{stored.created_at:%Y-%m-%d %H:%M}{moment}{session} · {stored.tokens} of {stored.budget} tokens",
        f"input: {truncate(stored.input, 200)}",
        format_frame(choice.as_json()),
        f"  because {choice.reason}",
        *(f"  {name}: {_format_evidence(choice.evidence[name])}" for name in _leading_frames(choice)),
        f"profile {stored.profile}: {_format_weights(trace.assembly_input.profile)}",
        *(f"{source} missing: {why}" for source, why in trace.missing.items()),
    ]
    for name, layer in trace.layers.items():
        if layer.used or name in explanation.near_misses:
            lines += [
                "",
                f"{name}  {layer.used} tokens used, {layer.budget} allotted",
                *_format_layer(explanation, name),
            ]
    out = Counter(item.stored_candidate.reason for item in explanation.items if not item.stored_candidate.detail)
    if out:
        lines += ["", f"{out.total()} left out: {', '.join(f'{number} {why}' for why, number in out.most_common())}"]
    return "\n".join(lines)


def _format_weights(profile: Profile) -> str:
    return profile.expression or ", ".join(f"{name} {weight:g}" for name, weight in profile.weights.nonzero.items())


def _leading_frames(choice: FrameChoice) -> list[str]:
    return [name for name in (choice.frame, choice.runner_up) if name in choice.evidence and name is not None]


def _format_evidence(evidence: FrameEvidence) -> str:
    return f"patterns {evidence.pattern:.2f}, like its examples {evidence.example:.2f}, session's {evidence.prior:g}"


def _format_layer(explanation: BundleExplanation, name: str) -> list[str]:
    shown = [item for item in explanation.items if item.layer == name and item.rank]
    lines = [
        (
            f"  {item.rank:>3}. {item.stored_candidate.score:.3f}  {item.list_line}  "
            f"({item.stored_candidate.tokens} tokens, {_format_reason(item)})"
        )
        for item in shown
    ]
    if missed := explanation.near_misses.get(name):
        lines.append(f"  just missed: {missed.stored_candidate.score:.3f}  {missed.list_line}")
    return lines


def _format_reason(item: CandidateExplanation) -> str:
    return (
        f"{item.stored_candidate.reason}; {item.timely_reason}" if item.timely_reason else item.stored_candidate.reason
    )


def _format_weight(weight: float | None) -> str:
    return "" if weight is None else f" × {weight:g}"


def format_candidate_explanation(item: ExplanationView) -> str:
    """Why a memory is in the context, or is not: what each feature gave, what it rests on, and who came next."""
    parts = sorted(item.contributions.items(), key=lambda part: -abs(part[1]))
    lines = [
        item.text,
        f"{item.kind} {item.memory_id}" + (f" · ref {item.ref}" if item.ref else ""),
        f"{item.state}{', quarantined' if item.quarantined else ''} · on the word of the {item.trust}",
        *([item.time_note] if item.time_note else []),
        *([f"made from {', '.join(str(source) for source in item.sources)}"] if item.sources else []),
        f"{format_verdict(item.detail, item.reason)} · {item.tokens} tokens · score {item.score:.4f} =",
        *(
            f"  {gave:+.4f}  {name} {item.features[name]:.3f}{_format_weight(item.weights.get(name))}"
            for name, gave in parts
        ),
        f"  (cosine {item.features['cosine']:.3f}, words {item.features['lexical']:.3f})",
    ]
    if item.near_miss:
        lines.append(f"just missed in {item.layer}: {item.near_miss.score:.4f}  {item.near_miss.text}")
    return "\n".join(lines)
