"""Command `newton edit`: change the importance or subject of a memory, or mark a fact as core (established)."""

from typing import Annotated

from cyclopts import Parameter

from newton.agent.inventory.memory_edits import EditResult
from newton.agent.memory_inputs import EditMemoryInput
from newton.errors import InputError
from newton.memory.lookup import short_id
from newton.runtime.cli import formatting
from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.memory.filter_options import parse_options
from newton.runtime.cli.options import PERSON, AgentOption, JsonOption, load_settings
from newton.runtime.cli.printing import say
from newton.runtime.tools.memory_views import to_list_item


async def edit_memory(
    memory: Annotated[str, Parameter(help="Id of the memory, or the end of the id as `newton list` prints it.")],
    *,
    importance: Annotated[float | None, Parameter(help="Importance from 0 to 10, instead of the computed one.")] = None,
    derive_importance: Annotated[
        bool, Parameter(negative=(), help="Compute the importance from confirmations and use again.")
    ] = False,
    core: Annotated[bool | None, Parameter(help="Mark the fact as core (established), or remove the mark.")] = None,
    subject: Annotated[str | None, Parameter(help="Person or thing that the fact is about.")] = None,
    remove_subject: Annotated[bool, Parameter(negative=(), help="Remove the subject.")] = False,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Set the importance or the subject of a memory, or mark a fact as core. `newton history` shows all edits.

    Nothing else can be edited: `newton supersede` replaces the text of a fact, `newton retract` and `newton confirm`
    change its state, and trust and origin never change.

    Example: newton edit 3f9c2a71 --importance 9
    """
    if importance is not None and derive_importance:
        raise InputError(
            "--importance and --derive-importance exclude each other.", hint="Give --importance or --derive-importance."
        )
    if subject is not None and remove_subject:
        raise InputError(
            "--subject and --remove-subject exclude each other.", hint="Give --subject or --remove-subject."
        )
    fields: dict[str, object] = {"importance": importance} if importance is not None or derive_importance else {}
    fields |= {"subject": subject} if subject is not None or remove_subject else {}
    fields |= {"core": core} if core is not None else {}
    if not fields:
        raise InputError("The command names nothing to change.", hint="Give --importance, --core or --subject.")
    changes = parse_options(EditMemoryInput, fields)
    async with open_agent(load_settings(agent)) as newton:
        result = await newton.memory_editor("cli", PERSON).edit(memory, changes)
    if json:
        edited = to_list_item(result.memory).model_dump(mode="json")
        formatting.print_json({**edited, "changed": list(result.changed)})
    else:
        say(_format_result(result))


def _format_result(result: EditResult) -> str:
    memory = result.memory
    if not result.changed:
        return f"{short_id(memory.memory_id)} has these values already; nothing changed."
    values = {
        "importance": f"{memory.importance:g}" + ("" if memory.is_importance_set else " (derived)"),
        "core": f"{'yes' if memory.is_core else 'no'} (state {memory.state})",
        "subject": memory.subject or "none",
    }
    changes = ", ".join(f"{name} {values[name]}" for name in result.changed)
    lines = [f"Edited {short_id(memory.memory_id)}: {changes}.", f"  {memory.summary}"]
    return "\n".join(lines)
