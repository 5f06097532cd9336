"""Commands `newton identity`: list and change the lines of an agent's identity, their versions, and proposed lines."""

from collections.abc import Mapping, Sequence
from typing import Annotated
from uuid import UUID

from cyclopts import Parameter

from newton.cognition.assembly.sections import IdentitySection, select_identity_lines
from newton.errors import InputError
from newton.heart.identity.identity_store import IdentityVersion, TenetRecord, find_conflicts
from newton.heart.identity.tenets import IdentityPart, IdentityTenet, diff_tenets
from newton.memory.lookup import short_id
from newton.runtime.cli import formatting
from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.options import (
    AgentOption,
    JsonOption,
    MaxTokensOption,
    ReasonOption,
    YesOption,
    load_settings,
    require_yes,
)
from newton.runtime.cli.printing import say

LineArgument = Annotated[str, Parameter(help="Id of the line, or the end of the id as `newton identity` prints it.")]
ProposalArgument = Annotated[
    str, Parameter(help="Id of the proposed line, or the end of the id as `newton identity proposals` prints it.")
]
TextArgument = Annotated[str, Parameter(help="Text of the line.")]
VersionReasonOption = Annotated[
    str | None, Parameter("--reason", help="Reason of the change, which is stored with the new version.")
]

NO_LINES_MESSAGE = 'The identity is empty. Add a line: `newton identity add instruction "Answer in metric units"`'
ERASED_TEXT = "[erased]"


async def show_identity(
    *, max_tokens: MaxTokensOption = None, agent: AgentOption = None, json: JsonOption = False
) -> None:
    """Show the lines of the agent's identity, which come first in every context, and mark those that do not fit.

    Example: newton identity
    """
    settings = load_settings(agent)
    total = settings.context_tokens if max_tokens is None else max_tokens
    if total < 1:
        raise InputError(f"A context of {total} tokens is impossible.", hint="Give --max-tokens 1 or more.")
    async with open_agent(settings) as newton:
        service = newton.identity("cli")
        identity, proposals = await service.get(), await service.list_proposals()
        room = total - newton.context_builder.header_tokens["identity"]
    section = select_identity_lines(identity, max_tokens=room)
    if json:
        formatting.print_json(_identity_to_json(section, room))
        return
    say("\n".join(_format_identity(section, room, total)) if identity.tenets else NO_LINES_MESSAGE)
    if proposals:
        many = formatting.pluralize(len(proposals), "proposal")
        formatting.print_notice(f"\n{many} pending: `newton identity proposals`")


async def add_line(
    section: Annotated[IdentityPart, Parameter(help="Section of the identity.")],
    text: TextArgument,
    *,
    reason: VersionReasonOption = None,
    allow_conflict: Annotated[
        bool, Parameter(negative=(), help="Add the line even if it contradicts an existing one.")
    ] = False,
    agent: AgentOption = None,
) -> None:
    """Add a line to the agent's identity, which is part of every context.

    Example: newton identity add boundary "Never give legal advice"
    """
    async with open_agent(load_settings(agent), on_new_agent=formatting.print_new_agent) as newton:
        is_new = await newton.identity("cli").add(section, text, reason=reason, allow_conflict=allow_conflict)
    say("Line added." if is_new else "The identity has this line already; nothing changed.")


async def propose_line(
    section: Annotated[IdentityPart, Parameter(help="Section of the identity.")],
    text: TextArgument,
    *,
    agent: AgentOption = None,
) -> None:
    """Propose a line for the agent's identity, which waits until a person accepts or rejects it.

    Example: newton identity propose instruction "Answer in metric units"
    """
    async with open_agent(load_settings(agent), on_new_agent=formatting.print_new_agent) as newton:
        is_new = await newton.identity("cli").propose(section, text, trust="user")
    say(
        "Line proposed. `newton identity proposals` lists the proposals."
        if is_new
        else "The line is in the identity or proposed already; nothing changed."
    )


