"""`newton identity`: who the agent is and what a person wants always; its versions, and what waits for a yes."""

from collections.abc import Mapping, Sequence
from typing import Annotated
from uuid import UUID

from cyclopts import Parameter

from newton.cognition.budget import allocate
from newton.cognition.identity import Presence, presence, room
from newton.errors import InputError
from newton.heart.identity import Version, Written, opposed
from newton.heart.tenets import Part, Tenet, difference
from newton.memory.lookup import short
from newton.runtime.cli import show
from newton.runtime.cli.options import Agent, AsJson, Budget, agreed, settings
from newton.runtime.cli.printing import say
from newton.runtime.opening import opened

Which = Annotated[str, Parameter(help="Its id, or the end of it as `newton identity` shows it.")]
Because = Annotated[str | None, Parameter(help="Why; it is kept with the version.")]

NONE_YET = 'Nothing holds always yet. `newton identity add instruction "Answer in metric units"`'
ERASED = "[erased]"


async def show_(*, budget: Budget = None, agent: Agent = None, json: AsJson = False) -> None:
    """Show what stands first in every context, and which lines of it a context has no room for.

    Example: newton identity
    """
    chosen = settings(agent)
    total = chosen.context_tokens if budget is None else budget
    if total < 1:
        raise InputError(f"A budget of {total} tokens holds nothing.", hint="Give 1 or more.")
    async with opened(chosen) as newton:
        bearing = newton.bearing("cli")
        identity, waiting = await bearing.identity(), await bearing.proposals()
        most = room(allocate(total).layers, newton.contexts.header_tokens)
    shown = presence(identity, most=most)
    if json:
        show.as_json(_plain(shown, most))
        return
    say("\n".join(_told(shown, most, total)) if identity.tenets else NONE_YET)
    if waiting:
        waits = "waits" if len(waiting) == 1 else "wait"
        show.notice(f"\n{show.counted(len(waiting), 'line')} {waits} for your yes: `newton identity proposals`")


async def add(
    part: Part,
    words: str,
    *,
    because: Because = None,
    beside: Annotated[bool, Parameter(negative=(), help="Also beside a line that goes against it.")] = False,
    agent: Agent = None,
) -> None:
    """Add a line to what stands first in every context.

    Example: newton identity add boundary "Never give legal advice"

    Parameters
    ----------
    part:
        What it is: what the agent must never do, what it is told to do, how it works, what it holds dear, what you
        prefer, or how it is.
    words:
        One line.
    """
    async with opened(settings(agent)) as newton:
        new = await newton.bearing("cli").add(part, words, because=because, beside=beside)
    say("It stands." if new else "It stands already; nothing changed.")


async def change(
    line: Which,
    words: str,
    *,
    part: Annotated[Part | None, Parameter(help="Put it in this part.")] = None,
    because: Because = None,
    agent: Agent = None,
) -> None:
    """Put other words in the place of a line.

    Example: newton identity change 3f9c2a71 "Never give legal or tax advice"
    """
    async with opened(settings(agent)) as newton:
        changed = await newton.bearing("cli").change(line, words, part=part, because=because)
    say("Changed." if changed else "These are its words already; nothing changed.")


async def remove(line: Which, *, because: Because = None, agent: Agent = None) -> None:
    """Take a line out. The versions that had it keep it, so a roll-back brings it back.

    Example: newton identity remove 3f9c2a71 --because "we moved to imperial units"
    """
    async with opened(settings(agent)) as newton:
        tenet = await newton.bearing("cli").remove(line, because=because)
    say(f"Taken out: {tenet.words}")


async def history(*, agent: Agent = None, json: AsJson = False) -> None:
    """Show every version: when, by whom, why, and what it changed.

    Example: newton identity history
    """
    async with opened(settings(agent)) as newton:
        versions, written = await newton.bearing("cli").history()
    words = {one.tenet_id: one for one in written}
    steps = list(zip([(), *(version.standing for version in versions)], versions, strict=False))
    if json:
        show.as_json([_version(version, before, words) for before, version in steps])
        return
    for before, version in steps:
        say("\n".join(_change(version, before, words)))
    if not versions:
        say(NONE_YET)


async def rollback(version: int, *, because: Because = None, agent: Agent = None) -> None:
    """Make the identity what it was in an earlier version. That is a version too, so it can be undone.

    Example: newton identity rollback 3
    """
    async with opened(settings(agent)) as newton:
        changed = await newton.bearing("cli").roll_back(version, because=because)
    say(f"As in version {version} again." if changed else f"It is as in version {version}; nothing changed.")


