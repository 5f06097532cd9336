"""The modules that commands load: loading them takes most of the time of a short command."""

import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

from newton.runtime import cli
from tests.system.typed import ROOT


def load_modules(home: Path, statement: str) -> set[str]:
    """Return the names of the modules that a statement loads."""
    script = f"import sys\n{statement}\nprint(*sys.modules, sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env={**os.environ, "NEWTON_DATA_DIR": str(home), "PYTHONPATH": str(ROOT)},
        check=True,
    )
    return set(done.stdout.split("\n"))


# The modules that use the daemon's registry of agents.
OF_DAEMON = {
    f"newton.runtime.cli.{name}"
    for name in ("command_server", *(f"operations.{one}" for one in ("serve", "agents", "jobs")))
}


@pytest.mark.slow
def test_no_command_loads_the_modules_of_an_agent_before_it_opens_one(tmp_path: Path) -> None:
    names = {one.name for one in pkgutil.walk_packages(cli.__path__, f"{cli.__name__}.")} - OF_DAEMON
    assert len(names) > 40
    loaded = load_modules(tmp_path, f"import importlib\nfor name in {sorted(names)}: importlib.import_module(name)")
    assert names <= loaded
    assert not loaded & {"newton.runtime.bootstrap", "openai"}  # loading either takes longer than such a command


@pytest.mark.slow
def test_a_preview_of_an_import_loads_no_model_and_no_services_of_an_agent(tmp_path: Path) -> None:
    (tmp_path / "previewed.ndjson").write_text(
        '{"type": "fact", "content": "Cups are white.", "at": "2026-01-01T00:00:00Z"}\n', encoding="utf-8"
    )
    previews = [["import", "--preview", str(tmp_path / path)] for path in ("previewed.ndjson", ".")]
    statement = f"assert [run_command_line(words) for words in {previews}] == [0, 0]"
    loaded = load_modules(tmp_path, f"from newton.runtime.cli.app import run_command_line\n{statement}")
    assert not loaded & {"newton.runtime.bootstrap", "newton.runtime.wiring", "onnxruntime", "numpy", "openai"}


def test_help_is_quick_and_loads_nothing_heavy(tmp_path: Path) -> None:
    loaded = load_modules(tmp_path, "from newton.runtime.cli import run; run(['--help'])")
    assert not loaded & {"cyclopts", "pydantic", "openai", "onnxruntime", "asyncpg", "numpy", "prompt_toolkit", "yaml"}
    assert len(loaded) < 200, "some 150 are enough"
