"""How answers look to a person: plain text that also reads well when it is piped."""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from newton.agent.verbs import Kept
from newton.cognition.bundle import Bundle
from newton.cognition.explaining import Account, Item
from newton.cognition.framing import Choice, Evidence
from newton.cognition.replay import verdict
from newton.content.profiles import Profile
from newton.errors import InputError
from newton.heart.tenets import Tenet
from newton.memory.lookup import short
from newton.memory.transitions import Changed
from newton.runtime.cli.printing import json_of, say
from newton.runtime.talk.told import Contents, Explained, Framing, Line, Listed, Turned, Wish, framing

LEARNT = {
    "new": "Remembered. ({id})",
    "confirmed": "Known already; confirmed once more. ({id})",
    "unchanged": "Known already; nothing changed. ({id})",
}


def as_json(value: object) -> None:
    say(json_of(value))


def counted(number: int, what: str, many: str | None = None) -> str:
    """
    >>> counted(1, "file"), counted(1_200, "file"), counted(2, "entry", "entries")
    ('1 file', '1,200 files', '2 entries')
    """
    return f"{number:,} {what if number == 1 else many or what + 's'}"


def kept(kept: Kept, changed: Sequence[Changed]) -> str:
    """What became of a fact that was told, and of others through it."""
    others = [change for change in changed if change.step.memory_id != kept.memory_id]
    return LEARNT[kept.learnt].format(id=short(kept.memory_id)) + changes(others)


def changes(changed: Sequence[Changed]) -> str:
    """What became of memories, a line each."""
    return "".join(f"\n  {step.event}: {short(step.memory_id)} {micro}" for step, micro in changed)


def notice(text: str) -> None:
    """A remark beside the answer; it never mixes with what a program reads."""
    sys.stdout.flush()  # where both go to one file, they stand in their order
    say(text, aside=True)


def status(text: str) -> None:
    """What is going on, in a line of its own that the next one takes the place of; only where a person watches."""
    if watched():
        say(text, start="\r\x1b[K", end="", aside=True, flush=True)


def watched() -> bool:
    """Whether a person sees remarks as they come."""
    return sys.stderr.isatty()


def page(path: Path, content: str) -> None:
    """Writes a page to a file. Raises InputError when it cannot be written."""
    try:
        path.write_text(content, encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"{path} cannot be written: {error.strerror}.", hint="Name a file in a folder of yours."
        ) from None
    notice(f"Written to {path}.")


# What it means for an answer that a source gave nothing.
WITHOUT = {
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


def missing(sources: Mapping[str, str]) -> None:
    for source, why in sources.items():
        notice(f"({source} missing: {why}" + (f"; {WITHOUT[source]})" if source in WITHOUT else ")"))


def framed(choice: Framing) -> str:
    """The frame, and how surely it was chosen."""
    next_one = f", then {choice.runner_up}" if choice.runner_up else ""
    sure = "unsure" if choice.unsure else f"{choice.confidence:.0%} sure"
    return f"frame {choice.name} ({'forced' if choice.forced else sure + next_one})"


def unshown(lines: int, *, budget: int | None = None) -> None:
    """How many lines of the identity a context of so many tokens, or of the usual number, has no room for."""
    if lines:
        many = counted(lines, "line")
        command = f"newton identity --budget {budget}" if budget else "newton identity"
        notice(f"({many} of the identity had no room in this context; `{command}` shows which)")


def instead(standing: Sequence[Tenet | Line]) -> str:
    """What a line takes the place of, behind its words."""
    return f" (in the place of: {'; '.join(tenet.words for tenet in standing)})" if standing else ""


def proposed(wishes: Sequence[Wish]) -> None:
    """How to say yes to what a person seems to want from now on."""
    told = [wished(wish) for wish in wishes]
    if len(told) == 1:
        notice(f"\n(Always? {told[0]}. /yes keeps it for good, /no drops it.)")
    elif told:
        lines = "".join(f"\n  {n}. {words}" for n, words in enumerate(told, 1))
        notice(f"\n(Always?{lines}\n/yes keeps all of it for good, /yes 1 only the first, /no drops it.)")


def wished(wish: Wish) -> str:
    """What is wanted, and what it takes the place of."""
    return f"{wish.words}{instead(wish.instead_of)}"


def elsewhere(waiting: Sequence[Wish]) -> str:
    """What waits for a yes though it was not proposed here, and the commands that give it."""
    if not waiting:
        return "Nothing waits for a yes anywhere."
    listed = [f"{n}. {one.words}: `newton identity accept {short(one.tenet_id)}`" for n, one in enumerate(waiting, 1)]
    return "\n  ".join(["What waits was proposed before; `newton identity reject` drops it:", *listed])


def bundle_line(bundle: Contents) -> str:
    """A context in a line: frame, profile, tokens, and how near the nearest of it is to the input."""
    nearest = "" if bundle.nearest is None else f" · best evidence {bundle.nearest:.2f}"
    tokens = f"{bundle.tokens} of {bundle.budget} tokens"
    return f"{framed(bundle.frame)} · profile {bundle.profile} · {tokens}{nearest}"


def emptied(bundle: Bundle) -> None:
    """Which filters left nothing that could be chosen from."""
    left = bundle.left_nothing
    if said := [f"{name} {', '.join(values)}" for name, values in left.items()]:
        notice(f"(Nothing was left by the filters: {'; '.join(said)})")


def blank(times: Sequence[str]) -> None:
    """That nothing is known of the times asked for."""
    if times:
        notice(f"(Nothing is known of the time asked for: {', '.join(times)})")


def bundle_summary(bundle: Contents) -> str:
    """What the model was given, by layer, each item with its score and its evidence."""
    lines = [
        bundle_line(bundle),
        f"because {bundle.frame.reason}",
        f"bundle {bundle.bundle_id}",
        "each item: its score by the profile, and its evidence: 0 for none, about 1 for plain; - was looked up",
    ]
    for name, layer in bundle.layers.items():
        items = [(n, c) for n, c in enumerate(bundle.items, 1) if c.layer == name]
        if layer.used:
            lines.append(f"\n{name}  {layer.used} tokens used, {layer.budget} allotted")
            lines += [f"  {n:>3}. {_weighed(c)}" for n, c in items]
            if name == "identity":
                lines += [f"       always {line}" for line in bundle.identity.lines]
    if bundle.dropped:
        lines.append(f"\n{bundle.dropped} looked at and left out; the best of them:")
        lines += [f"       {_weighed(c)}  ({c.reason})" for c in bundle.nearly]
    return "\n".join(lines)


def _weighed(c: Listed) -> str:
    return f"{c.score:.3f}  {'   -' if c.evidence is None else f'{c.evidence:.2f}'}  {c.text}"


def came_about(given: Turned) -> str:
    """Whether the context was made for this input, and why; and what became of that which it continues."""
    lines = [f"{given.how}: {given.because}"]
    if before := given.contents.continued:
        lines.append(f"continues {short(before.bundle_id)}: {before.entered} entered, {before.gave_way} gave way")
    return "\n".join(lines)


def beginning(text: str, most: int) -> str:
    """
    >>> beginning("What is\\nthis?", 8)
    'What is …'
    """
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()} …"


