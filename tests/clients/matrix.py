"""The rows and columns of the client matrix, and docs/clients/matrix.md made from the results of a run."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

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
MEANINGS = {
    "chat": "A message reaches the model, and its reply the client.",
    "stream": "The reply arrives in more than one chunk.",
    "tools": "The model calls a tool of the client, and is sent its result. MCP: the client lists and calls the"
    " tools of Newton.",
    "structured": "A JSON schema reaches the model, and an object that fits it the client. MCP: a result has"
    " `structuredContent`.",
    "images": "A PNG image as a data URL reaches the model unchanged.",
    "remembers": "A fact told in one session is in the context of another one.",
    "errors": "Each failure is the error class below, with a message that says what is wrong.",
    "private": "Afterwards the agent has no memory, session or context of it.",
}
CASES = {
    "token": "wrong token",
    "model": "unknown model",
    "down": "model server down",
    "daemon": "no daemon",
    "input": "invalid argument of a tool",
    "agent": "unknown agent",
}
RUNS, FAILS, ABSENT = "yes", "**no**", "—"
TOOLS_LINE = "Run with "
Cell: TypeAlias = tuple[str, str]  # the names of a row and a column


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRow:
    """One client: its program, its packages, and why a cell is absent.

    `checks` names the checks of its cells. `errors` are the classes of its errors by case, `phrases` the words of their
    messages that differ from other clients. `failures` says why a cell does not pass.
    """

    name: str
    program: str
    packages: Sequence[str] = ()
    npm: Sequence[str] = ()
    args: Sequence[str] = ()
    checks: str = "openai"
    errors: Mapping[str, str] = field(default_factory=dict[str, str])
    absent: Mapping[str, str] = field(default_factory=dict[str, str])
    notes: Mapping[str, str] = field(default_factory=dict[str, str])
    phrases: Mapping[str, str] = field(default_factory=dict[str, str])
    failures: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def in_node(self) -> bool:
        return self.program.endswith(".mjs")

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


def list_cells(rows: Sequence[ClientRow]) -> set[Cell]:
    """Return all cells that run."""
    return {(row.name, column) for row in rows for column in row.columns}


def read_versions() -> dict[str, str]:
    """Return the locked version of each package; those of Node.js begin with `npm:`."""
    lines = (ROOT / "requirements" / "clients.txt").read_text(encoding="utf-8")
    packages = json.loads((FOLDER / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    node = {f"npm:{name.removeprefix('node_modules/')}": one.get("version", "") for name, one in packages.items()}
    return {**dict(re.findall(r"^([\w.-]+)==([^\s;]+)", lines, re.MULTILINE)), **node}


def render_page(rows: Sequence[ClientRow], results: Mapping[Cell, bool], tools: str) -> str:
    """Return the page for the results of a run. `tools` are the versions of programs that no lock file pins."""
    versions, notes = read_versions(), list[str]()
    lines = [("client", *COLUMNS.values()), *[("---",) * (1 + len(COLUMNS))]]
    lines += [(describe_client(row, versions), *render_cells(row, results, notes)) for row in rows]
    meanings = [("column", "what a cell shows"), ("---", "---"), *zip(COLUMNS.values(), MEANINGS.values(), strict=True)]
    cases = [("client", "error by case"), ("---", "---"), *((row.name, list_errors(row)) for row in rows)]
    numbered = [f"{number}. {text}" for number, text in enumerate(notes, 1)]
    values = {"MATRIX": table(lines), "COLUMNS": table(meanings), "ERRORS": table(cases), "NOTES": "\n".join(numbered)}
    text = (FOLDER / "matrix.template.md").read_text(encoding="utf-8")
    for name, value in {**values, "TOOLS": f"{TOOLS_LINE}{tools}."}.items():
        text = text.replace(f"{{{{{name}}}}}", value)
    return text


def describe_client(row: ClientRow, versions: Mapping[str, str]) -> str:
    """Return the first cell of a row: the name of the client and the versions of its packages."""
    names = [*row.packages, *(f"npm:{name}" for name in row.npm)]
    return "<br>".join([row.name, *(f"`{name.removeprefix('npm:')}` {versions[name]}" for name in names)])


def render_cells(row: ClientRow, results: Mapping[Cell, bool], notes: list[str]) -> list[str]:
    """Return the cells of a row, and add to the notes those that are new."""
    cells = list[str]()
    for column in COLUMNS:
        result = ABSENT if column in row.absent else RUNS if results.get((row.name, column)) else FAILS
        failure = row.failures.get(column) if result == FAILS else None
        note = row.absent.get(column) or failure or row.notes.get(column)
        if note and note not in notes:
            notes.append(note)
        cells.append(f"{result} ({notes.index(note) + 1})" if note else result)
    return cells


def list_errors(row: ClientRow) -> str:
    return ", ".join(f"{CASES[case]}: `{name}`" for case, name in row.errors.items())


def table(lines: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; the second line separates the head."""
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def drop_tools(page: str) -> str:
    """Return the page without the line that differs between machines."""
    return "\n".join(line for line in page.splitlines() if not line.startswith(TOOLS_LINE))
