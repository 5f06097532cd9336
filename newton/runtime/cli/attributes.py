"""`newton attributes`: which of them have one value at a time."""

from newton.runtime.cli import show
from newton.runtime.cli.options import Agent, AsJson, settings
from newton.runtime.cli.printing import say
from newton.runtime.opening import opened


async def list_(*, agent: Agent = None, json: AsJson = False) -> None:
    """List the attributes that facts tell of. A newer value of a single one supersedes the older.

    Example: newton attributes list
    """
    async with opened(settings(agent)) as newton:
        known = await newton.curation("cli").attributes()
    if json:
        show.as_json(known)
        return
    for name, single in known.items():
        say(f"{'one value' if single else 'many     '}  {name}")
    if not known:
        say('No fact has one yet. `newton remember "Ana lives in Oslo" --subject Ana --attribute "lives in"`')


async def single(attribute: str, *, agent: Agent = None) -> None:
    """Say that an attribute has one value at a time, from now on.

    Example: newton attributes single "favourite team"
    """
    await _declare(attribute, agent=agent, single=True)


async def many(attribute: str, *, agent: Agent = None) -> None:
    """Say that an attribute may have many values at a time, from now on.

    Example: newton attributes many "email"
    """
    await _declare(attribute, agent=agent, single=False)


async def _declare(attribute: str, *, agent: str | None, single: bool) -> None:
    async with opened(settings(agent)) as newton:
        await newton.curation("cli").declare(attribute, single=single)
    say("Noted. Facts that are there stay as they were told.")