def account(given: Account) -> str:
    """Why a context is as it is: the frame, the profile, each layer with what is in, and what just missed."""
    stored, trace = given.stored, given.stored.trace
    choice = trace.frame
    moment = f" · as of {stored.as_of:%Y-%m-%d %H:%M}" if stored.as_of else ""
    session = f" · session {stored.session}" if stored.session else ""
    lines = [
        f"bundle {stored.bundle_id}",
        f"{stored.created_at:%Y-%m-%d %H:%M}{moment}{session} · {stored.tokens} of {stored.budget} tokens",
        f"input: {beginning(stored.input, 200)}",
        framed(framing(choice)),
        f"  because {choice.reason}",
        *(f"  {name}: {_evidence(choice.evidence[name])}" for name in _ahead(choice)),
        f"profile {stored.profile}: {_weights(trace.setting.profile)}",
        *(f"{source} missing: {why}" for source, why in trace.missing.items()),
    ]
    for name, layer in trace.layers.items():
        if layer.used or name in given.missed:
            lines += ["", f"{name}  {layer.used} tokens used, {layer.budget} allotted", *_layer(given, name)]
    out = Counter(item.kept.reason for item in given.items if not item.kept.detail)
    if out:
        lines += ["", f"{out.total()} left out: {', '.join(f'{number} {why}' for why, number in out.most_common())}"]
    return "\n".join(lines)


def _weights(profile: Profile) -> str:
    return profile.expression or ", ".join(f"{name} {weight:g}" for name, weight in profile.weights.given.items())


def _ahead(choice: Choice) -> list[str]:
    return [name for name in (choice.frame, choice.runner_up) if name in choice.evidence and name is not None]


def _evidence(evidence: Evidence) -> str:
    return f"patterns {evidence.pattern:.2f}, like its examples {evidence.example:.2f}, session's {evidence.prior:g}"


def _layer(given: Account, name: str) -> list[str]:
    shown = [item for item in given.items if item.layer == name and item.number]
    lines = [
        f"  {item.number:>3}. {item.kept.score:.3f}  {item.brief}  ({item.kept.tokens} tokens, {_why(item)})"
        for item in shown
    ]
    if missed := given.missed.get(name):
        lines.append(f"  just missed: {missed.kept.score:.3f}  {missed.brief}")
    return lines


def _why(item: Item) -> str:
    return f"{item.kept.reason}; {item.of_the_time}" if item.of_the_time else item.kept.reason


def _by(weight: float | None) -> str:
    return "" if weight is None else f" × {weight:g}"


def explanation(item: Explained) -> str:
    """Why a memory is in the context, or is not: what each feature gave, what it rests on, and who came next."""
    parts = sorted(item.contributions.items(), key=lambda part: -abs(part[1]))
    lines = [
        item.text,
        f"{item.kind} {item.memory_id}" + (f" · ref {item.ref}" if item.ref else ""),
        f"{item.state}{', quarantined' if item.quarantined else ''} · on the word of the {item.trust}",
        *([item.of_the_time] if item.of_the_time else []),
        *([f"made from {', '.join(str(source) for source in item.sources)}"] if item.sources else []),
        f"{verdict(item.detail, item.reason)} · {item.tokens} tokens · score {item.score:.4f} =",
        *(f"  {gave:+.4f}  {name} {item.features[name]:.3f}{_by(item.weights.get(name))}" for name, gave in parts),
        f"  (cosine {item.features['cosine']:.3f}, words {item.features['lexical']:.3f})",
    ]
    if item.missed:
        lines.append(f"just missed in {item.layer}: {item.missed.score:.4f}  {item.missed.text}")
    return "\n".join(lines)
