"""Operations on the attributes of facts, such as "lives in", which have one current value or several."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from newton.agent.field_types import Name
from newton.errors import InputError
from newton.operations.declaration import operation
from newton.operations.results import ItemList

if TYPE_CHECKING:
    from newton.operations.caller import OperationCaller


@dataclass(frozen=True, slots=True, kw_only=True)
class FactAttribute:
    """An attribute of facts. A newer value of a single-valued attribute supersedes the older one."""

    name: str
    is_single: bool


def _format_attribute(attribute: FactAttribute) -> str:
    return f"{'single' if attribute.is_single else 'multi '}  {attribute.name}"


def _format_declared(attribute: FactAttribute) -> str:
    values = "single" if attribute.is_single else "multi"
    return f"The attribute is {values}-valued. Facts that are already stored did not change."


@operation(
    "GET /v1/attributes",
    "reads",
    name="attributes",
    command="attributes list",
    text=_format_attribute,
    empty='No attributes yet. Add one: `newton remember "Ana lives in Oslo" --subject Ana --attribute "lives in"`',
    absent={"mcp": "A model does not need this: Newton does it by itself, or a person does it."},
)
async def list_attributes(caller: "OperationCaller") -> ItemList[FactAttribute]:
    """List the attributes of facts, such as 'lives in'.

    A newer value of a single-valued attribute supersedes the older value; a multi-valued attribute keeps all values.

    Example: newton attributes list
    """
    found = await caller.curation.list_attributes()
    return ItemList(items=[FactAttribute(name=name, is_single=is_single) for name, is_single in found.items()])


@operation(
    "PUT /v1/attributes/{name}",
    "changes",
    act="govern",
    command="attributes set",
    text=_format_declared,
    is_idempotent=True,
    absent={"mcp": "A model does not need this: Newton does it by itself, or a person does it."},
)
async def set_attribute(
    caller: "OperationCaller",
    name: Annotated[Name, Field(description="Name of the attribute, such as 'lives in'.")],
    *,
    single: Annotated[
        bool, Field(description="The attribute has one current value; a newer value supersedes it.")
    ] = False,
    multi: Annotated[bool, Field(description="The attribute has any number of current values.")] = False,
) -> FactAttribute:
    """Declare that an attribute has one current value, or several. Stored facts do not change.

    Example: newton attributes set "favourite team" --single
    """
    if single == multi:
        raise InputError("Neither or both of `single` and `multi` are given.", hint="Give `single` or `multi`.")
    await caller.curation.set_cardinality(name, single_valued=single)
    return FactAttribute(name=name, is_single=single)
