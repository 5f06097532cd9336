"""Recognition of requests that known programs send on their own (UI tasks), such as one for a chat's title."""

from collections.abc import Iterable
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import re2
from pydantic import AfterValidator, Field

from newton.content.yaml_files import NamedModel, parse_trusted, read_folder

EXAMINED_CHARS = 6_000  # of the beginning and of the end of a message

_OPTIONS = re2.Options()
_OPTIONS.case_sensitive, _OPTIONS.log_errors = False, False


def _compile(pattern: str) -> "re2.Pattern":
    return re2.compile(f"(?m){pattern}", _OPTIONS)


def _check_pattern(pattern: str) -> str:
    try:
        _compile(pattern)
    except re2.error as error:
        raise ValueError(f"is not a pattern of RE2: {error}") from None
    return pattern


Pattern = Annotated[str, Field(min_length=1, max_length=1_000), AfterValidator(_check_pattern)]


class UiTask(NamedModel):
    """One kind of request that a program sends on its own. Patterns are of RE2, case-insensitive."""

    description: str = Field(min_length=1, max_length=500)
    certain: tuple[Pattern, ...] = Field(
        (), description="Patterns whose match in the last message of the user shows that a program wrote the request."
    )
    system: tuple[Pattern, ...] = Field((), description="The same for the system message.")

    @cached_property
    def patterns(self) -> tuple["re2.Pattern", ...]:
        return tuple(_compile(one) for one in self.certain)

    @cached_property
    def system_patterns(self) -> tuple["re2.Pattern", ...]:
        return tuple(_compile(one) for one in self.system)


@cache
def load_known_tasks() -> tuple[UiTask, ...]:
    """Return the UI tasks of known programs, which ship with Newton."""
    text = files("newton.content").joinpath("known_ui_tasks.yaml").read_text(encoding="utf-8")
    return tuple(UiTask.model_validate(one, strict=False) for one in parse_trusted(text))


def load_ui_tasks(folder: Path) -> tuple[UiTask, ...]:
    """Load the operator's UI tasks (kinds of requests that programs send by themselves) from a folder.

    There are none if the folder does not exist. Raises ConfigError for the first mistake in a file.
    """
    folder = folder.expanduser()
    return tuple(read_folder(folder, UiTask).values()) if folder.is_dir() else ()


def find_ui_task(own: Iterable[UiTask], user: str, *, system: str = "") -> str | None:
    """Return the kind of UI task that a request is; None if it has the shape of no known program's.

    `own` are the operator's tasks, which are compared first. `user` is the last message of the user, and `system` the
    system message. Anyone can send such a text, so recognition takes no rule away. Pure.
    """
    user, system = _shorten(user), _shorten(system)
    for one in (*own, *load_known_tasks()):
        pairs = ((user, one.patterns), (system, one.system_patterns))
        if any(pattern.search(text) for text, patterns in pairs if text for pattern in patterns):
            return one.name
    return None


def _shorten(text: str) -> str:
    return text if len(text) <= 2 * EXAMINED_CHARS else f"{text[:EXAMINED_CHARS]}\n{text[-EXAMINED_CHARS:]}"
