"""In a coding session of 300 turns the goal, the deadline, the rules, decisions and dead ends stay known."""

import random
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import NamedTuple

import pytest

from newton.agent.llm.structured import StructuredLLM
from newton.agent.loop.completion import TokenLimits
from newton.agent.loop.turn import TurnInput
from newton.dialogue.compaction.presets import PRESETS
from newton.dialogue.messages import Message, Role
from newton.dialogue.view import count_view_tokens
from newton.memory import lookup
from newton.providers import token_counter
from newton.providers.chat import ToolCall
from newton.providers.fakes import ScriptedChat
from tests.scenarios.conftest import Mind
from tests.scenarios.talking import Talking
from tests.support import NOON

TURNS = 300
TOOL_CALLS = 40
GOAL = "I want to replace the nightly cron export with a streaming exporter that survives restarts."
DEADLINES: Mapping[int, str] = {
    1: "It has to be in production by 12 June.",
    90: "The deadline moved to 20 June.",
    200: "We got another extension, it's due on 1 July now.",
}
RULES: Mapping[int, str] = {
    0: "Never push to main without a review.",
    2: "Please don't touch anything under legacy/ unless I say so.",
    3: "All new code needs type hints.",
    40: "Use pytest, not unittest, for the tests.",
    120: "Ask me before you add a dependency.",
}
MODULES = ("reader", "cursor", "sink", "retry", "schema", "metrics", "config", "batcher", "clock", "router")
CHOICES = (
    ("a write-ahead file", "offsets must survive a crash"),
    ("one cursor per table", "tables grow at different speeds"),
    ("zstd", "gzip was the bottleneck"),
    ("exponential backoff", "the sink throttles"),
    ("a schema registry", "columns change every month"),
    ("monotonic clocks", "the wall clock jumped twice"),
)
REQUESTS = (
    "Can you look at how {module} handles empty batches?",
    "The {module} tests are slow, see whether you can find out why.",
    "Show me what changed in {module} since yesterday.",
    "Refactor {module} so that the parsing is in one place.",
    "What does {module} do when the sink is down?",
    "Run the checks for {module} again.",
    "I like the new structure of {module}. Go on with the next part.",
    "Explain the loop in {module} to me in two sentences.",
)
WORDS = [
    "batch",
    "offset",
    "cursor",
    "record",
    "stream",
    "buffer",
    "lease",
    "shard",
    "replica",
    "column",
    "payload",
    "worker",
    "handler",
    "segment",
    "index",
    "page",
]


class PlantedItem(NamedTuple):
    """A decision or a dead end that was stated at a turn. `key` is in it and nowhere else; `question` asks for it."""

    kind: str
    turn: int
    text: str
    key: str
    question: str


