"""A model that calls tools as it is told to, and a mind whose turns have them."""

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

from newton.agent.curation import Curation
from newton.agent.deciding import Deciding
from newton.agent.guarding import Guarding, from_files
from newton.agent.tasks import Tasks
from newton.agent.tools import Toolbox
from newton.agent.turn import Turns
from newton.agent.verbs import Verbs
from newton.brain.headnote import HeadNotes
from newton.providers.chat import Call, ChatMessage, Manner, Reply
from newton.providers.offline import ScriptedChat
from tests.scenarios.conftest import Mind

Played = str | list[Call]


def call(name: str, **arguments: object) -> Call:
    return Call("call_1", name, json.dumps(arguments))


class Handy(ScriptedChat):
    """Says or calls what it was given, in order; the last again and again."""

    def __init__(self, *played: Played) -> None:
        super().__init__()
        self._played = list(played)
        self.offered: list[list[str]] = []

    async def answer(
        self, messages: Sequence[ChatMessage], *, max_tokens: int, manner: Manner
    ) -> AsyncIterator[str | Reply]:
        self.heard.append(messages)
        self.offered.append([tool.name for tool in manner.tools])
        now = self._played.pop(0) if len(self._played) > 1 else self._played[0]
        text, calls = (now, ()) if isinstance(now, str) else ("", tuple(now))
        if text:
            yield text
        yield Reply(text=text, model=self.name, input_tokens=5, output_tokens=2, calls=calls)

    @property
    def told(self) -> dict[str, object]:
        """What came of its last call, as it was told."""
        return json.loads(self.heard[-1][-1].text)


def toolbox(mind: Mind, folder: HeadNotes) -> Toolbox:
    scope = mind.scope.at("agent")
    guarding = Guarding(scope=scope, folder=from_files(None))
    return Toolbox(
        verbs=Verbs(scope=scope),
        curation=Curation(scope=scope),
        deciding=Deciding(scope=scope, gate=mind.gate, notes=folder, judge=guarding.judge),
        tasks=Tasks(scope=scope),
        gate=mind.gate,
    ).heard(())


def able(mind: Mind, model: Handy, notes: HeadNotes) -> Turns:
    """Turns in which the model has our tools."""
    turns = mind.turns(model)
    return replace(turns, tools=toolbox(mind, notes), limits=replace(turns.limits, window=64_000))
