"""The rows and columns of the client matrix, and docs/clients/matrix.md made from the results of a run."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
PAGE = ROOT / "docs" / "clients" / "matrix.md"
COLUMNS = {
    "chat": "chat",
    "stream": "stream",
    "tools": "tools",
    "structured": "structured output",
    "images": "images",
    "remembers": "remembers across sessions",
    "errors": "errors",
    "private": "`store: false`",
}
RUNS, FAILS = "yes", "**no**"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRow:
    """One client: its program, its packages, and why a cell is absent.

    `checks` names the checks of its cells. `errors` are the error classes of a wrong token, an unknown model and a model
    server that is down.
    """

    name: str
    program: str
    packages: Sequence[str] = ()
    npm: Sequence[str] = ()
    args: Sequence[str] = ()
    checks: str = "openai"
    errors: Sequence[str] = ()
    absent: Mapping[str, str] = field(default_factory=dict[str, str])
    notes: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def in_node(self) -> bool:
        return self.program.endswith(".mjs")

    @property
    def needs_node(self) -> bool:
        return bool(self.npm)

    @property
    def columns(self) -> list[str]:
        """The columns that run."""
        return [name for name in COLUMNS if name not in self.absent]


def load_rows() -> list[ClientRow]:
    document = yaml.safe_load((FOLDER / "rows.yaml").read_text(encoding="utf-8"))
    reasons: dict[str, str] = document["reasons"]
    return [build_row(values, reasons) for values in document["rows"]]


def build_row(values: dict[str, Any], reasons: Mapping[str, str]) -> ClientRow:
    """Return a row; a reason may be given by its name."""
    absent = {column: reasons.get(text, text) for column, text in values.pop("absent", {}).items()}
    return ClientRow(**values, absent=absent)
