"""Long conversations of work: questions, calls of tools with large outputs, explanations, and what must not get lost.

They are made from a seed, so that every run is the same.
"""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from newton.dialogue.messages import Message
from newton.providers.chat import ToolCall
from tests.support import NOON

PLACES = ("billing", "ledger", "importer", "gateway", "search", "mailer", "scheduler", "exporter", "cache", "audit")
VERBS = ("retry", "parse", "merge", "index", "encode", "flush", "route", "verify", "rotate", "compact")
WORDS = [
    "queue",
    "worker",
    "token",
    "batch",
    "cursor",
    "window",
    "header",
    "shard",
    "replica",
    "commit",
    "offset",
    "buffer",
    "stream",
    "socket",
    "lease",
    "record",
    "snapshot",
    "digest",
    "filter",
    "bucket",
    "tenant",
    "quota",
    "ticket",
    "column",
    "migration",
    "payload",
    "session",
    "handler",
    "adapter",
    "registry",
    "resolver",
    "planner",
]
# What the outputs that matter are about; nothing else speaks of it.
_SUBJECTS = """
refund voucher parcel invoice courier tariff pension mortgage salary donation harvest orchard vineyard glacier volcano
lantern violin cathedral marathon passport embassy pharmacy dentist librarian carpenter sculpture telescope satellite
submarine tramway elevator kitchen balcony fireplace umbrella necklace
"""
_MANNERS = """
yearly nightly regional archived printed disputed forged urgent foreign seasonal royal frozen hidden broken spare
painted stolen wooden silent double folded private rural sunken
"""
SUBJECTS, MANNERS = _SUBJECTS.split(), _MANNERS.split()


class Planted(NamedTuple):
    """Something that was said once. `key` is in it and nowhere else; `asked` is a question about it."""

    kind: str
    turn: int
    words: str
    key: str
    asked: str


@dataclass(slots=True)
class Talk:
    """A conversation of so many turns. Each yields its lines in order; what was planted is noted."""

    turns: int
    seed: int = 7
    planted: list[Planted] = field(default_factory=list[Planted])
    _calls: int = 0
    _at: datetime = NOON
    _random: random.Random = field(default_factory=random.Random)

    def __post_init__(self) -> None:
        self._random.seed(self.seed)

    def __iter__(self) -> Iterator[list[Message]]:
        for turn in range(self.turns):
            yield self._turn(turn)

    def _turn(self, turn: int) -> list[Message]:
        self._at += timedelta(minutes=3)
        place, verb = PLACES[turn % 10], VERBS[turn * 7 % 10]
        secret = f"{turn:04d}{self._random.choice('abcdefgh')}{self._random.randrange(100):02d}"
        kind = turn % 6
        lines = [self._line("user", self._ask(turn, kind, place, verb, secret))]
        if turn % 5 != 4:
            for step in range(1 + turn % 3):
                lines += self._pair(turn, step, kind, place, secret)
        lines.append(self._line("assistant", self._answer(turn, kind, place, verb, secret)))
        return lines

    def _ask(self, turn: int, kind: int, place: str, verb: str, secret: str) -> str:
        asked = f"Please look at why {place} does not {verb} the {self._word()} any more (ticket {turn})."
        if kind == 0:
            words = f"We decided that {place} uses codec-{secret} from now on instead of the old one."
            self._plant(
                "decision", turn, words, f"codec-{secret}", f"Which codec does {place} use since ticket {turn}?"
            )
            return f"{asked} {words}"
        if kind == 1:
            words = f"The {place} owner is called Priya-{secret} and answers on weekdays only."
            self._plant("fact", turn, words, f"Priya-{secret}", f"Who owns {place} (ticket {turn})?")
            return f"{asked} {words}"
        return asked

    def _answer(self, turn: int, kind: int, place: str, verb: str, secret: str) -> str:
        said = [f"I went through the {place} code for the {self._word()} and the {self._word()}."]
        if kind == 2:
            words = f"Raising the pool to {turn + 11} did not help, that was a dead end: knob-{secret} made it worse."
            self._plant(
                "dead end", turn, words, f"knob-{secret}", f"What came of raising the pool to {turn + 11} for {place}?"
            )
            said.append(words)
        if kind == 3:
            words = f"We still need to migrate table t_{secret} before the release."
            self._plant("open item", turn, words, f"t_{secret}", f"What is still to be migrated for {place}?")
            said.append(words)
        said += [self._explanation() for _ in range(1 + turn % 4)]
        said.append(f"Now {place} can {verb} again.")
        return " ".join(said)

    def _pair(self, turn: int, step: int, kind: int, place: str, secret: str) -> list[Message]:
        self._calls += 1
        call_id = f"call_{self._calls}"
        tool, arguments, output = self._tool(turn, step, kind, place, secret)
        call = ToolCall(call_id, tool, json.dumps(arguments))
        made = Message(role="assistant", content="", said_at=self._at, calls=(call,), ref=f"{turn}:{step}:c")
        answered = Message(
            role="tool", name=tool, content=output, said_at=self._at, tool_call_id=call_id, ref=f"{turn}:{step}:r"
        )
        return [made, answered]

    def _tool(self, turn: int, step: int, kind: int, place: str, secret: str) -> tuple[str, dict[str, object], str]:
        if kind == 4 and step == 0:
            path, topic = f"/srv/{place}/conf-{secret}.yaml", self._subject()
            self._plant("path", turn, path, path, f"Which configuration file of {place} sets the {topic}?")
            return "read_file", {"path": path}, f"# sets the {topic}\n{self._file(20 + self._random.randrange(60))}"
        if kind == 5 and step == 0:
            at = self._subject()
            words = f"ValueError: bad frame E{secret} in the {at}"
            self._plant("error", turn, words, f"E{secret}", f"Which error did the tests of {place} give for the {at}?")
            return "shell", {"command": f"pytest tests/{place}"}, f"{self._file(15)}\n{words}\nexit status 1"
        if turn % 97 == 50:
            return "read_file", {"path": f"src/{place}/big.py"}, self._file(2_000)
        if turn % 211 == 100:
            return "read_file", {"path": f"src/{place}/huge.py"}, self._file(5_000)
        if turn % 7 == 3:
            return "diff", {"path": f"src/{place}/core.py"}, self._diff(60 + self._random.randrange(200))
        return "shell", {"command": f"grep -n {self._word()} src/{place}"}, self._file(10 + self._random.randrange(80))

    def _line(self, role: str, content: str) -> Message:
        return Message(role=role, content=content, said_at=self._at)  # pyright: ignore[reportArgumentType]  # a role

    def _plant(self, kind: str, turn: int, words: str, key: str, asked: str) -> None:
        self.planted.append(Planted(kind, turn, words, key, asked))

    def _word(self) -> str:
        return self._random.choice(WORDS)

    def _subject(self) -> str:
        return f"{self._random.choice(MANNERS)} {self._random.choice(SUBJECTS)}"

    def _explanation(self) -> str:
        return (
            f"The {self._word()} keeps a {self._word()} for every {self._word()}, so the {self._word()} is read twice."
        )

    def _file(self, lines: int) -> str:
        return "\n".join(f"{n:5d}  {self._word()}_{self._word()} = {self._word()}({n})" for n in range(1, lines + 1))

    def _diff(self, lines: int) -> str:
        return "\n".join(f"{'+-'[n % 2]}    {self._word()}.{self._word()}({n})" for n in range(lines))
