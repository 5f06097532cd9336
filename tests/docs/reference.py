"""Build docs/reference, docs/openapi.json and docs/decisions/index.md, which are not committed (`scripts/docs`).

Sources: the command line application, the settings model, the API, the error classes, the event types, the verbs, the
input models and the titles of the decision records. The file of routes that the package reads is committed.
"""

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from newton import errors
from newton.agent.events import EVENT_TYPES
from newton.environment import SECRET_SETTINGS, SHARED_VARIABLES
from newton.runtime.api.app import build_openapi, create_app
from newton.runtime.cli.app import build_app
from newton.runtime.error_status import get_error_status
from newton.runtime.interface_matrix import AbsenceReason, VerbRow, load_verbs
from newton.settings import SETTING_GROUPS
from tests.docs.parameters import INTERFACES, collect_parameters, collect_results

if TYPE_CHECKING:
    from newton.runtime.agent_registry import AgentRegistry

ROOT = Path(__file__).parents[2]
NOTE = "Built from the code by `scripts/docs`.\n"


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a Markdown table."""
    lines = [head, ("---",) * len(head), *rows]
    cells = [[" ".join(cell.replace("|", "\\|").split()) for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def commands() -> str:
    """Return the help of every command as Markdown."""
    text = build_app().generate_docs(recursive=True, heading_level=1, max_heading_level=4)
    title, _, rest = text.partition("\n")
    return (
        f"# Commands\n\n{NOTE}\n{rest.strip()}\n"
        if title.startswith("# ")
        else f"# Commands\n\n{NOTE}\n{text.strip()}\n"
    )


def settings() -> str:
    """Return all settings with their variable, default and meaning."""
    shared = {field: name for name, field in SHARED_VARIABLES.items()}
    parts = list[str]()
    for group in SETTING_GROUPS:
        rows = [
            (
                f"`{name}`",
                f"`NEWTON_{name.upper()}`" + (f", `{shared[name]}`" if name in shared else ""),
                f"`{field.get_default(call_default_factory=True)}`",
                field.description or "",
            )
            for name, field in group.model_fields.items()
        ]
        title = (group.__doc__ or "").rstrip(".")
        parts.append(f"## {title}\n\n{table(('newton.toml', 'environment', 'default', 'meaning'), rows)}\n")
    intro = (
        "Settings are read from `newton.toml` in the current folder (or the file named by `NEWTON_CONFIG`), then from "
        "the environment, then from flags. An unknown name is refused with the nearest known one.\n\n"
        "The value of a secret setting can be in a file: the variable with `_FILE` after its name, such as"
        " `OPENAI_API_KEY_FILE`, is the path of the file. These are "
        + ", ".join(f"`{name}`" for name in SECRET_SETTINGS)
        + ", and the variables that `api_key_env` names."
    )
    return f"# Settings\n\n{NOTE}\n{intro}\n\n{chr(10).join(parts)}"


def http() -> str:
    """Return all routes with their operation id, by tag."""
    spec: Mapping[str, Any] = describe_api()
    by_tag: dict[str, list[tuple[str, ...]]] = {}
    for path, operations in spec["paths"].items():
        for method, operation in operations.items():
            summary = (operation.get("description") or operation.get("summary") or "").split("\n\n")[0]
            row = (f"`{method.upper()} {path}`", f"`{operation['operationId']}`", summary)
            by_tag.setdefault(operation["tags"][0], []).append(row)
    parts = [
        f"## {tag}\n\n{table(('route', 'operation', 'what it does'), rows)}" for tag, rows in sorted(by_tag.items())
    ]
    intro = (
        "Every request needs `Authorization: Bearer TOKEN`, except the health checks. Errors are RFC 9457 problem "
        "documents ([errors](errors.md)). [openapi.json](../openapi.json) has all schemas."
    )
    return f"# HTTP\n\n{NOTE}\n{intro}\n\n" + "\n\n".join(parts) + "\n"


def error_codes() -> str:
    """Return all error codes with their HTTP and exit status."""
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.NewtonError)]
    rows: list[tuple[str, ...]] = []
    for kind in kinds:
        status = get_error_status(kind.code)
        rows.append(
            (
                f"`{kind.code}`",
                str(status.http),
                str(status.exit_code),
                "yes" if status.retryable else "no",
                status.title,
            )
        )
    intro = (
        "An error has a stable code, what is wrong, and what to do. HTTP answers a problem document with the code in "
        "`code`; a command prints the text, or JSON with `--json`, and exits with the status below."
    )
    return f"# Errors\n\n{NOTE}\n{intro}\n\n{table(('code', 'HTTP', 'exit', 'retry', 'meaning'), rows)}\n"


def events() -> str:
    """Return all event types."""
    intro = (
        "`GET /v1/events` streams these as server-sent events. The payload holds ids, numbers and names, never "
        "text of a conversation. An event is published in the transaction of its change and kept for seven days."
    )
    rows = [(f"`{name}`", meaning) for name, meaning in sorted(EVENT_TYPES.items())]
    return f"# Events\n\n{NOTE}\n{intro}\n\n{table(('type', 'published when'), rows)}\n"


def verbs() -> str:
    """Return the table of verbs with their names in each interface."""
    paths = routes()
    prefixes = {"cli": "newton "}
    rows: list[tuple[str, ...]] = []
    for row in load_verbs():
        cells = [f"**{row.name}**: {row.meaning}", _format_effects(row)]
        for interface, cell in row.cells.items():
            if isinstance(cell, AbsenceReason):
                cells.append(f"— {cell.text}")
                continue
            shown = [paths[name] if interface == "http" else f"{prefixes.get(interface, '')}{name}" for name in cell]
            cells.append(", ".join(f"`{name}`" for name in shown))
        rows.append(tuple(cells))
    intro = (
        "What Newton can do, and its name in each interface. A dash says why an interface does not have a verb. The"
        " effect says whether a verb reads stored rows (and at most counts accesses), adds or changes some, or destroys"
        " some. HTTP and MCP share their inputs; slash commands of the chat run the same operations or call the"
        " MCP tools."
    )
    head = ("verb", "effect", "command line", "HTTP", "MCP tool", "Python client", "chat")
    return f"# Verbs\n\n{NOTE}\n{intro}\n\n{table(head, rows)}\n"


def _format_effects(row: VerbRow) -> str:
    """Return what the operation does to stored rows, and which of its names do something else."""
    named: dict[str, list[str]] = {}
    for name, effect in row.other_effects.items():
        named.setdefault(effect, []).append(f"`{name}`")
    return "; ".join([row.effect, *(f"{effect}: {', '.join(names)}" for effect, names in named.items())])


def parameters() -> str:
    """Return every parameter and result name with its meaning, once, and where each interface uses it."""
    spec = describe_api()
    rows = [
        (f"`{one.name}`", one.meaning, *(one.cell(interface) for interface in INTERFACES))
        for one in collect_parameters(spec)
    ]
    answers = [(f"`{one.name}`", one.meaning, one.cell("HTTP")) for one in collect_results(spec)]
    intro = (
        "Every name that the command line, HTTP, MCP and the Python client use, once. An option of the command line has"
        " hyphens (`--created-since`) where the others have underscores, and a repeatable one is singular (`--kind`)"
        " where the others take a list (`kinds`). The OpenAI protocol has the names of OpenAI and is left out."
    )
    return (
        f"# Parameters\n\n{NOTE}\n{intro}\n\n## Parameters\n\n{table(('name', 'meaning', *INTERFACES), rows)}\n\n"
        f"## Results\n\n{table(('name', 'meaning', 'HTTP'), answers)}\n"
    )


@cache
def routes() -> dict[str, str]:
    """Return the route of each operation, by which hints name it."""
    paths: Mapping[str, Any] = describe_api()["paths"]
    return {
        operation["operationId"]: f"{method.upper()} {path}"
        for path, operations in paths.items()
        for method, operation in operations.items()
    }


@cache
def describe_api() -> dict[str, Any]:
    """Return the OpenAPI description; the routes need no agents for it."""
    return build_openapi(create_app(cast("AgentRegistry", None), operator_token=""))


def decision_records() -> str:
    """Return the list of the decision records with their titles."""
    titles = [
        (path.name, path.read_text(encoding="utf-8").partition("\n")[0].partition(". ")[2])
        for path in sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    ]
    intro = "Each record names a choice and its reasons, where a reader of the code would otherwise undo the choice."
    lines = "\n".join(f"- [{name[:4]}]({name}): {title}" for name, title in titles)
    return f"# Design decisions\n\n{NOTE}\n{intro}\n\n{lines}\n"


def openapi() -> str:
    """Return the OpenAPI description as JSON."""
    return json.dumps(describe_api(), indent=1, ensure_ascii=False) + "\n"


def operation_routes() -> str:
    """Return the route of each operation as JSON."""
    return json.dumps(routes(), indent=1, sort_keys=True) + "\n"


BUILT: Mapping[str, Callable[[], str]] = {
    "docs/openapi.json": openapi,
    "docs/decisions/index.md": decision_records,
    "docs/reference/commands.md": commands,
    "docs/reference/settings.md": settings,
    "docs/reference/http.md": http,
    "docs/reference/errors.md": error_codes,
    "docs/reference/events.md": events,
    "docs/reference/verbs.md": verbs,
    "docs/reference/parameters.md": parameters,
}
COMMITTED: Mapping[str, Callable[[], str]] = {"newton/runtime/operation_routes.json": operation_routes}


def write_files() -> None:
    """Write each file that is missing or not current. Others stay untouched, because running tests may read them."""
    for name, build in {**COMMITTED, **BUILT}.items():
        path, text = ROOT / name, build()
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"{name}\n")


if __name__ == "__main__":
    write_files()
