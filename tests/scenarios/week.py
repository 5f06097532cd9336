"""A week at work, lived through the product's own doors: told, told again, asked, decided, reviewed, put in order."""

import re
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from pydantic import BaseModel

from newton.agent.loop.turn import TurnInput, TurnResult
from newton.agent.prompting.memory_delta import INPUT_HEADER
from newton.agent.services.memories import FactDraft
from newton.brain.drafts import DecisionDraft, DecisionReason
from newton.clock import ManualClock
from newton.content.yaml_files import parse_trusted
from newton.providers.chat import ChatMessage, ChatReply
from newton.runtime.wiring import AgentServices
from tests.support import NOON

TOPICS: Sequence[Mapping[str, Any]] = parse_trusted(
    (Path(__file__).parents[1] / "data" / "week.yaml").read_text(encoding="utf-8")
)["topics"]

WORKDAYS, DAYS = 5, 7
MORNING = NOON - timedelta(hours=4)
MOST_LINES = 4  # that a reply tells again
FIRM = 0.5  # of the evidence of the best line a line has to have
_WORD = re.compile(r"\w+")
_HEAD = re.compile(r"^\[[^\]]*\] (?:\w+: )?")
_HEARD = re.compile(r"^\[[^\]]*\] Assistant: ")
_SMALL = """
a about after again all also an and any are as at be been by did do does for from had has have how i in is it its know
last long many me much my new not of off often on once one only or our out over she so tell than thanks that the their
them then there they this to us very was we were what when where which who whom why will with you your far
"""
_EMPTY = frozenset(_SMALL.split())


class Reader:
    """A model that reads: it tells again, in its own order, the lines of its context that share the most of the
    question's words, a rare word counting more. It knows nothing of where a line came from."""

    name = "reader"

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None, schema: type[BaseModel] | None = None
    ) -> AsyncIterator[str | ChatReply]:
        known, _, asked = messages[-1].text.rpartition(INPUT_HEADER)
        lines = [line[2:] for line in (messages[0].text + known).splitlines() if line.startswith("- ")]
        lines += [message.text for message in messages[1:-1]]
        text = answered(asked, lines)
        yield text
        tokens = sum(len(message.text) // 4 for message in messages)
        yield ChatReply(
            text=text,
            model=self.name,
            input_tokens=tokens,
            output_tokens=len(text) // 4,
            estimated=True,
            finish="stop",
        )


def answered(question: str, lines: Sequence[str]) -> str:
    """The best few lines for a question, told again; a remark is only acknowledged."""
    if "?" not in question:
        return "OK."
    statements = list(
        dict.fromkeys(_HEAD.sub("", line) for line in lines if "?" not in line and not _HEARD.match(line))
    )
    bags = {line: _bag(line) for line in statements}
    known = Counter(word for bag in bags.values() for word in bag)
    weight = {word: 1 / known[word] ** 0.5 for word in _bag(question) if word in known}
    evidence = {line: sum(weight.get(word, 0.0) for word in bag) for line, bag in bags.items()}
    best = max(evidence.values(), default=0.0)
    shared = {line: len(_bag(question) & bags[line]) for line in bags}
    taken = [line for line in statements if evidence[line] >= FIRM * best and shared[line] >= 2]
    taken = sorted(taken, key=lambda line: -evidence[line])[:MOST_LINES]
    return " ".join(retold(line) for line in taken) if taken else "I do not know that yet."


def retold(line: str) -> str:
    """The same in other words: its halves change places, and small words fall away."""
    words = [word for word in line.rstrip(".").split() if word.lower() not in _EMPTY]
    middle = len(words) // 2
    return " ".join([*words[middle:], *words[:middle]]) + "."


def _bag(text: str) -> frozenset[str]:
    words = (word.lower() for word in _WORD.findall(text))
    return frozenset(word[:4] for word in words if word not in _EMPTY and len(word) > 1)


@dataclass(slots=True)
class Week:
    """Lives it day by day; `topics` are new on each of the workdays."""

    newton: AgentServices
    clock: ManualClock
    days: int = DAYS
    topics: int = 2
    answers: list[TurnResult] = field(default_factory=list[TurnResult])
    decided: list[tuple[int, UUID, str]] = field(default_factory=list[tuple[int, UUID, str]])
    model: Reader = field(default_factory=Reader)

    async def live(self) -> None:
        for day in range(self.days):
            await self._day(day)
            self.clock.advance(MORNING + timedelta(days=day + 1) - self.clock.now())

    async def _day(self, day: int) -> None:
        topics = TOPICS[self.topics * day : self.topics * (day + 1)] if day < WORKDAYS else ()
        known = TOPICS[: self.topics * day]
        await self._tell([fact["say"] for topic in topics for fact in topic["facts"]])
        again = [fact for n, topic in enumerate(known) for fact in topic["facts"][(day + n) % 3 :: 3]]
        await self._tell([fact["again"] for fact in again])
        await self._decide(day, topics)
        for topic in topics:
            await self._session(f"day {day} {topic['name']}", about(topic))
        if known:
            await self._session(f"day {day}", mixed(known, day))
        await self._review(day)
        await self.newton.maintenance("job").run_lifecycle()

    async def _tell(self, said: Sequence[str]) -> None:
        for one in said:
            await self.newton.memories("cli").remember(FactDraft(content=one))
        await self.newton.maintenance("cli").process_pending()
        self.clock.advance(timedelta(minutes=30))

    async def _decide(self, day: int, topics: Sequence[Mapping[str, Any]]) -> None:
        for topic in topics:
            told = topic["decision"]
            reason = DecisionReason("empirical", told["why"])
            choice = DecisionDraft(description=told["say"], confidence=0.8, at=self.clock.now(), reasons=(reason,))
            made = await self.newton.decisions("cli").decide(choice)
            self.decided.append((day, made.decision_id, told["outcome"]))
        await self.newton.maintenance("cli").process_pending()

    async def _review(self, day: int) -> None:
        for made, decision_id, outcome in self.decided:
            if made == day - 1:
                await self.newton.decisions("cli").review(str(decision_id), outcome)  # pyright: ignore[reportArgumentType]  # a verdict

    async def _session(self, name: str, lines: Sequence[str]) -> None:
        session_id = await self.newton.sessions("chat").begin(name)
        turns = self.newton.turn_runner(self.model)
        for line in lines:
            self.clock.advance(timedelta(minutes=2))
            async for piece in turns.run(TurnInput(session_id=session_id, text=line)):
                if isinstance(piece, TurnResult):
                    self.answers.append(piece)
        await self.newton.sessions("chat").close(session_id)
        await self.newton.maintenance("chat").process_pending()
        self.clock.advance(timedelta(minutes=20))


def about(topic: Mapping[str, Any]) -> list[str]:
    """A conversation on one topic: questions that follow each other, a remark, thanks."""
    first, second, third, fourth, fifth = (fact["ask"] for fact in topic["facts"])
    return [
        first,
        f"And {second[0].lower()}{second[1:]}",
        topic["aside"],
        third,
        fourth,
        f"What did we decide about the {topic['name']}?",
        fifth,
        "Thanks, that helps.",
    ]


def mixed(known: Sequence[Mapping[str, Any]], day: int) -> list[str]:
    """A conversation over what is known from days before, which changes its topic once."""
    first, second = known[day % len(known)], known[(day + 3) % len(known)]
    asks = [topic["facts"][(day + n) % 5]["ask"] for topic in (first, second) for n in range(3)]
    return [*asks[:3], f"What did we decide about the {first['name']}?", *asks[3:]]
