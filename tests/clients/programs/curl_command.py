"""The command `curl`, with chat completions."""

import json
import subprocess
from typing import Any

from harness import DOWN_MODEL, ORDER_SCHEMA, UNKNOWN_MODEL, WEATHER_SCHEMA, WEATHER_TEXT, CellTask, Result, serve

WEATHER: Any = {"type": "function", "function": {"name": "weather", "parameters": WEATHER_SCHEMA}}
FORMAT: Any = {"type": "json_schema", "json_schema": {"name": "order", "strict": True, "schema": ORDER_SCHEMA}}


def run(task: CellTask, *messages: Any, token: str = "", **options: Any) -> tuple[int, str]:
    """Return the exit status and the output of curl."""
    body = {"model": "newton", "messages": list(messages), **options}
    headers = [f"Authorization: Bearer {token or task.token}", "Content-Type: application/json"]
    command = ["curl", "-sS", "--fail-with-body", "-N", *(word for one in headers for word in ("-H", one))]
    command += ["-d", json.dumps(body), f"{task.url}/v1/chat/completions"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def complete(task: CellTask, *messages: Any, **options: Any) -> Any:
    """Return the message of the reply."""
    status, output = run(task, *messages, **options)
    assert status == 0, output
    return json.loads(output)["choices"][0]["message"]


def ask(task: CellTask, content: Any, **options: Any) -> str:
    return complete(task, {"role": "user", "content": content}, **options)["content"]


def chat(task: CellTask) -> Result:
    return {"text": ask(task, task.say)}


def stream(task: CellTask) -> Result:
    status, output = run(task, {"role": "user", "content": task.say}, stream=True)
    lines = [line.removeprefix("data: ") for line in output.splitlines() if line.startswith("data: ")]
    assert status == 0 and lines[-1] == "[DONE]", output
    deltas = [choice["delta"] for line in lines[:-1] for choice in json.loads(line)["choices"]]
    return {"chunks": [delta["content"] for delta in deltas if delta.get("content")]}


def tools(task: CellTask) -> Result:
    user = {"role": "user", "content": task.say}
    message = complete(task, user, tools=[WEATHER])
    results = [{"role": "tool", "tool_call_id": one["id"], "content": WEATHER_TEXT} for one in message["tool_calls"]]
    calls = [(one["function"]["name"], json.loads(one["function"]["arguments"])) for one in message["tool_calls"]]
    return {"calls": calls, "text": complete(task, user, message, *results, tools=[WEATHER])["content"]}


def structured(task: CellTask) -> Result:
    return {"parsed": json.loads(ask(task, task.say, response_format=FORMAT))}


def images(task: CellTask) -> Result:
    parts = [{"type": "text", "text": task.say}, {"type": "image_url", "image_url": {"url": task.image}}]
    return {"text": ask(task, parts)}


def remembers(task: CellTask) -> Result:
    return {"texts": [ask(task, text) for text in (task.fact, task.question)]}


def fail(task: CellTask, **options: Any) -> Result:
    status, output = run(task, {"role": "user", "content": task.say}, **options)
    return {"class": f"exit status {status}", "status": None, "message": json.loads(output)["error"]["message"]}


def errors(task: CellTask) -> Result:
    return {
        "token": fail(task, token="nwt_wrong"),
        "model": fail(task, model=UNKNOWN_MODEL),
        "down": fail(task, model=DOWN_MODEL),
    }


def private(task: CellTask) -> Result:
    return {"text": ask(task, task.say, store=False)}


if __name__ == "__main__":
    cells = (chat, stream, tools, structured, images, remembers, errors, private)
    serve({cell.__name__: cell for cell in cells})
