"""One reply in rounds: the model speaks, calls tools, is told what came of it, and speaks on."""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import datetime

from newton.agent.gate import Gate
from newton.agent.sending import Draft, Letter
from newton.agent.speaking import Speaking
from newton.agent.tools import MOST_RESULT, Told, Toolbox
from newton.clock import Clock
from newton.dialogue.lines import Line
from newton.errors import ProviderError, SpendError
from newton.ids import new_id
from newton.memory.hygiene import mended
from newton.memory.memory import Trust, least_of
from newton.providers.chat import Call, ChatMessage, Manner, Reply

MOST_ROUNDS = 8
MOST_TOKENS = 20_000  # of calls and what came of them in one turn
MOST_AT_ONCE = 16  # calls of one reply that are done
OWN = "nwt_"  # how ids of calls begin that are done here

INTERRUPTED = "interrupted"
TOO_MANY = Told({"error": "Too many calls at once.", "hint": f"At most {MOST_AT_ONCE} are done."}, error=True)


@dataclass(slots=True, kw_only=True)
class Rounds:
    """Of one turn. `theirs` is the manner in which whoever asks wants the answer, with their own tools; `keep` puts
    lines into the session as they come; `heard` is the least trust of what the model has read.

    Afterwards `calls` are those that whoever asked is to answer.
    """

    speaking: Speaking
    gate: Gate
    clock: Clock
    tools: Toolbox | None
    theirs: Manner
    room: int
    keep: Callable[[Sequence[Line]], Awaitable[None]]
    heard: Trust | None = None
    replies: list[Reply] = field(default_factory=list[Reply])
    calls: tuple[Call, ...] = ()

    async def stream(self, draft: Draft, letter: Letter) -> AsyncGenerator[str]:
        """The words of the reply, of all rounds. Raises ProviderError when the model fails, and CensoredError."""
        for left in reversed(range(MOST_ROUNDS)):
            said = self.speaking.stream(draft, letter, self.replies)
            apart = "\n\n" if any(reply.text for reply in self.replies) else ""
            async with aclosing(self.gate.watched(said)) as pieces:
                async for piece in pieces:
                    yield apart + piece
                    apart = ""
            reply = self.replies[-1] if self.replies else None
            own, self.calls = await self._parted(reply.calls if reply else ())
            if reply is None or not own:
                return
            if left == 0:
                break
            draft = replace(draft, behind=(*draft.behind, *await self._done(own, reply.text)))
            if left == 1 or draft.besides(count=self.speaking.scope.count_tokens) > MOST_TOKENS:
                draft = replace(draft, manner=self.theirs)  # with no tools of our own it comes to an end
            letter = draft.letter(self.room, count=self.speaking.scope.count_tokens)
            if why := await self.speaking.why_not(letter.counted):
                raise SpendError(why, hint="Raise it, or wait until tomorrow.")
        raise ProviderError("The model went on calling tools instead of answering.", hint="Ask again.")

    async def _parted(self, calls: Sequence[Call]) -> tuple[dict[Call, Told | None], tuple[Call, ...]]:
        """The calls to be done here, with what came of those that a censor stopped; and those for whoever asked, once
        nothing is left to be done here."""
        names = {tool.name for tool in self.theirs.tools}
        own: dict[Call, Told | None] = {}
        others: list[Call] = []
        for call in calls:
            if call.name not in names:
                own[call._replace(id=f"{OWN}{new_id().hex}")] = None
                continue
            ruling = await self.gate.check(call.arguments, "action")
            if ruling.blocks:
                why = {"error": f"A censor forbids it: {ruling.words}.", "hint": "Do something else."}
                own[call._replace(id=f"{OWN}{new_id().hex}")] = Told(why, error=True)
            else:
                others.append(call)
        return own, () if own else tuple(others)

    async def _done(self, calls: dict[Call, Told | None], text: str) -> list[ChatMessage]:
        """Does them in their order; each is kept before it is done, and what came of it after. The words that stand
        beside the calls are kept with the reply."""
        whole = tuple(call._replace(arguments=mended(call.arguments)) for call in calls)
        at = self.clock.now()
        await self.keep([Line(role="assistant", content="", said_at=at, calls=whole, aside=True)])
        messages = [ChatMessage("assistant", text, tuple(calls))]
        for number, (call, stopped) in enumerate(calls.items()):
            told = TOO_MANY if number >= MOST_AT_ONCE else stopped or await self._used(call)
            self.heard = least_of([self.heard, told.trust])
            words = json.dumps(told.fields, ensure_ascii=False, default=str)[: 2 * MOST_RESULT]
            await self.keep([answered(call, mended(words), at=self.clock.now())])
            messages.append(ChatMessage("tool", words, answers=call.id))
        return messages

    async def _used(self, call: Call) -> Told:
        if self.tools is None:
            return Told({"error": f"There is no tool {call.name!r}.", "hint": "Answer in words."}, error=True)
        return await self.tools.heard([self.heard]).use(call.name, call.arguments)


def answered(call: Call, words: str, *, at: datetime) -> Line:
    """What came of a call that was done here, as it stands in the log. It is no memory: it may only repeat some."""
    return Line(role="tool", name=call.name, content=words, said_at=at, answers=call.id, aside=True)
