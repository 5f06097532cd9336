"""A scripted model that answers from its context, and says what a line of the story changes in what is known."""

import json
import re
from collections.abc import Mapping, Sequence

from newton.agent.prompting.memory_delta import INPUT_HEADER
from tests.endpoint import Respond, Wire, says
from tests.scenarios.life.story import TELLING, Matter, Session
from tests.scenarios.week import answered

_LINE = re.compile(r"(?m)^(\d+) (?!\(read\)|assistant:|foreign)[^:]*: (.*(?:\n  <S\d+ .*)*)$")
_DRAFT = re.compile(r"<(S\d+) (.*?)>")  # a sentence of the line
_KNOWN = re.compile(r"(?m)^(F\d+) (?:\w+: )?(.*)$")


def play_model(story: Sequence[Session], matters: Sequence[Matter]) -> Respond:
    """Return an endpoint that knows of the story what an attentive reader would: statements, and changes of them."""
    lines_said = [line for session in story for line in session.lines]
    statements = {line.say for line in lines_said if line.act in TELLING}
    forbidden = [line.more["pattern"] for line in lines_said if line.act == "forbid"]

    async def respond(wire: Wire) -> None:
        messages = wire.body["messages"]
        prompt = str(messages[-1]["content"])
        if "<lines>" in prompt:
            known = _KNOWN.findall(prompt)
            lines = [(int(n), _DRAFT.sub(r"\2", said).split("\n")[0], said) for n, said in _LINE.findall(prompt)]
            items = [
                item
                for number, text, said in lines
                if text in statements
                for item in read_line(matters, number, text, known, dict(_DRAFT.findall(said)))
            ]
            reply = json.dumps({"items": items})
        else:
            reply = answer(messages, forbidden)
        await says([reply])(wire)

    return respond


def read_line(
    matters: Sequence[Matter], number: int, text: str, known: Sequence[tuple[str, str]], drafts: Mapping[str, str]
) -> list[dict[str, object]]:
    """Return what a line changes: a known item of another value, drafts that hold less than it, or something new."""
    matter, value = next((one, value) for one in matters if (value := _find_value(one, text)) is not None)
    values = {label: found for label, one in known if (found := _find_value(matter, one)) is not None}
    if any(found != value for found in values.values()) or (drafts and text not in drafts.values()):
        return [{"line": number, "op": "update", "ids": [*values, *drafts], "text": text}]
    if values:
        return [{"line": number, "op": "confirm", "ids": [*values, *drafts]}]
    return [] if drafts else [{"line": number, "op": "add", "text": text}]


def _find_value(matter: Matter, text: str) -> int | None:
    return next((n for n, value in enumerate(matter.values) if text in value), None)


def answer(messages: Sequence[dict[str, str]], forbidden: Sequence[str]) -> str:
    """Tell again, in other words, the lines of the context that fit the question best and are not forbidden."""
    known, _, asked = str(messages[-1]["content"]).rpartition(INPUT_HEADER)
    lines = [line[2:] for line in (str(messages[0]["content"]) + known).splitlines() if line.startswith("- ")]
    said = [str(one["content"]) for one in messages[1:-1] if one["role"] == "user"]
    return answered(asked, [one for one in [*lines, *said] if not any(pattern in one for pattern in forbidden)])
