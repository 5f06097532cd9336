"""Guardrails (rules that a decision must satisfy), read from YAML files."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, cast

from pydantic import Field, ValidationInfo, field_validator

from newton.content.package_data import data_folder
from newton.content.yaml_models import ExpressionCheck, NamedModel, check_expression, read_folder

Text = Annotated[str, Field(min_length=1, max_length=500, pattern=r"\S")]
Severity = Literal["warn", "block"]


class Guardrail(NamedModel):
    """A rule that is checked before a decision is recorded."""

    description: Text = Field(description="The reason for the guardrail.")
    expression: str = Field(description="A CEL expression that is true if a decision violates the rule.")
    severity: Severity = Field(description="What happens to a decision that violates the rule: warn or block.")
    message: Text = Field(description="The text shown when a decision violates the rule: what to do instead.")

    @field_validator("expression")
    @classmethod
    def _check_expression(cls, expression: str, info: ValidationInfo) -> str:
        return check_expression(expression, cast("dict[str, ExpressionCheck]", info.context)["check"])


def load_guardrails(check: ExpressionCheck, extra: Path | None = None) -> dict[str, Guardrail]:
    """Load the guardrails that ship with Newton; one in the folder `extra` replaces the one of the same name.

    `check` validates each expression. Raises ConfigError.
    """
    own = {} if extra is None else read_folder(extra.expanduser(), Guardrail, {"check": check})
    return {**_load_shipped_guardrails(check), **own}


@cache
def _load_shipped_guardrails(check: ExpressionCheck) -> Mapping[str, Guardrail]:
    return read_folder(data_folder("guardrails"), Guardrail, {"check": check})
