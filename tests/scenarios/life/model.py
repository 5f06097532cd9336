"""A scripted model that answers from its context, and names the known items that a line of the story replaces."""

import json
import re
from collections.abc import Sequence

from newton.agent.prompting.memory_delta import INPUT_HEADER
from tests.endpoint import Respond, Wire, says
from tests.scenarios.life.story import TELLING, Matter, Session
from tests.scenarios.week import answered

_LINE = re.compile(r"(?m)^(\d+) (?!\(read\)|assistant:|foreign)[^:]*: (.*)$")
_KNOWN = re.compile(r"(?m)^(F\d+) \d{4}-\d\d-\d\d (?:\w+: )?(.*)$")


def play_model(story: Sequence[Session], matters: Sequence[Matter]) -> Respond:
    """Return an endpoint that knows of the story what an attentive reader would: statements, and changes of them."""
    statements = {line.say for session in story for line in session.lines if line.act in TELLING}

    async def respond(wire: Wire) -> None:
        messages = wire.body["messages"]
        prompt = str(messages[-1]["content"])
        if "<lines>" in prompt:
            said = [(int(number), text) for number, text in _LINE.findall(prompt) if text in statements]
            reply = json.dumps({"items": list_updates(matters, said, _KNOWN.findall(prompt))})
        else:
            reply = answer(messages)
        await says([reply])(wire)

    return respond


def list_updates(
    matters: Sequence[Matter], said: Sequence[tuple[int, str]], known: Sequence[tuple[str, str]]
) -> list[dict[str, object]]:
    """Return an item for each line that gives a matter another value than a known item."""
    items: list[dict[str, object]] = []
    for number, text in said:
        for matter in matters:
            value = _find_value(matter, text)
            older = [
                label for label, one in known if value is not None and _find_value(matter, one) not in (None, value)
            ]
            if older:
                blank = {"subject": "", "attribute": "", "when": ""}
                items.append({**blank, "line": number, "op": "update", "ids": older, "text": text})
    return items


def _find_value(matter: Matter, text: str) -> int | None:
    return next((n for n, value in enumerate(matter.values) if text in value), None)


def answer(messages: Sequence[dict[str, str]]) -> str:
    """Tell again, in other words, the lines of the context that fit the question best."""
    known, _, asked = str(messages[-1]["content"]).rpartition(INPUT_HEADER)
    lines = [line[2:] for line in (str(messages[0]["content"]) + known).splitlines() if line.startswith("- ")]
    said = [str(one["content"]) for one in messages[1:-1] if one["role"] == "user"]
    return answered(asked, [*lines, *said])
