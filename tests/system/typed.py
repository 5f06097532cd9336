"""Commands as a person types them, in this process: starting another for each would take most of the time."""

import io
import os
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from newton.runtime.cli import status


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended, named as of a process."""

    returncode: int
    stdout: str
    stderr: str


def typed(home: Path, *words: str, **settings: str) -> Done:
    """`newton …` in the folder `home`, with its data there and without an embedder."""
    own = {"NEWTON_DATA_DIR": str(home), "NEWTON_EMBEDDING": "none", **settings}
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, chdir(home), redirect_stdout(out), redirect_stderr(err):
        for name in [n for n in os.environ if n.startswith(("NEWTON_", "OPENAI_")) or n == "DATABASE_URL"]:
            patch.delenv(name)
        for name, value in own.items():
            patch.setenv(name, value)
        code = status(list(words))
    return Done(code, out.getvalue(), err.getvalue())


def ok(done: Done) -> str:
    assert done.returncode == 0, done.stderr
    return done.stdout
