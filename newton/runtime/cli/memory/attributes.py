"""Commands `newton attributes`: whether an attribute of facts has one current value or several."""

from typing import Annotated

from cyclopts import Parameter

from newton.errors import InputError
from newton.runtime.cli import formatting
from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.options import AgentOption, JsonOption, load_settings
from newton.runtime.cli.printing import say


async def list_attributes(*, agent: AgentOption = None, json: JsonOption = False) -> None:
    """List the attributes of facts, such as 'lives in'.

    A newer value of a single-valued attribute supersedes the older value; a multi-valued attribute keeps all values.

    Example: newton attributes list
    """
    async with open_agent(load_settings(agent)) as newton:
        attributes = await newton.curation("cli").list_attributes()
    if json:
        formatting.print_json(attributes)
        return
    for name, single_valued in attributes.items():
        say(f"{'single' if single_valued else 'multi '}  {name}")
    if not attributes:
        say('No attributes yet. Add one: `newton remember "Ana lives in Oslo" --subject Ana --attribute "lives in"`')


async def set_cardinality(
    name: Annotated[str, Parameter(help="Name of the attribute, such as 'lives in'.")],
    *,
    single: Annotated[
        bool, Parameter(negative=(), help="The attribute has one current value; a newer value supersedes it.")
    ] = False,
    multi: Annotated[bool, Parameter(negative=(), help="The attribute has any number of current values.")] = False,
    agent: AgentOption = None,
) -> None:
    """Declare that an attribute has one current value, or several. Stored facts do not change.

    Example: newton attributes set "favourite team" --single
    """
    if single == multi:
        raise InputError("Neither or both of --single and --multi are given.", hint="Give either --single or --multi.")
    async with open_agent(load_settings(agent), on_new_agent=formatting.print_new_agent) as newton:
        await newton.curation("cli").set_cardinality(name, single_valued=single)
    say(f"{name} is {'single' if single else 'multi'}-valued. Facts that are already stored did not change.")
