"""`newton attributes`: which of them have one value at a time."""

from newton.runtime.bootstrap import open_newton
from newton.runtime.cli import formatting
from newton.runtime.cli.options import AgentOption, JsonOption, load_settings
from newton.runtime.cli.printing import say


async def list_attributes(*, agent: AgentOption = None, json: JsonOption = False) -> None:
    """List the attributes that facts tell of. A newer value of a single one supersedes the older.

    Example: newton attributes list
    """
    async with open_newton(load_settings(agent)) as newton:
        known = await newton.curation("cli").list_attributes()
    if json:
        formatting.print_json(known)
        return
    for name, single in known.items():
        say(f"{'one value' if single else 'many     '}  {name}")
    if not known:
        say('No fact has one yet. `newton remember "Ana lives in Oslo" --subject Ana --attribute "lives in"`')


async def set_single_valued(attribute: str, *, agent: AgentOption = None) -> None:
    """Say that an attribute has one value at a time, from now on.

    Example: newton attributes single "favourite team"
    """
    await _set_cardinality(attribute, agent=agent, single=True)


async def set_multi_valued(attribute: str, *, agent: AgentOption = None) -> None:
    """Say that an attribute may have many values at a time, from now on.

    Example: newton attributes many "email"
    """
    await _set_cardinality(attribute, agent=agent, single=False)


async def _set_cardinality(attribute: str, *, agent: str | None, single: bool) -> None:
    async with open_newton(load_settings(agent)) as newton:
        await newton.curation("cli").set_cardinality(attribute, single_valued=single)
    say("Noted. Facts that are there stay as they were told.")
