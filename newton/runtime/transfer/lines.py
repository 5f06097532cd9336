"""The lines of an import file: one JSON object each. What cannot be taken is refused with its number and a reason."""

import codecs
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from newton.dialogue.lines import Line, Role
from newton.errors import InputError, NewtonError
from newton.heart.episodes import Experience
from newton.heart.facts import Statement
from newton.memory import hygiene
from newton.memory.memory import digest

LONGEST_LINE = 8 * 1024 * 1024

T = TypeVar("T")

_DATED = re.compile(r"\d{4}-\d{2}-\d{2}")


def _name(text: str) -> str:
    return _checked(lambda: hygiene.name(text, what="text"))


def _ref(text: str) -> str:
    return _checked(lambda: hygiene.ref(text, what="text"))


def _written(at: object) -> object:
    """Of numbers, and of texts of digits alone, pydantic would make times in 1970."""
    if not (isinstance(at, str) and _DATED.match(at)):
        raise PydanticCustomError("time", "must be a time such as 2023-05-08T13:56:00Z")
    return at


def _moment(at: datetime) -> datetime:
    return _checked(lambda: hygiene.moment(at))


def _checked(rule: Callable[[], T]) -> T:
    """What the rule says, as pydantic wants to hear it: then it names the field."""
    try:
        return rule()
    except InputError as error:
        raise PydanticCustomError("refused", "{what}", {"what": error.what.rstrip(".")}) from None


Name = Annotated[str, AfterValidator(_name)]
Ref = Annotated[str, AfterValidator(_ref)]
Time = Annotated[datetime, Field(strict=False), BeforeValidator(_written), AfterValidator(_moment)]


class Given(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    ref: Ref | None = None


class GivenMessage(Given):
    type: Literal["message"]
    session: Ref
    role: Role
    name: Name | None = None
    content: str
    at: Time


class GivenFact(Given):
    type: Literal["fact"]
    content: str
    subject: Name | None = None
    attribute: Name | None = None
    confidence: Annotated[float, Field(ge=0, le=1)] | None = None
    at: Time


class GivenEpisode(Given):
    type: Literal["episode"]
    title: Name
    content: str
    participants: list[Name] = []
    at: Time
    ended_at: Time | None = None


GIVEN: TypeAdapter[GivenMessage | GivenFact | GivenEpisode] = TypeAdapter(
    Annotated[GivenMessage | GivenFact | GivenEpisode, Field(discriminator="type")]
)

# One line of the file as what it asks Newton to keep. A message comes with the session it belongs to.
Item = tuple[str, Line] | Statement | Experience


def read(path: Path) -> Iterator[tuple[int, Item | NewtonError]]:
    """Each line that says something, by its number (the first is 1): what it holds, or why it is refused."""
    seen: Counter[bytes] = Counter()
    for number, raw in _raw_lines(path):
        if isinstance(raw, NewtonError):
            yield number, raw
        elif raw.strip():
            same = digest(raw.strip().decode("utf-8", "replace"))
            try:
                yield number, parsed(raw, nth=seen[same])
            except NewtonError as error:
                yield number, error
            seen[same] += 1


def parsed(raw: bytes, *, nth: int = 0) -> Item:
    """What a line says; `nth` is how often the file had the very same line before.

    Raises InputError for anything but a valid line of the format.
    """
    try:
        given = GIVEN.validate_python(json.loads(raw.decode("utf-8")))
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 at byte {error.start + 1}.", hint="Convert the file to UTF-8.") from None
    except ValidationError as error:
        raise _invalid(error) from None
    except (ValueError, RecursionError) as error:  # no JSON, or a number too long to be read
        raise InputError(f"not JSON: {error}.", hint="Each line is one JSON object.") from None
    return _item(given, raw, nth)


def _item(given: GivenMessage | GivenFact | GivenEpisode, raw: bytes, nth: int) -> Item:
    content, at = hygiene.clean(given.content, what="content"), given.at
    # Without a ref of its own, the same line is the same thing when the file comes again.
    ref = given.ref or digest(raw.strip().decode()).hex()
    match given:
        case GivenMessage():
            line = Line(role=given.role, name=given.name, content=content, said_at=at, ref=given.ref, nth=nth)
            return given.session, line
        case GivenFact():
            return Statement(
                ref=ref,
                content=content,
                subject=given.subject,
                attribute=given.attribute,
                confidence=given.confidence,
                at=at,
            )
        case GivenEpisode():
            ended = given.ended_at or at
            if ended < at:
                raise InputError("'ended_at' is before 'at'.", hint="An episode ends after it begins.")
            return Experience(
                ref=ref,
                title=given.title,
                content=content,
                started_at=at,
                ended_at=ended,
                participants=tuple(given.participants),
            )


def _invalid(error: ValidationError) -> InputError:
    first = error.errors(include_url=False)[0]
    if first["type"] == "union_tag_invalid":
        tag = (first.get("ctx") or {}).get("tag")
        return InputError(f"type {tag!r} cannot be imported.", hint="Known types: message, fact, episode.")
    if first["type"] == "union_tag_not_found":
        return InputError("the object has no 'type'.", hint="Known types: message, fact, episode.")
    field = ".".join(str(part) for part in first["loc"][1:])
    said = first["msg"][:1].lower() + first["msg"][1:]
    what = f"{field!r}: {said}" if field else said
    return InputError(f"{what}.", hint="`newton import --help` shows each line's fields.")


def _raw_lines(path: Path) -> Iterator[tuple[int, bytes | NewtonError]]:
    """Never holds more than one line of the allowed length."""
    number = 0
    try:
        file = path.open("rb")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.", hint="Give the path of an NDJSON file.") from None
    with file:
        while raw := file.readline(LONGEST_LINE + 1):
            number += 1
            if number == 1:
                raw = raw.removeprefix(codecs.BOM_UTF8)
            if len(raw) <= LONGEST_LINE:
                yield number, raw
                continue
            while raw and not raw.endswith(b"\n"):
                raw = file.readline(LONGEST_LINE)
            yield number, InputError("longer than 8 MiB.", hint="Split the content into several lines.")