async def proposals(*, agent: Agent = None, json: AsJson = False) -> None:
    """List what waits for your yes: what you seemed to want from now on, and what the agent wishes for itself.

    Example: newton identity proposals
    """
    async with opened(settings(agent)) as newton:
        bearing = newton.bearing("cli")
        waiting, now = await bearing.proposals(), await bearing.identity()
    if json:
        show.as_json([_proposal(one, opposed(now, one.words or "")) for one in waiting])
        return
    for one in waiting:
        by = "you" if one.trust == "user" else f"the {one.trust}"
        words = f"{one.words}{show.instead(opposed(now, one.words or ''))}"
        say(f"{short(one.tenet_id)}  {one.part:<11}  {words}  ({one.at:%Y-%m-%d}, {one.origin}, said by {by})")
    if not waiting:
        say("Nothing waits for your yes.")


async def accept(proposal: Which, *, agent: Agent = None) -> None:
    """Say yes to a proposal: from now on it stands, in the place of what goes against it.

    Example: newton identity accept 3f9c2a71
    """
    async with opened(settings(agent)) as newton:
        tenet, standing = await newton.bearing("cli").accept(proposal)
    say(f"It stands: {tenet.words}{show.instead(standing)}")


async def reject(proposal: Which, *, agent: Agent = None) -> None:
    """Say no to a proposal.

    Example: newton identity reject 3f9c2a71
    """
    async with opened(settings(agent)) as newton:
        tenet = await newton.bearing("cli").reject(proposal)
    say(f"Dropped: {tenet.words}")


async def erase(
    line: Which,
    *,
    because: Annotated[str, Parameter(help="Why; it is kept.")],
    yes: Annotated[bool, Parameter(negative=(), help="Do not ask.")] = False,
    agent: Agent = None,
) -> None:
    """Take the words of a line or a proposal away for good, in every version. That there was one stays known.

    Example: newton identity erase 3f9c2a71 --because "it names somebody who asked for it"
    """
    if not yes and not agreed("Erase its words for good?"):
        raise InputError("Nothing was erased.", hint="Answer with y, or give --yes.")
    async with opened(settings(agent)) as newton:
        await newton.bearing("cli").erase(line, because=because)
    say("Erased. What was said in a conversation stays there; `newton forget` takes that away.")


def _told(shown: Presence, most: int, total: int) -> list[str]:
    used = sum(tenet.tokens for tenet in shown.shown)
    lines = [f"version {shown.version} · {used} of {most} tokens, in a context of {total:,}"]
    part = ""
    for tenet in (*shown.shown, *shown.unshown):
        lines += [f"\n{tenet.part}"] if tenet.part != part else []
        part = tenet.part
        lines.append(f"  {short(tenet.tenet_id)}  {tenet.words}{'  (no room)' if tenet in shown.unshown else ''}")
    if shown.unshown:
        lines.append(f"\n{show.counted(len(shown.unshown), 'line')} had no room: shorten or remove what stands above.")
    return lines


def _change(version: Version, before: Sequence[UUID], words: Mapping[UUID, Written]) -> list[str]:
    what = f"rolled back to {version.restored}" if version.restored else version.change
    why = f": {version.because}" if version.because else ""
    changed = difference(before, version.standing)
    return [
        f"{version.version:>4}  {version.at:%Y-%m-%d %H:%M}  {what} ({version.trust}, {version.origin}){why}",
        *(f"      - {_words(words[one])}" for one in changed.went),
        *(f"      + {_words(words[one])}" for one in changed.came),
    ]


def _words(one: Written) -> str:
    return f"{one.part}: {one.words or ERASED}"


def _plain(shown: Presence, most: int) -> dict[str, object]:
    return {
        "version": shown.version,
        "budget": most,
        "tokens": sum(tenet.tokens for tenet in shown.shown),
        "lines": [_tenet(tenet) | {"shown": tenet in shown.shown} for tenet in (*shown.shown, *shown.unshown)],
    }


def _tenet(tenet: Tenet) -> dict[str, object]:
    return {"tenet_id": str(tenet.tenet_id), "part": tenet.part, "words": tenet.words, "tokens": tenet.tokens}


def _version(version: Version, before: Sequence[UUID], words: Mapping[UUID, Written]) -> dict[str, object]:
    changed = difference(before, version.standing)
    return {
        "version": version.version,
        "at": version.at.isoformat(),
        "origin": version.origin,
        "trust": version.trust,
        "change": version.change,
        "restored": version.restored,
        "because": version.because,
        "came": [{"tenet_id": str(one), "part": words[one].part, "words": words[one].words} for one in changed.came],
        "went": [{"tenet_id": str(one), "part": words[one].part, "words": words[one].words} for one in changed.went],
    }


def _proposal(one: Written, standing: Sequence[Tenet]) -> dict[str, object]:
    return {
        "tenet_id": str(one.tenet_id),
        "part": one.part,
        "words": one.words,
        "at": one.at.isoformat(),
        "origin": one.origin,
        "trust": one.trust,
        "session_id": one.session_id and str(one.session_id),
        "position": one.position,
        "instead_of": [{"tenet_id": str(tenet.tenet_id), "words": tenet.words} for tenet in standing],
    }
