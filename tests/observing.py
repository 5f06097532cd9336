"""Coding situations as programs send them: as events of a session, or as messages of tools; and what is asked."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from newton.client import Client
from newton.content.yaml_files import parse_trusted

DATA = Path(__file__).parent / "data"
Way = Literal["events", "messages"]


def load_situations(name: str) -> tuple[list[dict[str, Any]], list[str]]:
    """The situations of a file, and the questions that have nothing to do with them."""
    data = parse_trusted((DATA / f"{name}.yaml").read_text(encoding="utf-8"))
    return data["situations"], data["unrelated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Whether the observation of each situation is in the context, and how many are in that of another question."""

    same: dict[str, bool]
    other: dict[str, bool]
    unrelated_same: list[int]
    unrelated_other: list[int]


async def tell(client: Client, situation: dict[str, Any], way: Way) -> None:
    """The session of a situation: what the tools did, and then what was said."""
    session, observations = situation["name"], situation["observations"]
    events: Any = [
        {"ref": f"e{n}", "event_type": type, "payload": payload} for n, (type, payload) in enumerate(observations)
    ]
    tools = [message for n, (type, payload) in enumerate(observations) for message in as_messages(n, type, payload)]
    said: list[Any] = [
        {"role": ("user", "assistant")[n % 2], "content": text, "ref": f"m{n}"}
        for n, text in enumerate(situation["said"])
    ]
    opening: Any = {"role": "user", "content": "Let us go on with the work.", "ref": "m"}
    if way == "events":
        await client.append_messages(session, [opening, *said], events=events)
    else:
        await client.append_messages(session, cast("Any", [opening, *tools, *said]))


def as_messages(number: int, type: str, payload: dict[str, Any]) -> list[dict[str, Any]]:
    """The call of a tool that a program would have made, and the tool's answer."""
    match type:
        case "shell_exec":
            name, arguments = "bash", {"command": payload["command"]}
            output = f"{payload.get('stdout', '')}{payload.get('stderr', '')}\nexit code {payload['exit_code']}"
        case "file_read":
            name, arguments, output = "read_file", {"path": payload["path"]}, payload["content"]
        case "file_write":
            name, arguments = "edit_file", {"path": payload["path"], "new_string": "x"}
            output = payload["outcome"]
        case _:
            name, arguments = "run_app", {"mode": "debug"}
            output = f"Error: {payload['message']}\n{payload.get('stack', '')}"
    call = {"id": f"c{number}", "name": name, "arguments": json.dumps(arguments)}
    return [
        {"role": "assistant", "content": "", "ref": f"a{number}", "calls": [call]},
        {"role": "tool", "content": output, "ref": f"t{number}", "answers": call["id"]},
    ]


async def measure(client: Client, situations: list[dict[str, Any]], unrelated: list[str], way: Way) -> Measured:
    """Tell all situations, then ask in each session, in a new one, and what has nothing to do with any."""
    for situation in situations:
        await tell(client, situation, way)
    await client.append_messages("elsewhere", [{"role": "user", "content": "Good morning.", "ref": "m"}])
    same = {one["name"]: await _has(client, one["same"], one["name"], one["mark"]) for one in situations}
    other = {one["name"]: await _has(client, one["other"], "elsewhere", one["mark"]) for one in situations}
    return Measured(
        same=same,
        other=other,
        unrelated_same=[
            await count(client, text, situations[n % len(situations)]["name"]) for n, text in enumerate(unrelated)
        ],
        unrelated_other=[await count(client, text, "elsewhere") for text in unrelated],
    )


async def _has(client: Client, text: str, session: str, mark: str) -> bool:
    context = await client.context(text, session=session)
    return any(mark in item["text"] for item in context["items"] if item["kind"] == "event")


async def count(client: Client, text: str, session: str) -> int:
    """How many observations are in the context for a text."""
    return sum(item["kind"] == "event" for item in (await client.context(text, session=session))["items"])
