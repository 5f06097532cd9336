"""`newton show`, `history`, `confirm`, `supersede`, `retract` and `forget`: what a person may do to one memory."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Annotated

from cyclopts import Parameter

from newton.errors import InputError
from newton.memory.lookup import MemoryDetail, short_id
from newton.memory.transitions import TransitionRecord
from newton.runtime.bootstrap import open_newton
from newton.runtime.cli import formatting as shown
from newton.runtime.cli.options import AgentOption, JsonOption, StartTime, ask_confirmation, load_settings
from newton.runtime.cli.printing import say

MemoryArgument = Annotated[str, Parameter(help="Its id, or the end of it as `newton recall` shows it.")]


async def show_memory(memory: MemoryArgument, *, agent: AgentOption = None, json: JsonOption = False) -> None:
    """Show one memory in full: its words, where it comes from, and what it is to others.

    Example: newton show 3f9c2a71
    """
    async with open_newton(load_settings(agent)) as newton:
        record, _, told = await newton.curation("cli").get(memory)
    if json:
        shown.print_json(_record_to_json(record) | told)
        return
    say(_format_record(record, told))


async def show_history(memory: MemoryArgument, *, agent: AgentOption = None, json: JsonOption = False) -> None:
    """Show every change of a memory's state: when, why, and by what.

    Example: newton history 3f9c2a71
    """
    async with open_newton(load_settings(agent)) as newton:
        record, changes, _ = await newton.curation("cli").get(memory)
    if json:
        shown.print_json([asdict(change) | {"at": change.at.isoformat()} for change in changes])
        return
    say(
        f"{record.created_at:%Y-%m-%d %H:%M}  {record.kind} "
        f"{short_id(record.memory_id)} written through {record.origin}"
    )
    for change in changes:
        say(_format_transition(change))
    say(f"it is {record.state}{' and quarantined' if record.quarantined else ''} now")


async def confirm_fact(
    memory: MemoryArgument,
    *,
    core: Annotated[bool, Parameter(negative=(), help="Mark it as a core fact.")] = False,
    agent: AgentOption = None,
) -> None:
    """Say that a fact is so. Three independent confirmations make it a core fact, and so does --core.

    Example: newton confirm 3f9c2a71
    """
    async with open_newton(load_settings(agent)) as newton:
        curation, began = newton.curation("cli"), newton.scope.now()
        counted = await curation.confirm(memory)
        if core:
            await curation.mark_core(memory)
        changed = await curation.list_changes(began)
    said = "Confirmed." if counted else "Confirmed already today; nothing changed."
    say(("Marked as a core fact." if core else said) + shown.format_transitions(changed))


async def supersede_fact(
    memory: MemoryArgument,
    content: str,
    *,
    at: Annotated[
        datetime | None, StartTime, Parameter(help="When it became true: a day, a time with zone, words.")
    ] = None,
    agent: AgentOption = None,
) -> None:
    """Put a new statement in the place of a fact that was true until now.

    Example: newton supersede 3f9c2a71 "Ana lives in Bergen"

    Parameters
    ----------
    content:
        What is true instead.
    """
    async with open_newton(load_settings(agent)) as newton:
        new = await newton.curation("cli").supersede(memory, content, at=at)
        await newton.maintenance("cli").process_pending()
    say(f"Superseded by {short_id(new)}.")


async def retract_fact(memory: MemoryArgument, *, agent: AgentOption = None) -> None:
    """Say that a fact was never true. What it had superseded holds again.

    Example: newton retract 3f9c2a71
    """
    async with open_newton(load_settings(agent)) as newton:
        curation, began = newton.curation("cli"), newton.scope.now()
        await curation.retract(memory)
        changed = await curation.list_changes(began)
    say("Retracted." + shown.format_transitions(changed))


async def forget_memories(
    memories: list[str],
    /,
    *,
    derived: Annotated[bool, Parameter(negative=(), help="Also what was made from them.")] = False,
    reason: Annotated[str, Parameter(help="Why; it is kept beside the id.")] = "asked for",
    yes: Annotated[bool, Parameter(negative=(), help="Do not ask.")] = False,
    agent: AgentOption = None,
) -> None:
    """Forget memories for good: their words go, a note of when and why stays. There is no way back.

    Example: newton forget 3f9c2a71 --reason "it is about somebody else"

    Parameters
    ----------
    memories:
        Their ids, or the ends of them as `newton recall` shows them.
    """
    if not memories:
        raise InputError("No memory is named.", hint="`newton recall` shows ids.")
    if not yes and not ask_confirmation(f"Forget {len(memories)} for good?"):
        raise InputError("Nothing was forgotten.", hint="Answer with y, or give --yes.")
    async with open_newton(load_settings(agent)) as newton:
        gone = await newton.curation("cli").forget(memories, include_derived=derived, reason=reason)
    say(f"Forgotten: {', '.join(short_id(memory_id) for memory_id in gone)}.")


def _format_transition(transition: TransitionRecord) -> str:
    states = (
        transition.from_state
        if transition.from_state == transition.to_state
        else f"{transition.from_state} → {transition.to_state}"
    )
    return f"{transition.at:%Y-%m-%d %H:%M}  {states}  {transition.event}: {transition.reason} ({transition.origin})"


def _format_record(record: MemoryDetail, details: Mapping[str, str]) -> str:
    sure = "" if record.confidence is None else f" · {record.confidence:.0%} sure"
    state = f"{record.state}{' · quarantined' if record.quarantined else ''}{sure}"
    lines = [
        f"{record.kind} {record.memory_id}",
        f"  {state} · confirmed {record.confirmations} times",
        f"  since {record.occurred_at:%Y-%m-%d %H:%M}, on the word of the {record.trust}",
        f"  written {record.created_at:%Y-%m-%d %H:%M} through {record.origin}",
        *(f"  {name}: {value}" for name, value in details.items()),
        *([f"  importance {10 * record.importance:g} of 10"] if record.importance is not None else []),
        "",
        record.full_text,
    ]
    if record.relatives:
        lines += ["", *(f"  {r.link} {r.kind} {short_id(r.other_id)} ({r.state}): {r.micro}" for r in record.relatives)]
    return "\n".join(lines)


def _record_to_json(record: MemoryDetail) -> dict[str, object]:
    given: dict[str, object] = asdict(record)
    for name in ("occurred_at", "created_at", "confirmed_at"):
        at = getattr(record, name)
        given[name] = at.isoformat() if at else None
    given["memory_id"] = str(record.memory_id)
    given["relatives"] = [r._asdict() | {"other_id": str(r.other_id)} for r in record.relatives]
    return given