@dataclass(slots=True)
class CodingSession:
    """The turns of the session, each as its messages, the user's first. What was stated is in `planted`."""

    turns: int = TURNS
    planted: list[PlantedItem] = field(default_factory=list[PlantedItem])
    tool_calls: int = 0
    _at: datetime = NOON
    _random: random.Random = field(default_factory=lambda: random.Random(11))

    def __iter__(self) -> Iterator[list[Message]]:
        for turn in range(self.turns):
            yield self._turn(turn)

    def deadline_at(self, turn: int) -> str | None:
        """Return the deadline that holds at a turn."""
        stated = [text for number, text in DEADLINES.items() if number <= turn]
        return stated[-1] if stated else None

    def rules_at(self, turn: int) -> list[str]:
        return [text for number, text in RULES.items() if number <= turn]

    def _turn(self, turn: int) -> list[Message]:
        self._at += timedelta(minutes=4)
        module = MODULES[turn % len(MODULES)]
        messages = [self._say("user", self._ask(turn, module))]
        if turn % 7 == 3 and self.tool_calls < TOOL_CALLS:
            messages += self._use_tool(turn, module)
        return [*messages, self._say("assistant", self._answer(turn, module))]

    def _ask(self, turn: int, module: str) -> str:
        stated = [text for texts in (DEADLINES, RULES) for number, text in texts.items() if number == turn]
        parts = [GOAL] if turn == 0 else []
        parts += stated
        if turn % 12 == 5:
            choice, reason = CHOICES[turn // 12 % len(CHOICES)]
            ticket = f"EXP-{turn:03d}"
            text = f"We decided to use {choice} for {module} in {ticket}, because {reason}."
            self._plant("decision", turn, text, ticket, f"What did we decide to use for {module}, and why ({choice})?")
            parts.append(text)
        return " ".join([*parts, REQUESTS[turn % len(REQUESTS)].format(module=module)])

    def _answer(self, turn: int, module: str) -> str:
        parts = [f"I went through {module} and its {self._word()} handling."]
        if turn % 15 == 8:
            commit = f"{self._random.randrange(16**7):07x}"
            cached, broken = self._word(), self._word()
            text = f"Caching the {cached} in {module} did not help and broke the {broken}, so I reverted {commit}."
            self._plant("dead end", turn, text, commit, f"Which change to {module} did we revert, and why?")
            parts.append(text)
        parts += [self._explain() for _ in range(3 + turn % 4)]
        return " ".join([*parts, f"The {module} part works as before."])

    def _use_tool(self, turn: int, module: str) -> list[Message]:
        self.tool_calls += 1
        call = ToolCall(f"call_{turn}", "shell", f'{{"command": "pytest tests/test_{module}.py"}}')
        lines = [f"{n:4d}  {self._word()}_{self._word()} = {self._word()}({n})" for n in range(60 + turn % 140)]
        if turn % 3 == 0:
            lines.append(f"AssertionError: {self._word()} {turn} != {turn + 1} in test_{module}.py")
        request = Message(role="assistant", content="", said_at=self._at, calls=(call,), ref=f"{turn}:call")
        result = Message(
            role="tool", name="shell", content="\n".join(lines), said_at=self._at, tool_call_id=call.id, ref=f"{turn}:r"
        )
        return [request, result]

    def _say(self, role: Role, text: str) -> Message:
        return Message(role=role, content=text, said_at=self._at)

    def _plant(self, kind: str, turn: int, text: str, key: str, question: str) -> None:
        self.planted.append(PlantedItem(kind, turn, text, key, question))

    def _word(self) -> str:
        return self._random.choice(WORDS)

    def _explain(self) -> str:
        return (
            f"The {self._word()} keeps a {self._word()} for every {self._word()}, so each {self._word()} is read twice."
        )


def generic_summaries(many: int) -> Sequence[str]:
    """Return answers of a summary model that say nothing of what was stated."""
    return [
        '{"asked": ["Some work on the code."], "did": ["I looked at files."], "state": ["The work goes on."]}'
    ] * many


WINDOW = 24_000
SCALE = 0.1  # of the tokens of a preset, so that 300 turns pass its limit many times
CONTEXT_TOKENS = 4_000
PROBE_EVERY = 10  # turns: 30 points
RECALL_LIMIT = 8  # results of the tool recall, its default
MIN_SHARE = 0.95


@dataclass(slots=True)
class ProbeCounts:
    """Items that were looked for at the probes, and those found in the prompt or by one tool call, by kind."""

    asked: Counter[str] = field(default_factory=Counter[str])
    found: Counter[str] = field(default_factory=Counter[str])
    prompt_tokens: list[int] = field(default_factory=list[int])

    def count(self, kind: str, *, is_found: bool) -> None:
        self.asked[kind] += 1
        self.found[kind] += is_found

    def share(self, kind: str) -> float:
        return self.found[kind] / self.asked[kind]


async def probe(mind: Mind, talking: Talking, session: CodingSession, turn: int, counts: ProbeCounts) -> None:
    """Take a turn of a person who asks for the goal, and look for everything that was stated so far."""
    model = ScriptedChat("Noted, we go on.")
    limits = TokenLimits(
        context=CONTEXT_TOKENS, conversation=limit_of(talking.strategies), reply=500, per_day=10**9, window=WINDOW
    )
    runner = replace(mind.turns(model), compaction=talking.compacting, limits=limits)
    turn_input = TurnInput(session_id=await mind.session(), text="What is our first goal and its deadline?")
    async for _ in runner.run(turn_input):
        pass
    prompt = "\n".join(message.text for message in model.received[0])
    counts.prompt_tokens.append(token_counter.count(prompt) + 4 * len(model.received[0]))
    counts.count("goal", is_found=GOAL in prompt)
    if deadline := session.deadline_at(turn):
        counts.count("deadline", is_found=deadline in prompt)
    for rule in session.rules_at(turn):
        counts.count("rule", is_found=rule in prompt)
    for kind in ("decision", "dead end"):
        stated = [item for item in session.planted if item.kind == kind]
        for item in stated[:: max(len(stated) // 3, 1)]:
            is_found = item.key in prompt or item.key in await recalled_text(mind, item.question)
            counts.count(kind, is_found=is_found)


async def recalled_text(mind: Mind, question: str) -> str:
    """Return the texts of what the tool `recall` finds in the session."""
    found = (await mind.verbs.recall(question, limit=RECALL_LIMIT, session_id=await mind.session())).memories
    async with mind.scope.transaction() as tx:
        records = [await lookup.read_memory(tx, one.memory_id, agent_id=mind.agent_id) for one in found]
    return "\n".join(record.full_text or record.summary for record in records)


def limit_of(preset: str) -> int:
    return int(PRESETS[preset].max_tokens * SCALE)


def summary_model(mind: Mind) -> StructuredLLM:
    return StructuredLLM(model=ScriptedChat(*generic_summaries(2_000)), tokens_per_day=10**9, scope=mind.scope)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("with_model", [False, True], ids=["without a model", "with generic summaries"])
@pytest.mark.parametrize("preset", PRESETS)
async def test_what_was_stated_stays_known_for_300_turns(mind: Mind, preset: str, with_model: bool) -> None:
    # S003-16, S003-19, S003-21, S003-F4
    if preset == "none" and with_model:
        pytest.skip("the preset none makes no summaries")
    chosen: dict[str, object] = {"model": summary_model(mind)} if with_model else {}
    talking, session, counts = Talking(mind, preset, chosen=chosen), CodingSession(), ProbeCounts()
    limit, sent, logged, log_tokens = limit_of(preset), 0, 0, 0
    for turn, messages in enumerate(session):
        await talking.says(*messages)
        view = await talking.asks(most=limit)
        log_tokens = (await talking.doors.get_view("s1")).logged
        if log_tokens > 2 * limit:
            sent, logged = sent + count_view_tokens(view), logged + log_tokens
        if turn % PROBE_EVERY == PROBE_EVERY - 1:
            await mind.settle()
            await probe(mind, talking, session, turn, counts)
    shares = {kind: counts.share(kind) for kind in counts.asked}
    figures = ", ".join(f"{kind} {counts.found[kind]} of {counts.asked[kind]}" for kind in counts.asked)
    sys.stdout.write(
        f"\n{preset}, {'generic summaries' if with_model else 'no model'}: {figures}; largest prompt"
        f" {max(counts.prompt_tokens):,} of {WINDOW:,} tokens; {1 - sent / logged:.1%} fewer tokens than the log"
        f" ({log_tokens:,})\n"
    )
    assert len(counts.prompt_tokens) == TURNS // PROBE_EVERY and session.tool_calls == 40
    assert max(counts.prompt_tokens) <= WINDOW and max(talking.sent) <= limit
    assert sent <= 0.6 * logged
    assert min(shares.values()) >= MIN_SHARE, shares
