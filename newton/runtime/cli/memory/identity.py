"""`newton identity`: who the agent is and what a person wants always; its versions, and what waits for a yes."""

from collections.abc import Mapping, Sequence
from typing import Annotated
from uuid import UUID

from cyclopts import Parameter

from newton.cognition.assembly.budget import allocate_budget
from newton.cognition.assembly.sections import (
    IdentitySection,
    compute_identity_tokens,
    select_identity_lines,
)
from newton.errors import InputError
from newton.heart.identity.identity_store import IdentityVersion, TenetRecord, find_conflicts
from newton.heart.identity.tenets import IdentityPart, Tenet, diff_tenets
from newton.memory.lookup import short_id
from newton.runtime.bootstrap import open_newton
from newton.runtime.cli import formatting
from newton.runtime.cli.options import AgentOption, BudgetOption, JsonOption, ask_confirmation, load_settings
from newton.runtime.cli.printing import say

LineArgument = Annotated[str, Parameter(help="Its id, or the end of it as `newton identity` shows it.")]
ReasonOption = Annotated[str | None, Parameter(help="Why; it is kept with the version.")]

NO_LINES_MESSAGE = 'Nothing holds always yet. `newton identity add instruction "Answer in metric units"`'
ERASED_TEXT = "[erased]"


async def show_identity(*, tokens: BudgetOption = None, agent: AgentOption = None, json: JsonOption = False) -> None:
    """Show what stands first in every context, and which lines of it a context has no room for.

    Example: newton identity
    """
    chosen = load_settings(agent)
    total = chosen.context_tokens if tokens is None else tokens
    if total < 1:
        raise InputError(f"A budget of {total} tokens holds nothing.", hint="Give 1 or more.")
    async with open_newton(chosen) as newton:
        bearing = newton.identity("cli")
        identity, waiting = await bearing.get(), await bearing.list_proposals()
        most = compute_identity_tokens(allocate_budget(total).layers, newton.context_builder.header_tokens)
    shown = select_identity_lines(identity, max_tokens=most)
    if json:
        formatting.print_json(_identity_to_json(shown, most))
        return
    say("\n".join(_format_identity(shown, most, total)) if identity.tenets else NO_LINES_MESSAGE)
    if waiting:
        waits = "waits" if len(waiting) == 1 else "wait"
        formatting.print_notice(
            f"\n{formatting.pluralize(len(waiting), 'line')} {waits} for your yes: `newton identity proposals`"
        )


