"""Guardrails: rules on decisions, as files that a user can edit."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal, cast

from pydantic import Field, ValidationInfo, field_validator

from newton.content.package_data import data_folder
from newton.content.yaml_models import NamedModel, read_folder
from newton.errors import InputError

Text = Annotated[str, Field(min_length=1, max_length=500, pattern=r"\S")]
ExpressionCheck = Callable[[str], None]
Severity = Literal["warn", "block"]


class Guardrail(NamedModel):
    """A rule that is checked before a decision is recorded."""

    description: Text = Field(description="The reason for the rule.")
    expression: str = Field(description="A CEL expression that is true when a choice breaks the rule.")
    severity: Severity = Field(description="What happens to a choice that breaks it.")
    message: Text = Field(description="What to do instead.")

    @field_validator("expression")
    @classmethod
    def _check_expression(cls, expression: str, info: ValidationInfo) -> str:
        try:
            cast("dict[str, ExpressionCheck]", info.context)["check"](expression)
        except InputError as error:
            raise ValueError(f"is refused: {error.what.rstrip('.')} ({error.hint.rstrip('.')})") from None
        return expression


def load_guardrails(check: ExpressionCheck, extra: Path | None = None) -> dict[str, Guardrail]:
    """Load the guardrails that ship with Newton, overlaid by the user's own folder; the same name replaces one.

    `check` raises InputError for an invalid expression. Raises ConfigError with file and line for the first mistake;
    then nothing is loaded.
    """
    context = {"check": check}
    known = read_folder(data_folder("guardrails"), Guardrail, context)
    return known if extra is None else {**known, **read_folder(extra.expanduser(), Guardrail, context)}
