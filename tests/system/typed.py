"""Commands as a person types them, in this process: starting another for each would take most of the time."""

import asyncio
import io
import os
import sys
from asyncio.subprocess import PIPE
from collections.abc import Callable, Mapping, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench.__main__ import run as run_benchmarks
from newton.runtime.cli.app import run_command_line

ROOT = Path(__file__).parents[2]

Run = Callable[[list[str]], int]


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended, named as of a process."""

    returncode: int
    stdout: str
    stderr: str


def typed(home: Path, *words: str, **settings: str) -> Done:
    """`newton …` in the folder `home`, with its data there and without an embedder."""
    return _done(run_command_line, home, words, {"NEWTON_EMBEDDING_PROVIDER": "none", **settings})


def measured(home: Path, *words: str, **settings: str) -> Done:
    """`python -m bench …` with the embedder that ships."""
    return _done(run_benchmarks, home, words, {"NEWTON_EMBEDDING_PROVIDER": "local", **settings})


def chatted(home: Path, lines: str | bytes, *words: str, **settings: str) -> Done:
    """`newton chat …` of somebody who types these lines."""
    given = lines if isinstance(lines, bytes) else lines.encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
        return typed(home, "chat", *words, **settings)


async def piped(home: Path, given: str, *words: str, **settings: str) -> Done:
    """`newton …` in a process of its own, which reads `given` from a pipe and writes to others."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("NEWTON_", "OPENAI_"))}
    own = {"NEWTON_DATA_DIR": str(home), "NEWTON_EMBEDDING_PROVIDER": "none", "PYTHONPATH": str(ROOT)}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "newton", *words), stdin=PIPE, stdout=PIPE, stderr=PIPE, cwd=home,
        env={**plain, **own, **settings},
    )  # fmt: skip
    out, err = await process.communicate(given.encode())
    return Done(process.returncode or 0, out.decode(), err.decode())


def seen(home: Path, *words: str) -> str:
    """What a person sees of it with the embedder that ships: answers and remarks in the order in which they come."""
    screen = io.StringIO()
    assert _status(run_command_line, home, words, {}, (screen, screen)) == 0, screen.getvalue()
    return screen.getvalue()


def _done(run: Run, home: Path, words: Sequence[str], settings: Mapping[str, str]) -> Done:
    out, err = io.StringIO(), io.StringIO()
    code = _status(run, home, words, settings, (out, err))
    return Done(code, out.getvalue(), err.getvalue())


def _status(
    run: Run, home: Path, words: Sequence[str], settings: Mapping[str, str], to: tuple[io.StringIO, io.StringIO]
) -> int:
    with pytest.MonkeyPatch.context() as patch, chdir(home), redirect_stdout(to[0]), redirect_stderr(to[1]):
        for name in [n for n in os.environ if n.startswith(("NEWTON_", "OPENAI_")) or n == "DATABASE_URL"]:
            patch.delenv(name)
        for name, value in {"NEWTON_DATA_DIR": str(home), **settings}.items():
            patch.setenv(name, value)
        return run(list(words))


def ok(done: Done) -> str:
    assert done.returncode == 0, done.stderr
    return done.stdout


def create_agents(home: Path, *names: str) -> None:
    """`newton agents create`, for what only reads an agent."""
    for name in names:
        ok(typed(home, "agents", "create", name))
