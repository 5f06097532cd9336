"""A scripted model that answers from its context, extracts what the person said, and judges pairs by the story."""

import json
import re
from collections.abc import Sequence

from newton.agent.loop.prompt import INPUT_HEADER
from tests.endpoint import Respond, Wire, says
from tests.scenarios.life.story import TELLING, Matter, Session
from tests.scenarios.week import answered

_PAIR = re.compile(r"(?m)^\d+\. earlier \([^)]*\): (.*)\n +later \([^)]*\): (.*)$")


def play_model(story: Sequence[Session], matters: Sequence[Matter]) -> Respond:
    """Return an endpoint that knows of the story what an attentive reader would: statements, and changes of them."""
    statements = {line.say for session in story for line in session.lines if line.act in TELLING}

    async def respond(wire: Wire) -> None:
        messages = wire.body["messages"]
        prompt = str(messages[-1]["content"])
        if "<lines>" in prompt:
            facts = [{"content": one} for one in re.findall(r"(?m)^User: (.*)$", prompt) if one in statements]
            reply = json.dumps({"title": "Talk", "summary": "They talked.", "facts": facts})
        elif pairs := _PAIR.findall(prompt):
            reply = json.dumps({"relations": [judge(matters, *pair) for pair in pairs]})
        else:
            reply = answer(messages)
        await says([reply])(wire)

    return respond


def judge(matters: Sequence[Matter], earlier: str, later: str) -> str:
    for matter in matters:
        first, second = (_find_value(matter, text) for text in (earlier, later))
        if first is not None and second is not None:
            return "same" if first == second else "update"
    return "compatible"


def _find_value(matter: Matter, text: str) -> int | None:
    return next((n for n, value in enumerate(matter.values) if text in value), None)


def answer(messages: Sequence[dict[str, str]]) -> str:
    """Tell again, in other words, the lines of the context that fit the question best."""
    known, _, asked = str(messages[-1]["content"]).rpartition(INPUT_HEADER)
    lines = [line[2:] for line in (str(messages[0]["content"]) + known).splitlines() if line.startswith("- ")]
    said = [str(one["content"]) for one in messages[1:-1] if one["role"] == "user"]
    return answered(asked, [*lines, *said])
