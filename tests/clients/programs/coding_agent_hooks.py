"""The hooks of a coding agent by its documented inputs. The argument is claude-code or codex."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

from harness import CellTask, Result, serve

PROGRAM = sys.argv[1]
ROOT = Path(os.environ["NEWTON_FOLDER"])
CENSOR = ["git push --force", "--reason", "Two people lost work by it.", "--action", "block"]


def run_newton(task: CellTask, *words: str, text: str = "", **env: str) -> "subprocess.CompletedProcess[str]":
    """Run a command of Newton with the daemon's data folder."""
    bare = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "PYTHONPATH": str(ROOT)}
    env = {**bare, "NEWTON_DATA_DIR": task.data_dir, **env}
    command = [*os.environ["NEWTON_PROGRAM"].split(), *words, "--agent", task.agent]
    folder = Path(task.data_dir).parent  # has newton.toml
    return subprocess.run(command, input=text, env=env, cwd=folder, capture_output=True, text=True, check=False)


def run(task: CellTask, event: str, env: Mapping[str, str] = {}, **fields: Any) -> Result:
    """Run a hook in a new session; return its exit status, its answer and what it says on standard error."""
    example = json.loads((ROOT / "tests" / "data" / "hooks" / PROGRAM / f"{event}.json").read_text(encoding="utf-8"))
    given = {**example, "session_id": uuid4().hex, "cwd": str(Path.cwd()), **fields}
    done = run_newton(task, "hook", "run", "--program", PROGRAM, text=json.dumps(given), **env)
    answer = json.loads(done.stdout)["hookSpecificOutput"] if done.stdout else {}
    return {"status": done.returncode, "answer": answer, "notes": done.stderr}


def tools(task: CellTask) -> Result:
    added = run_newton(task, "censors", "add", *CENSOR)
    assert added.returncode == 0, added.stderr
    return {"denied": run(task, "PreToolUse"), "done": run(task, "PostToolUse")}


def remembers(task: CellTask) -> Result:
    told = run(task, "UserPromptSubmit", prompt=task.fact)
    return {"told": told, "asked": run(task, "UserPromptSubmit", prompt=task.question)}


def errors(task: CellTask) -> Result:
    nowhere = {"NEWTON_DATA_DIR": str(Path.cwd() / uuid4().hex)}
    wrong = {**nowhere, "NEWTON_URL": task.url, "NEWTON_TOKEN": "nwt_wrong"}
    return {"daemon": run(task, "PreToolUse", nowhere), "token": run(task, "PreToolUse", wrong)}


if __name__ == "__main__":
    serve({cell.__name__: cell for cell in (tools, remembers, errors)})
