"""Options of `newton list` that select memories."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, TypeVar

from cyclopts import Parameter
from pydantic import ValidationError

from newton.agent.inputs import ToolInput
from newton.errors import InputError
from newton.memory.memory import Kind, Trust
from newton.runtime.cli.options import EndTime, StartTime

Input = TypeVar("Input", bound=ToolInput)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class FilterOptions:
    """Options that select memories. An omitted option does not restrict the selection."""

    kind: Annotated[
        tuple[Kind, ...],
        Parameter(
            negative=(), help="Only memories of this kind; repeatable. Default: all but procedures and entities."
        ),
    ] = ()
    state: Annotated[
        tuple[str, ...],
        Parameter(
            negative=(),
            help="Only memories in this state, such as NEW or CORE, or in this group: current (default), past,"
            " quarantined, all; repeatable.",
        ),
    ] = ()
    subject: Annotated[str | None, Parameter(help="Only facts about this person or thing.")] = None
    text: Annotated[str | None, Parameter(help="Only memories that contain all these words.")] = None
    session: Annotated[str | None, Parameter(help="Only messages of this session and memories derived from them.")] = (
        None
    )
    source: Annotated[str | None, Parameter(help="Only memories derived from the memory with this id.")] = None
    origin: Annotated[
        tuple[str, ...],
        Parameter(negative=(), help="Only memories stored through this interface, such as cli; repeatable."),
    ] = ()
    trust: Annotated[
        tuple[Trust, ...], Parameter(negative=(), help="Only memories whose author has this trust tier; repeatable.")
    ] = ()
    since: Annotated[
        datetime | None,
        StartTime,
        Parameter(help="Only memories of events since: a day, a time or words such as 'last week'."),
    ] = None
    until: Annotated[
        datetime | None,
        EndTime,
        Parameter(help="Only memories of events until: a day, a time or words such as 'last week'."),
    ] = None
    created_since: Annotated[
        datetime | None,
        StartTime,
        Parameter(help="Only memories stored since: a day, a time or words such as 'last week'."),
    ] = None
    created_until: Annotated[
        datetime | None,
        EndTime,
        Parameter(help="Only memories stored until: a day, a time or words such as 'last week'."),
    ] = None

    def to_fields(self) -> dict[str, object]:
        """Return the options that are set, by the names of the fields of MemoryFilterInput; times are ISO 8601 text."""
        fields = {
            "kinds": self.kind,
            "states": self.state,
            "subject": self.subject,
            "text": self.text,
            "session": self.session,
            "source": self.source,
            "origins": self.origin,
            "trusts": self.trust,
            "since": self.since and self.since.isoformat(),
            "until": self.until and self.until.isoformat(),
            "created_since": self.created_since and self.created_since.isoformat(),
            "created_until": self.created_until and self.created_until.isoformat(),
        }
        return {name: value for name, value in fields.items() if value}


NO_FILTER = FilterOptions()
# The options of the fields whose names differ from them.
OPTION_NAMES = {"kinds": "kind", "states": "state", "origins": "origin", "trusts": "trust"}


def parse_options(model: type[Input], fields: dict[str, Any]) -> Input:
    """Validate options as an instance of `model`. Raises InputError, which names the first invalid option."""
    try:
        return model(**fields)
    except ValidationError as error:
        first = error.errors()[0]
        field = str(first["loc"][0]) if first["loc"] else ""
        option = f"--{OPTION_NAMES.get(field, field).replace('_', '-')}: " if field else ""
        what = f"{option}{first['msg']}."
        raise InputError(what, hint="Run the command with --help for its options.") from None
