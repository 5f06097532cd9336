"""Operations on the identity: lines of text that say who the agent is and which instructions always apply."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from newton.agent.field_types import CleanText
from newton.cognition.assembly.sections import select_identity_lines
from newton.heart.identity.tenets import IdentityPart
from newton.operations.agent.identity_records import (
    NO_LINES,
    AcceptedLine,
    ErasedLine,
    IdentityEditResult,
    IdentityOverview,
    IdentityRollback,
    IdentityVersionInfo,
    ProposedLine,
    WithdrawnLine,
    format_identity,
    format_proposal,
    format_version,
    to_accepted,
    to_current,
    to_proposed,
    to_version,
)
from newton.operations.declaration import Door, operation
from newton.operations.fields import describe_id
from newton.operations.results import ItemList, ProposalResult

if TYPE_CHECKING:
    from newton.operations.caller import OperationCaller

MAX_VERSION = 1_000_000_000
FOR_PERSONS: Mapping[Door, str] = {
    "mcp": "Only a person may do this: an agent must not change its own rules.",
    "chat": "Run the command in a terminal beside the chat.",
}
NOT_FOR_MODELS = "A person decides about this; a model may only propose it."

LineRef = Annotated[str, describe_id("line or proposed line")]
Section = Annotated[IdentityPart, Field(description="The section of the identity.")]
LineText = Annotated[
    CleanText, Field(description="The text of the line, as one sentence.", examples=["Answer in metric units"])
]
VersionReason = Annotated[
    CleanText | None, Field(description="The reason of the change, stored with the new version of the identity.")
]


def _says(changed: str, unchanged: str) -> Callable[[IdentityEditResult], str]:
    return lambda result: changed if result.changed else f"{unchanged}; nothing changed."


def _format_rollback(result: IdentityRollback) -> str:
    if result.changed:
        return f"Restored version {result.version}."
    return f"The identity equals version {result.version}; nothing changed."


def _format_proposed(result: ProposalResult) -> str:
    if result.is_new:
        return "Line proposed. `newton identity proposals` lists the proposals."
    return "The line is in the identity or proposed already; nothing changed."


@operation("GET /v1/identity", "reads", name="identity", command="identity show", text=format_identity)
async def show_identity(
    caller: "OperationCaller",
    *,
    max_tokens: Annotated[
        int | None, Field(ge=1, description="The tokens of the context. Default: the setting `context_tokens`.")
    ] = None,
) -> IdentityOverview:
    """Show the agent's identity: its lines, which come first in every context, and the lines proposed for it.

    The lines that do not fit into a context are marked.

    Example: newton identity
    """
    identity, proposals = await caller.identity.get(), await caller.identity.list_proposals()
    total = caller.newton.settings.context_tokens if max_tokens is None else max_tokens
    room = total - caller.newton.context_builder.header_tokens["identity"]
    section = select_identity_lines(identity, max_tokens=room)
    return IdentityOverview(
        version=section.version,
        max_tokens=room,
        tokens=sum(one.tokens for one in section.shown),
        lines=[
            *(to_current(one, shown=True) for one in section.shown),
            *(to_current(one, shown=False) for one in section.omitted),
        ],
        proposals=[to_proposed(one, identity) for one in proposals],
    )


@operation(
    "GET /v1/identity/proposals",
    "reads",
    name="proposals",
    command="identity proposals",
    text=format_proposal,
    empty="No proposed identity lines.",
    absent=dict.fromkeys(("mcp", "chat"), "`identity` lists them."),
)
async def list_proposals(caller: "OperationCaller") -> ItemList[ProposedLine]:
    """List the proposed identity lines that wait for a person's approval.

    They are standing instructions found in conversations, or were proposed by a client.

    Example: newton identity proposals
    """
    proposals, identity = await caller.identity.list_proposals(), await caller.identity.get()
    return ItemList(items=[to_proposed(one, identity) for one in proposals])


@operation(
    "POST /v1/identity/proposals",
    "adds",
    act="propose",
    name="propose_identity",
    command="identity propose",
    text=_format_proposed,
    is_idempotent=True,
    proposes_rules=True,
)
async def propose_line(caller: "OperationCaller", section: Section, text: LineText) -> ProposalResult:
    """Propose a line for the agent's identity, such as a standing instruction. A person accepts or rejects it.

    Example: newton identity propose instruction "Answer in metric units"
    """
    return ProposalResult(is_new=await caller.identity.propose(section, text, trust=caller.trust))


@operation(
    "POST /v1/identity/proposals/{line_id}/accept",
    "changes",
    act="govern",
    command="identity accept",
    scope="admin",
    text=lambda accepted: f"Added to the identity: {accepted.text}",
    absent={"mcp": NOT_FOR_MODELS, "chat": "`/yes` does it."},
)
async def accept_proposal(caller: "OperationCaller", line_id: LineRef) -> AcceptedLine:
    """Accept a proposed line: add it to the identity, and remove the lines that contradict it.

    Example: newton identity accept 3f9c2a71
    """
    return to_accepted(await caller.identity.accept(line_id))


@operation(
    "POST /v1/identity/proposals/{line_id}/reject",
    "destroys",
    act="govern",
    command="identity reject",
    text=lambda rejected: f"Rejected: {rejected.text}",
    absent={"mcp": NOT_FOR_MODELS, "chat": "`/no` does it."},
)
async def reject_proposal(caller: "OperationCaller", line_id: LineRef) -> WithdrawnLine:
    """Reject a proposed identity line.

    Example: newton identity reject 3f9c2a71
    """
    tenet = await caller.identity.reject(line_id)
    return WithdrawnLine(line_id=tenet.tenet_id, text=tenet.text)


@operation(
    "POST /v1/identity/lines",
    "adds",
    act="govern",
    command="identity add",
    scope="admin",
    text=_says("Line added.", "The identity has this line already"),
    absent=FOR_PERSONS,
)
async def add_line(
    caller: "OperationCaller",
    section: Section,
    text: LineText,
    *,
    reason: VersionReason = None,
    allow_conflict: Annotated[bool, Field(description="Add the line even if it contradicts an existing one.")] = False,
) -> IdentityEditResult:
    """Add a line to the agent's identity, which is part of every context.

    Example: newton identity add boundary "Never give legal advice"
    """
    added = await caller.identity.add(section, text, reason=reason, allow_conflict=allow_conflict)
    return IdentityEditResult(changed=added)


@operation(
    "PATCH /v1/identity/lines/{line_id}",
    "changes",
    act="govern",
    command="identity change",
    scope="admin",
    text=_says("Line changed.", "The line has this text already"),
    absent=FOR_PERSONS,
)
async def change_line(
    caller: "OperationCaller",
    line_id: LineRef,
    text: LineText,
    *,
    section: Annotated[IdentityPart | None, Field(description="The section to move the line to.")] = None,
    reason: VersionReason = None,
) -> IdentityEditResult:
    """Change the text of an identity line, or move the line to another section.

    Example: newton identity change 3f9c2a71 "Never give legal or tax advice"
    """
    return IdentityEditResult(changed=await caller.identity.change(line_id, text, part=section, reason=reason))


@operation(
    "DELETE /v1/identity/lines/{line_id}",
    "destroys",
    act="govern",
    command="identity remove",
    text=lambda removed: f"Removed: {removed.text}",
    absent=FOR_PERSONS,
)
async def remove_line(caller: "OperationCaller", line_id: LineRef, *, reason: VersionReason = None) -> WithdrawnLine:
    """Remove a line from the agent's identity. Earlier versions keep it, so a rollback restores it.

    Example: newton identity remove 3f9c2a71 --reason "we moved to imperial units"
    """
    tenet = await caller.identity.remove(line_id, reason=reason)
    return WithdrawnLine(line_id=tenet.tenet_id, text=tenet.text)


@operation(
    "POST /v1/identity/lines/{line_id}/erase",
    "destroys",
    act="govern",
    command="identity erase",
    question="Permanently erase the text of this line?",
    text=lambda _: "Text of the line erased. Messages that contain the text remain; `newton forget` deletes them.",
    absent=FOR_PERSONS,
)
async def erase_line(
    caller: "OperationCaller",
    line_id: LineRef,
    *,
    reason: Annotated[CleanText, Field(description="The reason of the deletion, which is recorded.")],
) -> ErasedLine:
    """Erase the text of an identity line or a proposal permanently, in all versions. Its id and history remain.

    Example: newton identity erase 3f9c2a71 --reason "it names a person"
    """
    return ErasedLine(erased=await caller.identity.erase(line_id, reason=reason))


@operation(
    "GET /v1/identity/versions",
    "reads",
    name="identity_versions",
    command="identity history",
    scope="admin",
    text=format_version,
    empty=NO_LINES,
    absent=FOR_PERSONS,
)
async def list_versions(caller: "OperationCaller") -> ItemList[IdentityVersionInfo]:
    """List the versions of the agent's identity, oldest first, each with the lines that it added and removed.

    Example: newton identity history
    """
    versions, records = await caller.identity.history()
    lines = {record.tenet_id: record for record in records}
    standings = [(), *(version.standing for version in versions)]
    return ItemList(items=[to_version(one, before, lines) for before, one in zip(standings, versions, strict=False)])


@operation(
    "POST /v1/identity/rollback",
    "changes",
    act="govern",
    command="identity rollback",
    scope="admin",
    text=_format_rollback,
    absent=FOR_PERSONS,
)
async def roll_back_identity(
    caller: "OperationCaller",
    version: Annotated[int, Field(ge=0, le=MAX_VERSION, description="The number of the version.", examples=[1])],
    *,
    reason: VersionReason = None,
) -> IdentityRollback:
    """Restore an earlier version of the agent's identity as a new version. A rollback can therefore be undone.

    Example: newton identity rollback 1
    """
    return IdentityRollback(version=version, changed=await caller.identity.roll_back(version, reason=reason))
