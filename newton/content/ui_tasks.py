"""Recognition of requests that programs send on their own (UI tasks), such as one for a chat's title."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated

import re2
from pydantic import AfterValidator, Field

from newton.content.ui_requests.request_features import EXAMINED_CHARS, extract_features
from newton.content.ui_requests.request_model import compute_probability, load_model, name_kind
from newton.content.yaml_models import NamedModel, read_folder

MAX_OWN_LINE = 0.02  # probability of a task for a line that only a person writes
MAX_LINES = 100  # of a request that are judged alone

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
    """One kind of request that a program of the operator sends on its own. Patterns are of RE2, case-insensitive."""

    description: str = Field(min_length=1, max_length=500)
    certain: tuple[Pattern, ...] = Field(
        (), description="Patterns whose match alone shows that a program wrote the request."
    )

    @cached_property
    def patterns(self) -> tuple["re2.Pattern", ...]:
        return tuple(_compile(one) for one in self.certain)


def load_ui_tasks(folder: Path) -> tuple[UiTask, ...]:
    """Load the operator's UI tasks, none if there is no such folder. Raises ConfigError."""
    folder = folder.expanduser()
    return tuple(read_folder(folder, UiTask).values()) if folder.is_dir() else ()


def find_ui_task(own: Iterable[UiTask], user: str, *, system: str = "", earlier: Sequence[str] = ()) -> str | None:
    """Return the kind of UI task that a request is, or None if a person seems to have written it.

    `own` are the operator's tasks, whose patterns decide before the model does. `user` is the last message of the user,
    `system` the system message, and `earlier` are the texts before `user`. Pure.
    """
    words = user if len(user) <= 2 * EXAMINED_CHARS else f"{user[:EXAMINED_CHARS]}\n{user[-EXAMINED_CHARS:]}"
    if named := next((one.name for one in own if any(pattern.search(words) for pattern in one.patterns)), None):
        return named
    model, features = load_model(), extract_features(user, system=system, earlier=earlier)
    if compute_probability(features, model) < model.minimum or _contains_own_line(words, system, earlier):
        return None
    return name_kind(features, model)


def _contains_own_line(text: str, system: str, earlier: Sequence[str]) -> bool:
    """Return whether a person presents the text: "This is from the school, is it serious?" over a notice with orders.

    Within a conversation any line may be the person's; in its first message only the first line is, because what a
    program quotes there follows its instruction.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    own = lines[: MAX_LINES if earlier else 1] if len(lines) > 1 else []
    judged = (extract_features(line, system=system, earlier=earlier) for line in own)
    return any(compute_probability(features, load_model()) < MAX_OWN_LINE for features in judged)
