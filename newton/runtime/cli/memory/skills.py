"""Commands `newton skills`: procedures from SKILL.md folders (the Agent Skills convention)."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from newton.content.skills import find_skills
from newton.errors import ConfigError, ConflictError, InputError
from newton.runtime.cli import formatting
from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.options import AgentOption, JsonOption, load_settings
from newton.runtime.cli.printing import say
from newton.runtime.error_status import EXIT_OK, EXIT_REFUSED


async def add_skills(
    path: Annotated[
        Path, Parameter(help="A folder with a SKILL.md, a folder of such folders, or a SKILL.md file itself.")
    ],
    *,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> int:
    """Store skills as procedures of the agent. A skill that was changed becomes a new version of its procedure.

    The text is that of a person, because you added it. Scripts and other files in the folder are neither stored nor
    run. A file that cannot be read is named, the others are stored, and the exit status is 2.

    Example: newton skills add ~/.claude/skills
    """
    try:
        found = find_skills(path.expanduser())
    except ConfigError as error:
        raise InputError(error.what, hint=error.hint) from None
    results, rejected = dict[str, bool](), [str(error) for error in found.errors.values()]
    async with open_agent(load_settings(agent)) as newton:
        procedures = newton.procedures("cli")
        for skill in found.skills.values():
            try:
                results[skill.name] = await procedures.put(skill)
            except (InputError, ConflictError) as error:
                rejected.append(f"{skill.name}: {error}")
        await newton.maintenance("cli").process_pending()
    if json:
        added = [{"name": name, "is_new": is_new} for name, is_new in results.items()]
        formatting.print_json({"skills": added, "rejected": rejected})
    else:
        for name, is_new in results.items():
            say(f"{name}: {'added' if is_new else 'unchanged'}. `newton procedures show {name}` shows it.")
        for one in rejected:
            formatting.print_notice(f"{one} The skill is left out.")
    return EXIT_REFUSED if rejected else EXIT_OK


async def remove_skill(
    name: Annotated[str, Parameter(help="Name of the skill.")], *, agent: AgentOption = None
) -> None:
    """Retire the procedure of a skill, so that it is in no context any more. Its record is kept.

    Example: newton skills remove rotate-keys
    """
    async with open_agent(load_settings(agent)) as newton:
        await newton.procedures("cli").retire(name)
    say(f"Retired {name}.")