async def change_line(
    line: LineArgument,
    text: TextArgument,
    *,
    section: Annotated[IdentityPart | None, Parameter(help="Section of the identity to move the line to.")] = None,
    reason: VersionReasonOption = None,
    agent: AgentOption = None,
) -> None:
    """Change the text of an identity line.

    Example: newton identity change 3f9c2a71 "Never give legal or tax advice"
    """
    async with open_agent(load_settings(agent)) as newton:
        changed = await newton.identity("cli").change(line, text, part=section, reason=reason)
    say("Line changed." if changed else "The line has this text already; nothing changed.")


async def remove_line(line: LineArgument, *, reason: VersionReasonOption = None, agent: AgentOption = None) -> None:
    """Remove a line from the agent's identity. Earlier versions keep it, so a rollback restores it.

    Example: newton identity remove 3f9c2a71 --reason "we moved to imperial units"
    """
    async with open_agent(load_settings(agent)) as newton:
        tenet = await newton.identity("cli").remove(line, reason=reason)
    say(f"Removed: {tenet.text}")


async def show_versions(*, agent: AgentOption = None, json: JsonOption = False) -> None:
    """Show all versions of the agent's identity with their time, author, reason and changes.

    Example: newton identity history
    """
    async with open_agent(load_settings(agent)) as newton:
        versions, records = await newton.identity("cli").history()
    lines_by_id = {record.tenet_id: record for record in records}
    steps = list(zip([(), *(version.standing for version in versions)], versions, strict=False))
    if json:
        formatting.print_json([_version_to_json(version, before, lines_by_id) for before, version in steps])
        return
    for before, version in steps:
        say("\n".join(_format_version(version, before, lines_by_id)))
    if not versions:
        say(NO_LINES_MESSAGE)


async def roll_back(
    version: Annotated[int, Parameter(help="Number of the version, as `newton identity history` prints it.")],
    *,
    reason: VersionReasonOption = None,
    agent: AgentOption = None,
) -> None:
    """Restore an earlier version of the agent's identity as a new version. A rollback can therefore be undone.

    Example: newton identity rollback 3
    """
    async with open_agent(load_settings(agent)) as newton:
        changed = await newton.identity("cli").roll_back(version, reason=reason)
    say(f"Restored version {version}." if changed else f"The identity equals version {version}; nothing changed.")


async def list_proposals(*, agent: AgentOption = None, json: JsonOption = False) -> None:
    """List proposed lines that wait for approval: instructions found in conversations, and proposals of the agent.

    Example: newton identity proposals
    """
    async with open_agent(load_settings(agent)) as newton:
        service = newton.identity("cli")
        proposals, identity = await service.list_proposals(), await service.get()
    conflicts = [find_conflicts(identity, proposal.words or "") for proposal in proposals]
    if json:
        formatting.print_json(list(map(_proposal_to_json, proposals, conflicts)))
        return
    for one, conflicting in zip(proposals, conflicts, strict=True):
        text = f"{one.words}{formatting.format_conflicts(conflicting)}"
        say(f"{short_id(one.tenet_id)}  {one.part:<11}  {text}  ({one.at:%Y-%m-%d}, {one.origin}, by {one.trust})")
    if not proposals:
        say("No proposed identity lines.")


async def accept_proposal(proposal: ProposalArgument, *, agent: AgentOption = None) -> None:
    """Add a proposed line to the agent's identity. It replaces the lines that contradict it.

    Example: newton identity accept 3f9c2a71
    """
    async with open_agent(load_settings(agent)) as newton:
        tenet, replaced = await newton.identity("cli").accept(proposal)
    say(f"Added to the identity: {tenet.text}{formatting.format_conflicts(replaced)}")


async def reject_proposal(proposal: ProposalArgument, *, agent: AgentOption = None) -> None:
    """Reject a line that was proposed for the agent's identity.

    Example: newton identity reject 3f9c2a71
    """
    async with open_agent(load_settings(agent)) as newton:
        tenet = await newton.identity("cli").reject(proposal)
    say(f"Rejected: {tenet.text}")


