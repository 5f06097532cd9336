"""Generate newton/client/sync from the asynchronous modules of newton/client, by their tokens."""

import io
import re
import subprocess
import sys
import tokenize
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "newton" / "client"
TARGET = SOURCE / "sync"
NOTE = "# Generated from newton/client/{name} by scripts/make-reference; change that module instead.\n"
PACKAGE = '"""The synchronous client, generated from the asynchronous one."""\n'

DROPPED = {"async", "await"}
RENAMED = {
    "AgentOperations": "SyncAgentOperations",
    "ArtifactOperations": "SyncArtifactOperations",
    "AsyncClient": "Client",
    "AsyncGenerator": "Generator",
    "Client": "SyncClient",
    "DaemonConnection": "SyncDaemonConnection",
    "InventoryOperations": "SyncInventoryOperations",
    "ItemOperations": "SyncItemOperations",
    "OperationMethods": "SyncOperationMethods",
    "SessionOperations": "SyncSessionOperations",
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "aclose": "close",
    "aclosing": "closing",
    "aiter_lines": "iter_lines",
    "anext": "next",
    "aread": "read",
    "asynccontextmanager": "contextmanager",
    "asyncio": "time",  # of which only `sleep` is used
}


def is_asynchronous(source: str) -> bool:
    """Return True for a module that has a counterpart in newton/client/sync."""
    return "async def " in source


def generate_modules() -> dict[str, str]:
    """Return the text of each generated module by its file name."""
    sources = {path.name: path.read_text(encoding="utf-8") for path in sorted(SOURCE.glob("*.py"))}
    chosen = {name: source for name, source in sources.items() if is_asynchronous(source)}
    stems = {Path(name).stem for name in chosen}
    modules = {name: NOTE.format(name=name) + to_synchronous(source, stems) for name, source in chosen.items()}
    return {"__init__.py": PACKAGE, **{name: tidy(text, name) for name, text in modules.items()}}


def to_synchronous(source: str, generated: set[str]) -> str:
    """Return a module without async and await. Imports of modules that are not `generated` lead one package up.

    >>> to_synchronous("from .errors import E\\nasync def f(x):\\n    return (await g(x)).y\\n", set())
    'from ..errors import E\\ndef f(x):\\n    return (g(x)).y\\n'
    """
    lines, cuts = source.splitlines(keepends=True), list[tuple[int, int, int, str]]()
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    for before, token in zip([None, *tokens], tokens, strict=False):
        (row, start), (last, end) = token.start, token.end
        if token.type == tokenize.NAME and token.string in DROPPED:
            cuts.append((row, start, end + 1, ""))
        elif token.type == tokenize.NAME and token.string in RENAMED:
            cuts.append((row, start, end, RENAMED[token.string]))
        elif before and before.string == "." and is_shared(lines[row - 1], generated):
            cuts.append((row, start, start, "."))
        elif token.type == tokenize.STRING and token.string.startswith('"""'):
            texts = [(number, lines[number - 1]) for number in range(row, last + 1)]
            cuts += [(number, 0, len(line), re.sub(r"\b(async|await) (?=\w)", "", line)) for number, line in texts]
    for row, start, end, text in reversed(cuts):
        line = lines[row - 1]
        lines[row - 1] = line[:start] + text + line[end:]
    return "".join(lines)


def is_shared(line: str, generated: set[str]) -> bool:
    """Return True for an import from a module that both clients use."""
    module = re.match(r"from \.(\w+) import", line)
    return module is not None and module[1] not in generated


def tidy(source: str, name: str) -> str:
    """Return the source with sorted imports, formatted."""
    ruff = str(Path(sys.executable).with_name("ruff"))
    place = ["--stdin-filename", str(TARGET / name), "-"]
    fixes = ["--select", "I,UP028,F401", "--fix", "--unsafe-fixes"]  # UP028: `yield from`; F401: unused imports
    for command in ([ruff, "check", "--quiet", *fixes], [ruff, "format", "--quiet"]):
        source = subprocess.run([*command, *place], input=source, capture_output=True, text=True, check=True).stdout
    return source


def write_modules() -> None:
    """Write the generated modules, and delete those that have no source any more."""
    modules = generate_modules()
    TARGET.mkdir(exist_ok=True)
    for path in TARGET.glob("*.py"):
        if path.name not in modules:
            path.unlink()
    for name, text in modules.items():
        (TARGET / name).write_text(text, encoding="utf-8")
        sys.stdout.write(f"newton/client/sync/{name}\n")


if __name__ == "__main__":
    write_modules()
