"""The process that runs libraries of other projects (`rival_worker.py`) in the Python of their own environment."""

import asyncio
import json
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from newton.errors import ConfigError, InputError

INSTALL_COMMANDS: Mapping[str, str] = {"mem0": "pip install mem0ai", "langgraph": "pip install langgraph"}
ENVIRONMENT = ".venv-rivals"  # found in the current folder
_WORKER = Path(__file__).with_name("rival_worker.py")
_MAX_LINE_BYTES = 2**26

EmbedTexts = Callable[[Sequence[str]], Awaitable[list[list[float]]]]


@dataclass(frozen=True, slots=True)
class RivalProcess:
    """A worker process. Its requests run one after the other."""

    process: Process
    errors: IO[bytes]

    async def find_versions(self) -> dict[str, str]:
        """Return the versions of the installed libraries by name."""
        versions: dict[str, str] = (await self._request({"versions": True}))["versions"]
        return versions

    async def index(self, library: str, texts: Sequence[str], *, embed: EmbedTexts, dimensions: int) -> str:
        """Store the texts in a new, empty library; return which searches it has."""
        request = {"index": list(texts), "library": library, "dimensions": dimensions}
        return str((await self._request(request, embed))["description"])

    async def search(self, question: str, *, is_default: bool, embed: EmbedTexts) -> list[int]:
        """Return the positions of the texts that the library finds, the best first."""
        ranking: list[int] = (await self._request({"search": question, "is_default": is_default}, embed))["ranking"]
        return ranking

    async def _request(self, request: Mapping[str, Any], embed: EmbedTexts | None = None) -> dict[str, Any]:
        reply = await self._exchange(request)
        while embed and "embed" in reply:
            reply = await self._exchange({"vectors": await embed(reply["embed"])})
        return reply

    async def _exchange(self, request: Mapping[str, Any]) -> dict[str, Any]:
        assert self.process.stdin and self.process.stdout
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            await self.process.stdin.drain()
            line = await self.process.stdout.readline()
        except (BrokenPipeError, ConnectionResetError):
            line = b""
        if not line:
            self.errors.seek(0)
            reason = (self.errors.read().decode(errors="replace").strip().splitlines() or ["it ended"])[-1]
            raise ConfigError(
                f"The process of the other libraries failed: {reason}.",
                hint="Repair their environment, or leave them out with --system.",
            )
        reply: dict[str, Any] = json.loads(line)
        return reply


def find_interpreter(given: Path | None) -> Path:
    """Return the Python of the environment of other libraries: the given one, .venv-rivals, or this one.

    `given` may be the folder of the environment. Raises InputError if it has no Python.
    """
    for folder in (given, None if given else Path(ENVIRONMENT)):
        for path in (folder, *(folder / part for part in ("bin/python", "Scripts/python.exe"))) if folder else ():
            if path.is_file():
                return path.absolute()
    if given:
        hint = f"Create it with `python -m venv {given}` and install: {'; '.join(INSTALL_COMMANDS.values())}."
        raise InputError(f"{given} is no Python environment.", hint=hint)
    return Path(sys.executable)


@asynccontextmanager
async def run_rivals(interpreter: Path) -> AsyncGenerator[RivalProcess]:
    """Run the worker. Raises InputError if the interpreter cannot be started."""
    with tempfile.TemporaryFile() as errors:
        try:
            process = await asyncio.create_subprocess_exec(
                interpreter, "-I", _WORKER, stdin=PIPE, stdout=PIPE, stderr=errors, limit=_MAX_LINE_BYTES
            )
        except OSError as error:
            hint = "Give the Python of an environment."
            raise InputError(f"{interpreter} cannot be started: {error}.", hint=hint) from None
        assert process.stdin
        try:
            yield RivalProcess(process, errors)
        finally:
            process.stdin.close()
            await process.wait()
