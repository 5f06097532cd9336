"""The lines of an import file: one JSON object each. What cannot be taken is refused with its number and a reason."""

import json
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from newton.dialogue.lines import Line, Role
from newton.errors import InputError, NewtonError
from newton.heart.episodes import Experience
from newton.heart.facts import Statement
from newton.memory.hygiene import clean, redacted
from newton.memory.memory import digest

LONGEST_LINE = 8 * 1024 * 1024


def _plain(text: str) -> str:
    """A name or an id: one line of real characters, without secrets."""
    if not text.isprintable() or not text.strip():
        raise ValueError("must be one line of printable characters")
    return redacted(text)


Text = Annotated[str, Field(min_length=1, max_length=500), AfterValidator(_plain)]


class Given(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    ref: Text | None = None


class GivenMessage(Given):
    type: Literal["message"]
    session: Text
    role: Role
    name: Text | None = None
    content: str
    at: Annotated[datetime, Field(strict=False)]


class GivenFact(Given):
    type: Literal["fact"]
    content: str
    subject: Text | None = None
    attribute: Text | None = None
    confidence: Annotated[float, Field(ge=0, le=1)] | None = None
    at: Annotated[datetime, Field(strict=False)]


class GivenEpisode(Given):
    type: Literal["episode"]
    title: Text
    content: str
    participants: list[Text] = []
    at: Annotated[datetime, Field(strict=False)]
    ended_at: Annotated[datetime, Field(strict=False)] | None = None


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
    content, at = clean(given.content, what="content"), _zoned(given.at, "at")
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
            ended = _zoned(given.ended_at, "ended_at") if given.ended_at else at
            if ended < at:
                raise InputError("'ended_at' is before 'at'.", hint="An episode ends after it begins.")
            return Experience(
                ref=ref,
                title=clean(given.title, what="title"),
                content=content,
                started_at=at,
                ended_at=ended,
                participants=tuple(given.participants),
            )


def _zoned(at: datetime, field: str) -> datetime:
    if at.tzinfo is None:
        raise InputError(f"{field!r} has no time zone: {at.isoformat()}.", hint="Write it as 2023-05-08T13:56:00Z.")
    if not 2 <= at.year <= 9998:
        raise InputError(f"{field!r} is not a usable year: {at.year}.", hint="Years run from 2 to 9998.")
    return at


def _invalid(error: ValidationError) -> InputError:
    first = error.errors(include_url=False)[0]
    if first["type"] == "union_tag_invalid":
        tag = (first.get("ctx") or {}).get("tag")
        return InputError(f"type {tag!r} cannot be imported.", hint="Known types: message, fact, episode.")
    if first["type"] == "union_tag_not_found":
        return InputError("the object has no 'type'.", hint="Known types: message, fact, episode.")
    field = ".".join(str(part) for part in first["loc"][1:])
    what = f"{field!r}: {first['msg'].lower()}" if field else first["msg"].lower()
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
            if len(raw) <= LONGEST_LINE:
                yield number, raw
                continue
            while raw and not raw.endswith(b"\n"):
                raw = file.readline(LONGEST_LINE)
            yield number, InputError("longer than 8 MiB.", hint="Split the content into several lines.")
