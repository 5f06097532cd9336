"""Commands that show single memories."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from operator import itemgetter
from typing import Annotated, Any

from cyclopts import Parameter

from newton.memory.importance import MAX_IMPORTANCE
from newton.memory.inventory.edits import MemoryEdit
from newton.memory.lookup import MemoryDetail, short_id
from newton.memory.transitions import TransitionRecord
from newton.runtime.cli import formatting
from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.options import PERSON, AgentOption, JsonOption, load_settings
from newton.runtime.cli.printing import say

UNSET = "unset"  # a field without a value

MemoryArgument = Annotated[str, Parameter(help="Id of the memory, or the end of the id as `newton recall` prints it.")]


async def show_memory(memory: MemoryArgument, *, agent: AgentOption = None, json: JsonOption = False) -> None:
    """Show one memory in full: text, state, source and links.

    Example: newton show 3f9c2a71
    """
    async with open_agent(load_settings(agent)) as newton:
        record, _, fact = await newton.curation("cli").get(memory)
    if json:
        formatting.print_json(_record_to_json(record) | {"fact": fact})
    else:
        say(_format_record(record, fact))


async def show_history(memory: MemoryArgument, *, agent: AgentOption = None, json: JsonOption = False) -> None:
    """Show all state changes and edits of a memory with their time, reason and origin.

    Example: newton history 3f9c2a71
    """
    async with open_agent(load_settings(agent)) as newton:
        record, changes, _ = await newton.curation("cli").get(memory)
        edits = await newton.memory_editor("cli", PERSON).list_edits(record.memory_id)
    if json:
        formatting.print_json([*map(_change_to_json, changes), *map(_edit_to_json, edits)])
        return
    name = f"{record.kind} {short_id(record.memory_id)}"
    say(f"{record.created_at:%Y-%m-%d %H:%M}  {name} created by {record.origin}")
    lines = [(change.at, _format_change(change)) for change in changes]
    lines += [(edit.edited_at, _format_edit(edit)) for edit in edits]
    for _, line in sorted(lines, key=itemgetter(0)):
        say(line)
    say(f"current state: {record.state}{', quarantined' if record.quarantined else ''}")
    for newer in record.replaced_by:
        say(f"superseded by: {short_id(newer.memory_id)} {newer.micro}")


def _format_change(change: TransitionRecord) -> str:
    is_same = change.from_state == change.to_state
    states = change.to_state if is_same else f"{change.from_state} → {change.to_state}"
    return f"{change.at:%Y-%m-%d %H:%M}  {states}  {change.event}: {change.reason} ({change.origin})"


def _format_edit(edit: MemoryEdit) -> str:
    old, new = (UNSET if value is None else value for value in (edit.old_value, edit.new_value))
    return f"{edit.edited_at:%Y-%m-%d %H:%M}  {edit.field}: {old} → {new}  (by {edit.author}, {edit.origin})"


def _edit_to_json(edit: MemoryEdit) -> dict[str, object]:
    return {**asdict(edit), "edited_at": edit.edited_at.isoformat()}


def _change_to_json(change: TransitionRecord) -> dict[str, object]:
    return {
        "changed_at": change.at.isoformat(),
        "from_state": change.from_state,
        "to_state": change.to_state,
        "event": change.event,
        "reason": change.reason,
        "origin": change.origin,
        "replaced_by": change.replaced_by and formatting.mention_to_json(change.replaced_by),
    }


def _format_record(record: MemoryDetail, fact: Mapping[str, str]) -> str:
    confidence = "" if record.confidence is None else f" · confidence {record.confidence:.0%}"
    state = f"{record.state}{' · quarantined' if record.quarantined else ''}{confidence}"
    lines = [
        f"{record.kind} {record.memory_id}",
        f"  {state} · {formatting.pluralize(record.confirmations, 'confirmation')}",
        f"  since {record.occurred_at:%Y-%m-%d %H:%M} · trust {record.trust}",
        f"  created {record.created_at:%Y-%m-%d %H:%M} by {record.origin}",
        *(f"  {name}: {value}" for name, value in fact.items()),
        *([f"  importance {MAX_IMPORTANCE * record.importance:g} of 10"] if record.importance is not None else []),
        "",
        record.full_text,
    ]
    if record.relatives:
        lines += [
            "",
            *(f"  {r.type} {r.kind} {short_id(r.memory_id)} ({r.state}): {r.micro}" for r in record.relatives),
        ]
    return "\n".join(lines)


def _record_to_json(record: MemoryDetail) -> dict[str, object]:
    fields: dict[str, Any] = asdict(record)
    del fields["relatives"]
    fields["importance"] = None if record.importance is None else MAX_IMPORTANCE * record.importance
    times = {name: at and at.isoformat() for name, at in fields.items() if isinstance(at, datetime)}
    links = [
        {"type": r.type, "memory_id": str(r.memory_id), "kind": r.kind, "state": r.state, "micro": r.micro}
        for r in record.relatives
    ]
    return {**fields, **times, "memory_id": str(record.memory_id), "links": links}
