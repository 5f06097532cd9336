"""A model that is asked what new lines change: it answers from the prompt, by the words of lines and known items."""

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel

from newton.agent.llm.structured import StructuredLLM
from newton.agent.reconciliation.reconciler import MemoryReconciler, ReconciliationResult
from newton.providers.chat import ChatMessage, ChatReply
from newton.providers.fakes import ScriptedChat
from tests.scenarios.conftest import Mind, newton

NOTHING = '{"items": []}'


@dataclass(frozen=True, slots=True)
class Sheet:
    """The prompt of one call, as the model sees it."""

    text: str

    def line(self, words: str) -> int:
        """The number of the last line that is new and has these words."""
        text = re.sub(r"<S\d+ |(?<!lines)>", "", self.text)
        lines = re.findall(r"^(\d+) (?!\(read\))(.*)$", text, re.MULTILINE)
        return int([number for number, said in lines if words in said][-1])

    def ids(self, *words: str) -> list[str]:
        """The labels of the known items and drafts with these words."""
        known = re.findall(r"^([A-Z]\d+) (.*)$|<(S\d+) (.*?)>", self.text, re.MULTILINE)
        labels = (one[0] or one[2] for one in known if any(word in one[1] + one[3] for word in words))
        return list(dict.fromkeys(labels))

    def item(self, op: str, line: str = "", *known: str, text: str = "", **more: str) -> dict[str, object]:
        ids = self.ids(*known) if known else []
        return {"line": self.line(line) if line else 0, "op": op, "ids": ids, "text": text, **more}


Answer = str | Callable[[Sheet], list[dict[str, object]]]


@dataclass
class Reader:
    """A model with an answer for each of its calls; without one, it finds nothing to change."""

    answers: list[Answer] = field(default_factory=list[Answer])
    name: str = "reader"
    meanwhile: Callable[[], Awaitable[None]] | None = None
    sheets: list[Sheet] = field(default_factory=list[Sheet])

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None, schema: type[BaseModel] | None = None
    ) -> AsyncIterator[str | ChatReply]:
        sheet = Sheet(messages[-1].text)
        self.sheets.append(sheet)
        if self.meanwhile:
            await self.meanwhile()
        answer = self.answers.pop(0) if self.answers else NOTHING
        text = answer if isinstance(answer, str) else json.dumps({"items": answer(sheet)})
        async for piece in ScriptedChat(text).stream(messages, max_tokens=max_tokens):
            yield piece


def asking(mind: Mind, model: object, *, per_day: int = 1_000_000) -> StructuredLLM:
    """Calls of this model for the agent of the mind."""
    assert mind.embedder
    scope = newton(mind, mind.embedder).scope
    return StructuredLLM(model=model, tokens_per_day=per_day, scope=scope)  # pyright: ignore[reportArgumentType]  # a stream


async def told(mind: Mind, *said: str, session: str = "s1", role: str = "user") -> None:
    """Lines that are stored and parsed, as after a turn."""
    await mind.hear(*said, session=session, role=role)
    assert mind.embedder
    await newton(mind, mind.embedder).maintenance("test").process_recent(failed={})


async def read(mind: Mind, *answers: Answer, model: Reader | None = None) -> ReconciliationResult:
    """What comes of the new lines if the model gives these answers."""
    model = model or Reader(list(answers))
    return await MemoryReconciler(llm=asking(mind, model), user_names=("Nora",)).reconcile(64)


async def facts(mind: Mind) -> list[str]:
    """The texts of the facts that hold now, as a context may show them."""
    return [*await mind.facts()]