async def erase_line(
    line: LineArgument, *, reason: ReasonOption, yes: YesOption = False, agent: AgentOption = None
) -> None:
    """Permanently erase the text of a line or a proposal in every version. Its id and history remain.

    Example: newton identity erase 3f9c2a71 --reason "it names a person"
    """
    require_yes("Permanently erase the text of this line?", yes=yes)
    async with open_agent(load_settings(agent)) as newton:
        await newton.identity("cli").erase(line, reason=reason)
    say("Text of the line erased. Messages that contain the text remain; `newton forget` deletes them.")


def _format_identity(section: IdentitySection, max_tokens: int, total: int) -> list[str]:
    used = sum(tenet.tokens for tenet in section.shown)
    lines = [f"version {section.version} · {used} of {max(max_tokens, 0)} tokens, in a context of {total:,}"]
    part = ""
    for tenet in (*section.shown, *section.omitted):
        lines += [f"\n{tenet.part}"] if tenet.part != part else []
        part = tenet.part
        lines.append(
            f"  {short_id(tenet.tenet_id)}  {tenet.text}"
            f"{f'  (said {tenet.said_on})' if tenet.said_on else ''}"
            f"{'  (does not fit)' if tenet in section.omitted else ''}"
        )
    if section.omitted:
        many = formatting.pluralize(len(section.omitted), "line does", "lines do")
        lines.append(f"\n{many} not fit: shorten or remove lines, or give a larger --max-tokens.")
    return lines


def _format_version(version: IdentityVersion, before: Sequence[UUID], lines: Mapping[UUID, TenetRecord]) -> list[str]:
    change = f"rolled back to {version.restored}" if version.restored else version.change
    reason = f": {version.reason}" if version.reason else ""
    diff = diff_tenets(before, version.standing)
    return [
        f"{version.version:>4}  {version.at:%Y-%m-%d %H:%M}  {change} ({version.trust}, {version.origin}){reason}",
        *(f"      - {_format_line(lines[one])}" for one in diff.removed),
        *(f"      + {_format_line(lines[one])}" for one in diff.added),
    ]


def _format_line(line: TenetRecord) -> str:
    return f"{line.part}: {line.words or ERASED_TEXT}"


def _identity_to_json(section: IdentitySection, max_tokens: int) -> dict[str, object]:
    return {
        "version": section.version,
        "max_tokens": max_tokens,
        "tokens": sum(tenet.tokens for tenet in section.shown),
        "lines": [
            _line_to_json(tenet) | {"tokens": tenet.tokens, "shown": tenet in section.shown}
            for tenet in (*section.shown, *section.omitted)
        ],
    }


def _line_to_json(line: IdentityTenet | TenetRecord) -> dict[str, object]:
    text = line.text if isinstance(line, IdentityTenet) else line.words
    return {"line_id": str(line.tenet_id), "section": line.part, "text": text}


def _version_to_json(
    version: IdentityVersion, before: Sequence[UUID], lines: Mapping[UUID, TenetRecord]
) -> dict[str, object]:
    diff = diff_tenets(before, version.standing)
    return {
        "version": version.version,
        "created_at": version.at.isoformat(),
        "origin": version.origin,
        "trust": version.trust,
        "change": version.change,
        "restored_version": version.restored,
        "reason": version.reason,
        "added": [_line_to_json(lines[one]) for one in diff.added],
        "removed": [_line_to_json(lines[one]) for one in diff.removed],
    }


def _proposal_to_json(proposal: TenetRecord, conflicting: Sequence[IdentityTenet]) -> dict[str, object]:
    return {
        **_line_to_json(proposal),
        "created_at": proposal.at.isoformat(),
        "origin": proposal.origin,
        "trust": proposal.trust,
        "session_id": proposal.session_id and str(proposal.session_id),
        "position": proposal.position,
        "conflicts_with": [{"line_id": str(tenet.tenet_id), "text": tenet.text} for tenet in conflicting],
    }
