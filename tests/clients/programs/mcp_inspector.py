"""MCP Inspector as a command, over streamable HTTP."""

import json
import os
import subprocess
from typing import Any

from harness import CellTask, Result, serve

UNSERVED = "http://127.0.0.1:61"  # nobody serves it, and fetch does not block its port as it does port 9
COMMAND = [os.environ["CLIENTS_NODE"], f"{os.environ['CLIENTS_NODE_MODULES']}/.bin/mcp-inspector", "--cli"]


def run(task: CellTask, *words: str, url: str = "", token: str = "") -> "subprocess.CompletedProcess[str]":
    server = ["--server-url", f"{url or task.url}/mcp", "--transport", "http"]
    headers = ["--header", f"Authorization: Bearer {token or task.token}"]
    command = [*COMMAND, *server, *headers, *words]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


def call(task: CellTask, name: str, **given: Any) -> Result:
    """Return the result of a tool."""
    pairs = [f"{key}={value}" for key, value in given.items()]
    done = run(task, "--method", "tools/call", "--tool-name", name, "--tool-arg", *pairs)
    assert done.stdout, done.stderr
    result = json.loads(done.stdout)
    text, is_error = result["content"][0]["text"], result.get("isError", False)
    return {"text": text, "structured": result["structuredContent"], "is_error": is_error}


def tools(task: CellTask) -> Result:
    listed = run(task, "--method", "tools/list")
    assert listed.returncode == 0, listed.stderr
    names = [tool["name"] for tool in json.loads(listed.stdout)["tools"]]
    stored = call(task, "remember", content=task.fact, source="own")
    return {"names": names, "stored": stored, "found": call(task, "recall", query=task.question)}


def remembers(task: CellTask) -> Result:
    call(task, "remember", content=task.fact, source="own")
    return call(task, "context", input=task.question, max_tokens=500)


def fail(task: CellTask, **options: str) -> Result:
    done = run(task, "--method", "tools/list", "--stored-auth-only", **options)
    return {"class": f"exit status {done.returncode}", "status": None, "message": done.stderr}


def errors(task: CellTask) -> Result:
    refused = call(task, "recall", query="Porto", limit=0)
    assert refused["is_error"]
    return {
        "input": {"class": "is_error", "status": None, "message": refused["text"]},
        "token": fail(task, token="nwt_wrong"),
        "daemon": fail(task, url=UNSERVED),
    }


if __name__ == "__main__":
    serve({"tools": tools, "structured": tools, "remembers": remembers, "errors": errors})
