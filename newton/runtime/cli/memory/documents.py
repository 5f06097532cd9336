"""Commands `newton documents`: list, show and delete the ingested documents."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, NamedTuple
from uuid import UUID

from cyclopts import Parameter

from newton.memory.lookup import short_id
from newton.runtime.cli import formatting
from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.options import AgentOption, JsonOption, ReasonOption, YesOption, load_settings, require_yes
from newton.runtime.cli.printing import say

DocumentArgument = Annotated[
    str, Parameter(help="Path of the document as it was ingested, its id, or the end of its id.")
]


async def list_documents(*, agent: AgentOption = None, json: JsonOption = False) -> None:
    """List the ingested documents, each with the number of its passages (the parts that search finds).

    Example: newton documents
    """
    async with open_agent(load_settings(agent)) as newton:
        found = await newton.documents("cli").list_documents()
    if json:
        formatting.print_json([_to_json(asdict(one)) for one in found])
        return
    lines = (
        DocumentLine(short_id(one.document_id), one.title, one.ref, one.passages, one.ingested_at, one.dated_at)
        for one in found
    )
    say(format_documents(list(lines)) or "No documents. `newton ingest PATH` ingests some.")


class DocumentLine(NamedTuple):
    """A document in a list. `passages` is their number."""

    short_id: str
    title: str
    ref: str
    passages: int
    ingested_at: datetime
    dated_at: datetime | None


def format_documents(documents: Sequence[DocumentLine]) -> str:
    """Format a list of documents, one on a line."""
    lines: list[str] = []
    for one in documents:
        passages = formatting.pluralize(one.passages, "passage")
        dated = f", of {one.dated_at:%Y-%m-%d}" if one.dated_at else ""
        place = "" if one.ref == one.title else f"  {one.ref}"
        lines.append(f"{one.short_id}  {one.ingested_at:%Y-%m-%d}  {one.title} ({passages}{dated}){place}")
    return "\n".join(lines)


async def show_document(document: DocumentArgument, *, agent: AgentOption = None, json: JsonOption = False) -> None:
    """Show a document with its passages in full.

    Example: newton documents show 3f9c2a71
    """
    async with open_agent(load_settings(agent)) as newton:
        found = await newton.documents("cli").get(document)
    if json:
        passages = [_to_json(passage._asdict()) for passage in found.passages]
        formatting.print_json({**_to_json(asdict(found)), "passages": passages})
        return
    dated = f", of {found.dated_at:%Y-%m-%d %H:%M}" if found.dated_at else ""
    ingested = f"ingested {found.ingested_at:%Y-%m-%d %H:%M}"
    say(f"{found.title}  {short_id(found.document_id)}\n{found.ref}{dated}, {ingested}")
    for passage in found.passages:
        state = "" if passage.state == "ACTIVE" else f"  ({passage.state})"
        state += "  (quarantined)" if passage.quarantined else ""
        place = ", ".join(filter(None, (passage.heading, passage.location)))
        say(f"\n{short_id(passage.memory_id)}  {place}{state}\n{passage.text}")


async def delete_document(
    document: DocumentArgument,
    *,
    reason: ReasonOption = "requested",
    yes: YesOption = False,
    agent: AgentOption = None,
) -> None:
    """Permanently delete a document with its passages and the memories derived from them. The file is kept.

    Example: newton documents delete 3f9c2a71 --reason "it is outdated"
    """
    async with open_agent(load_settings(agent)) as newton:
        service = newton.documents("cli")
        found = await service.get(document)
        many = formatting.pluralize(len(found.passages), "passage")
        require_yes(f"Permanently delete {found.title} with {many}?", yes=yes)
        _, deleted = await service.delete(found.document_id.hex, reason=reason)
    say(f"Deleted {found.title} with {formatting.pluralize(len(deleted), 'memory', 'memories')}.")


def _to_json(fields: Mapping[str, object]) -> dict[str, object]:
    return {name: _to_json_value(value) for name, value in fields.items()}


def _to_json_value(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else str(value) if isinstance(value, UUID) else value
