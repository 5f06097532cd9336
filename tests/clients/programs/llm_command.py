"""The command `llm`, with an OpenAI-compatible endpoint."""

import json
import re
import subprocess
import tempfile
from base64 import b64decode
from functools import partial
from pathlib import Path
from subprocess import DEVNULL

from harness import DOWN_MODEL, ORDER_SCHEMA, UNKNOWN_MODEL, WEATHER_TEXT, CellTask, Result, serve

WEATHER = f'''
def weather(place: str) -> str:
    """Return the weather of a place."""
    return {WEATHER_TEXT!r} if place == "Porto" else "unknown"
'''


def build_command(task: CellTask, *words: str, model: str = "newton", token: str = "") -> list[str]:
    return ["llm", "openai", "endpoint", f"{task.url}/v1", "-m", model, "--key", token or task.token, *words]


def run(command: list[str], *, check: bool = True) -> "subprocess.CompletedProcess[str]":
    """Run llm without standard input, which it would read."""
    return subprocess.run(command, stdin=DEVNULL, capture_output=True, text=True, check=check)


def ask(task: CellTask, *words: str) -> str:
    return run(build_command(task, *words)).stdout


def chat(task: CellTask) -> Result:
    return {"text": ask(task, task.say)}


def stream(task: CellTask) -> Result:
    with subprocess.Popen(build_command(task, task.say), stdin=DEVNULL, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdout
        chunks = list(iter(partial(process.stdout.read, 4096), b""))
    return {"chunks": [chunk.decode() for chunk in chunks]}


def tools(task: CellTask) -> Result:
    command = build_command(task, task.say, "--functions", WEATHER, "--td")
    done = run(command)
    calls = re.findall(r"Tool call: (\w+)\((\{.*?\})\)", done.stderr)
    return {"calls": [(name, json.loads(given.replace("'", '"'))) for name, given in calls], "text": done.stdout}


def structured(task: CellTask) -> Result:
    return {"parsed": json.loads(ask(task, task.say, "--schema", json.dumps(ORDER_SCHEMA)))}


def images(task: CellTask) -> Result:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ferry.png"
        path.write_bytes(b64decode(task.image.partition(",")[2]))
        return {"text": ask(task, task.say, "-a", str(path))}


def remembers(task: CellTask) -> Result:
    return {"texts": [ask(task, text) for text in (task.fact, task.question)]}


def fail(command: list[str]) -> Result:
    done = run(command, check=False)
    return {"class": f"exit status {done.returncode}", "status": None, "message": done.stderr}


def errors(task: CellTask) -> Result:
    return {
        "token": fail(build_command(task, task.say, token="nwt_wrong")),
        "model": fail(build_command(task, task.say, model=UNKNOWN_MODEL)),
        "down": fail(build_command(task, task.say, model=DOWN_MODEL)),
    }


def private(task: CellTask) -> Result:
    return {"text": ask(task, task.say, "--responses")}


if __name__ == "__main__":
    cells = (chat, stream, tools, structured, images, remembers, errors, private)
    serve({cell.__name__: cell for cell in cells})