async def add_line(
    part: IdentityPart,
    text: str,
    *,
    reason: ReasonOption = None,
    beside: Annotated[bool, Parameter(negative=(), help="Also beside a line that goes against it.")] = False,
    agent: AgentOption = None,
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
    async with open_newton(load_settings(agent)) as newton:
        new = await newton.identity("cli").add(part, text, reason=reason, allow_conflict=beside)
    say("It stands." if new else "It stands already; nothing changed.")


async def change_line(
    line: LineArgument,
    text: str,
    *,
    part: Annotated[IdentityPart | None, Parameter(help="Put it in this part.")] = None,
    reason: ReasonOption = None,
    agent: AgentOption = None,
) -> None:
    """Put other words in the place of a line.

    Example: newton identity change 3f9c2a71 "Never give legal or tax advice"
    """
    async with open_newton(load_settings(agent)) as newton:
        changed = await newton.identity("cli").change(line, text, part=part, reason=reason)
    say("Changed." if changed else "These are its words already; nothing changed.")


async def remove_line(line: LineArgument, *, reason: ReasonOption = None, agent: AgentOption = None) -> None:
    """Take a line out. The versions that had it keep it, so a roll-back brings it back.

    Example: newton identity remove 3f9c2a71 --reason "we moved to imperial units"
    """
    async with open_newton(load_settings(agent)) as newton:
        tenet = await newton.identity("cli").remove(line, reason=reason)
    say(f"Taken out: {tenet.text}")


async def show_versions(*, agent: AgentOption = None, json: JsonOption = False) -> None:
    """Show every version: when, by whom, why, and what it changed.

    Example: newton identity history
    """
    async with open_newton(load_settings(agent)) as newton:
        versions, written = await newton.identity("cli").history()
    words = {one.tenet_id: one for one in written}
    steps = list(zip([(), *(version.standing for version in versions)], versions, strict=False))
    if json:
        formatting.print_json([_version_to_json(version, before, words) for before, version in steps])
        return
    for before, version in steps:
        say("\n".join(_format_version(version, before, words)))
    if not versions:
        say(NO_LINES_MESSAGE)


async def roll_back(version: int, *, reason: ReasonOption = None, agent: AgentOption = None) -> None:
    """Make the identity what it was in an earlier version. That is a version too, so it can be undone.

    Example: newton identity rollback 3
    """
    async with open_newton(load_settings(agent)) as newton:
        changed = await newton.identity("cli").roll_back(version, reason=reason)
    say(f"As in version {version} again." if changed else f"It is as in version {version}; nothing changed.")


async def list_proposals(*, agent: AgentOption = None, json: JsonOption = False) -> None:
    """List what waits for your yes: what you seemed to want from now on, and what the agent wishes for itself.

    Example: newton identity proposals
    """
    async with open_newton(load_settings(agent)) as newton:
        bearing = newton.identity("cli")
        waiting, now = await bearing.list_proposals(), await bearing.get()
    if json:
        formatting.print_json([_proposal_to_json(one, find_conflicts(now, one.words or "")) for one in waiting])
        return
    for one in waiting:
        by = "you" if one.trust == "user" else f"the {one.trust}"
        words = f"{one.words}{formatting.format_replaced_lines(find_conflicts(now, one.words or ''))}"
        say(f"{short_id(one.tenet_id)}  {one.part:<11}  {words}  ({one.at:%Y-%m-%d}, {one.origin}, said by {by})")
    if not waiting:
        say("Nothing waits for your yes.")


async def accept_proposal(proposal: LineArgument, *, agent: AgentOption = None) -> None:
    """Say yes to a proposal: from now on it stands, in the place of what goes against it.

    Example: newton identity accept 3f9c2a71
    """
    async with open_newton(load_settings(agent)) as newton:
        tenet, standing = await newton.identity("cli").accept(proposal)
    say(f"It stands: {tenet.text}{formatting.format_replaced_lines(standing)}")


async def reject_proposal(proposal: LineArgument, *, agent: AgentOption = None) -> None:
    """Say no to a proposal.

    Example: newton identity reject 3f9c2a71
    """
    async with open_newton(load_settings(agent)) as newton:
        tenet = await newton.identity("cli").reject(proposal)
    say(f"Dropped: {tenet.text}")


async def erase_line(
    line: LineArgument,
    *,
    reason: Annotated[str, Parameter(help="Why; it is kept.")],
    yes: Annotated[bool, Parameter(negative=(), help="Do not ask.")] = False,
    agent: AgentOption = None,
) -> None:
    """Take the words of a line or a proposal away for good, in every version. That there was one stays known.

    Example: newton identity erase 3f9c2a71 --reason "it names somebody who asked for it"
    """
    if not yes and not ask_confirmation("Erase its words for good?"):
        raise InputError("Nothing was erased.", hint="Answer with y, or give --yes.")
    async with open_newton(load_settings(agent)) as newton:
        await newton.identity("cli").erase(line, reason=reason)
    say("Erased. What was said in a conversation stays there; `newton forget` takes that away.")


def _format_identity(section: IdentitySection, max_tokens: int, total: int) -> list[str]:
    used = sum(tenet.tokens for tenet in section.shown)
    lines = [f"version {section.version} · {used} of {max_tokens} tokens, in a context of {total:,}"]
    part = ""
    for tenet in (*section.shown, *section.omitted):
        lines += [f"\n{tenet.part}"] if tenet.part != part else []
        part = tenet.part
        lines.append(f"  {short_id(tenet.tenet_id)}  {tenet.text}{'  (no room)' if tenet in section.omitted else ''}")
    if section.omitted:
        lines.append(
            f"\n{formatting.pluralize(len(section.omitted), 'line')} had no room: shorten or remove what stands above."
        )
    return lines


def _format_version(
    version: IdentityVersion, before: Sequence[UUID], lines_by_id: Mapping[UUID, TenetRecord]
) -> list[str]:
    what = f"rolled back to {version.restored}" if version.restored else version.change
    why = f": {version.reason}" if version.reason else ""
    changed = diff_tenets(before, version.standing)
    return [
        f"{version.version:>4}  {version.at:%Y-%m-%d %H:%M}  {what} ({version.trust}, {version.origin}){why}",
        *(f"      - {_format_line(lines_by_id[one])}" for one in changed.removed),
        *(f"      + {_format_line(lines_by_id[one])}" for one in changed.added),
    ]


def _format_line(line: TenetRecord) -> str:
    return f"{line.part}: {line.words or ERASED_TEXT}"


def _identity_to_json(section: IdentitySection, max_tokens: int) -> dict[str, object]:
    return {
        "version": section.version,
        "budget": max_tokens,
        "tokens": sum(tenet.tokens for tenet in section.shown),
        "lines": [
            _line_to_json(tenet) | {"shown": tenet in section.shown} for tenet in (*section.shown, *section.omitted)
        ],
    }


def _line_to_json(tenet: Tenet) -> dict[str, object]:
    return {"tenet_id": str(tenet.tenet_id), "part": tenet.part, "words": tenet.text, "tokens": tenet.tokens}


def _version_to_json(
    version: IdentityVersion, before: Sequence[UUID], lines_by_id: Mapping[UUID, TenetRecord]
) -> dict[str, object]:
    changed = diff_tenets(before, version.standing)
    return {
        "version": version.version,
        "at": version.at.isoformat(),
        "origin": version.origin,
        "trust": version.trust,
        "change": version.change,
        "restored": version.restored,
        "because": version.reason,
        "came": [
            {"tenet_id": str(one), "part": lines_by_id[one].part, "words": lines_by_id[one].words}
            for one in changed.added
        ],
        "went": [
            {"tenet_id": str(one), "part": lines_by_id[one].part, "words": lines_by_id[one].words}
            for one in changed.removed
        ],
    }


def _proposal_to_json(proposal: TenetRecord, conflicting: Sequence[Tenet]) -> dict[str, object]:
    return {
        "tenet_id": str(proposal.tenet_id),
        "part": proposal.part,
        "words": proposal.words,
        "at": proposal.at.isoformat(),
        "origin": proposal.origin,
        "trust": proposal.trust,
        "session_id": proposal.session_id and str(proposal.session_id),
        "position": proposal.position,
        "instead_of": [{"tenet_id": str(tenet.tenet_id), "words": tenet.text} for tenet in conflicting],
    }
