"""What comes of a reply, put together chunk by chunk: words, calls of tools, usage, and why it ended."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict

from newton.ids import new_id
from newton.providers import tokens
from newton.providers.chat import Call, ChatMessage, Finish, Reply

FINISHES: dict[str, Finish] = {"length": "length", "content_filter": "interrupted"}
# What is read of a reply at most: a token is seldom a word of more letters, and an endpoint may not keep to what it was
# asked.
LETTERS_PER_TOKEN, LEAST_LETTERS = 32, 4_096
MOST_CALLS = 64


class Received(BaseModel):
    """What is used of an answer; servers leave out or add the rest as they like."""

    model_config = ConfigDict(frozen=True, from_attributes=True)


class _Function(Received):
    name: str | None = None
    arguments: str | None = None


class _Part(Received):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Delta(Received):
    content: str | None = None
    tool_calls: list[_Part] | None = None


class _Choice(Received):
    delta: _Delta | None = None
    finish_reason: str | None = None


class _Usage(Received):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Chunk(Received):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None


@dataclass(slots=True)
class _Calling:
    id: str
    name: str = ""
    arguments: str = ""


@dataclass(slots=True)
class Heard:
    """A reply as far as it has come, what it was asked with, and how many tokens it may have."""

    asked: Sequence[ChatMessage]
    most: int
    pieces: list[str] = field(default_factory=list[str])
    usage: tuple[int, int] | None = None
    finish: Finish | None = None
    _calling: dict[int, _Calling] = field(default_factory=dict[int, _Calling])
    _letters: int = 0

    @property
    def calls(self) -> tuple[Call, ...]:
        """What it calls; each id once, and nothing of a call without a name."""
        made: dict[str, Call] = {}
        for one in self._calling.values():
            known = one.id if one.id and one.id not in made else f"call_{new_id().hex}"
            if one.name:
                made[known] = Call(known, one.name, one.arguments.strip() or "{}")
        return tuple(made.values())

    @property
    def nothing(self) -> bool:
        return not self.pieces and not self._calling

    def take(self, received: object) -> str | None:
        """The words of the chunk. Raises ValueError for what is no chunk, or is much more than was asked for."""
        chunk = _Chunk.model_validate(received)
        if (usage := chunk.usage) and usage.prompt_tokens is not None and usage.completion_tokens is not None:
            self.usage = usage.prompt_tokens, usage.completion_tokens
        if not chunk.choices:
            # Usage without words is the last chunk, so the reply is whole even if no reason was given.
            self.finish = self.finish or ("stop" if chunk.usage else None)
            return None
        return self._choice(chunk.choices[0])

    def reply(self, *, model: str) -> Reply:
        text, calls = "".join(self.pieces), self.calls
        said = text + "".join(call.name + call.arguments for call in calls)
        spent = self.usage or (sum(tokens.count_many(m.text for m in self.asked)), tokens.count(said))
        return Reply(
            text=text,
            model=model,
            input_tokens=spent[0],
            output_tokens=spent[1],
            estimated=self.usage is None,
            finish=self.finish or "interrupted",
            calls=calls,
        )

    def _choice(self, choice: _Choice) -> str | None:
        if choice.finish_reason:
            self.finish = FINISHES.get(choice.finish_reason, "stop")
        if choice.delta is None:
            return None
        piece = choice.delta.content
        self._measure(len(piece or ""))
        for part in choice.delta.tool_calls or ():
            self._part(part)
        if piece:
            self.pieces.append(piece)
        return piece

    def _part(self, part: _Part) -> None:
        """Most servers number calls and send arguments in pieces; some send each whole, without a number."""
        place = len(self._calling) if part.index is None else part.index
        calling = self._calling.setdefault(place, _Calling(part.id or ""))
        if part.function:
            calling.name = calling.name or part.function.name or ""
            calling.arguments += part.function.arguments or ""
            self._measure(len(part.function.arguments or ""))
        if len(self._calling) > MOST_CALLS:
            raise ValueError

    def _measure(self, letters: int) -> None:
        self._letters += letters
        if self._letters > max(self.most * LETTERS_PER_TOKEN, LEAST_LETTERS):
            raise ValueError
