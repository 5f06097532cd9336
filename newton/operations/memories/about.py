"""The operation that shows what is known of a person."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from newton.agent.field_types import CleanText
from newton.agent.services.persons import PersonProfile, ProfileFact
from newton.memory.lookup import short_id
from newton.memory.representations import one_line
from newton.operations.declaration import operation
from newton.operations.fields import CommandOption
from newton.operations.text_format import pluralize

if TYPE_CHECKING:
    from newton.operations.caller import OperationCaller

SHOWN_FACTS, MAX_FACTS = 60, 3_000


def format_profile(profile: PersonProfile) -> str:
    """Format what is known of a person for a terminal."""
    return "\n".join(_list_lines(profile))


def _list_lines(profile: PersonProfile) -> Iterator[str]:
    names = ", also ".join(profile.names) or "The user"
    if not profile.count:
        yield f"Nothing is known of {'the user' if profile.is_user else names} yet."
        return
    more = "" if profile.shown >= profile.count else f", {profile.shown} shown; `--all` shows all of them"
    yield f"{names}: {pluralize(profile.count, 'fact')}{more}"
    for section in profile.sections:
        yield section.title
        yield from map(_format_fact, section.facts)
    yield '`newton supersede ID "…"` corrects a fact, `newton retract ID` withdraws it, `newton forget ID` deletes it.'


def _format_fact(fact: ProfileFact) -> str:
    until = f"until {fact.valid_to:%Y-%m-%d}" if fact.valid_to else ""
    before = f"before: {fact.before}" if fact.before else ""
    notes = ", ".join(filter(None, (fact.source, until, before)))
    text = one_line(f"{fact.text} ({notes})" if notes else fact.text)
    return f"  {short_id(fact.memory_id)}  {fact.told_at:%Y-%m-%d}  {text}"


@operation("GET /v1/about", "reads", command="about", text=format_profile)
async def about(
    caller: "OperationCaller",
    name: Annotated[
        CleanText | None,
        Field(max_length=200, description="The name of a person, or a role such as `my sister`. Default: the user."),
    ] = None,
    *,
    complete: Annotated[
        bool, CommandOption("all"), Field(description=f"Show all facts, not only the first {SHOWN_FACTS}.")
    ] = False,
) -> PersonProfile:
    """Show what is known of the user or of another person: facts by section, each with its source.

    Example: newton about "Lien"
    """
    return await caller.persons.describe(name, limit=MAX_FACTS if complete else SHOWN_FACTS)
