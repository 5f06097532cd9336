"""`newton bench prompts`: how many bytes the records of prompts take, compared with the prompts themselves."""

import json as json_module
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Annotated, Any, Literal

from rich.console import Console
from rich.table import Table

from newton.agent.loop.turn_types import CallerOptions, TurnInput
from newton.agent.prompt_records.prompt_encoder import to_hashed_message
from newton.bench.conversations.sessions import store_facts
from newton.bench.environment import AtLeastOne, BenchEnvironment, open_environment, vacuum_analyze
from newton.bench.run_metadata import RunStart, collect_run_metadata
from newton.bench.synthetic_dialogue import generate_dialogue
from newton.db.pool import connect
from newton.db.queries import load
from newton.dialogue import sessions
from newton.providers.chat import ChatMessage, ChatReply, ReplyDelta, ReplyPiece, RequestOptions, ToolDefinition
from newton.runtime.cli import formatting
from newton.runtime.cli.options import JsonOption, load_settings

Client = Literal["chat", "api"]

SQL = load("newton.bench.conversations", "prompts.sql")

SEED = 7
FACTS = 200
INPUT_LINES, REPLY_LINES = 2, 8  # of a turn, in sentences of about 14 words
INSTRUCTION_LINES, TOOL_COUNT = 40, 10  # of an API caller
TABLES = ("cognition.prompts", "cognition.prompt_texts")
LABELS: Mapping[str, str] = {
    "calls": "model calls",
    "prompt_bytes": "bytes of a prompt, mean",
    "row_bytes": "bytes of the record of a call, mean",
    "text_bytes": "bytes of texts kept once, of all calls",
    "texts": "number of these texts",
    "disk_bytes": "bytes per call on disk: pages of the tables and their indexes",
    "ratio": "bytes of records and texts, divided by those of the prompts",
    "disk_ratio": "bytes on disk, divided by those of the prompts",
}


@dataclass(slots=True)
class CountingModel:
    """A chat model that counts the bytes of the prompts that it is sent, and replies with the next of its texts."""

    replies: Iterator[str]
    name: str = "counting"
    prompt_bytes: list[int] = field(default_factory=list[int])

    async def answer(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None, options: RequestOptions
    ) -> AsyncIterator[ReplyPiece | ChatReply]:
        sent = {
            "messages": [to_hashed_message(message) for message in messages],
            "tools": [tool.function for tool in options.all_tools],
            **options.extra_body,
        }
        self.prompt_bytes.append(len(json_module.dumps(sent, ensure_ascii=False).encode()))
        text = next(self.replies)
        yield text
        yield ChatReply(text=text, model=self.name, input_tokens=1_000, output_tokens=100)

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None
    ) -> AsyncIterator[str | ChatReply]:
        async for piece in self.answer(messages, max_tokens=max_tokens, options=RequestOptions()):
            if not isinstance(piece, ReplyDelta):
                yield piece


async def run_benchmark(
    *,
    turns: Annotated[int, AtLeastOne] = 100,
    client: Client = "chat",
    json: JsonOption = False,
) -> None:
    """Hold a synthetic conversation on a temporary server, and measure the size of the records of its prompts.

    Example: newton bench prompts --turns 100 --client api

    Parameters
    ----------
    turns:
        Number of turns, in one session.
    client:
        The sender of the messages: the chat of Newton, or an API caller with instructions and tools of its own.
    """
    start = RunStart()
    async with open_environment(load_settings().model_copy(update={"database_url": None})) as env:
        figures = await _measure(env, turns, client)
        receipt = await collect_run_metadata(env, start, data_sha256=f"seed {SEED}", budgets=[turns])
    if json:
        formatting.print_json({"client": client, "figures": figures, "receipt": receipt})
        return
    table = Table("measurement", "value", title=f"Records of prompts, client {client}")
    for name, value in figures.items():
        table.add_row(LABELS[name], f"{value:,}")
    Console().print(table)


async def _measure(env: BenchEnvironment, turns: int, client: Client) -> dict[str, Any]:
    sentences = _generate_sentences(FACTS + INSTRUCTION_LINES + turns * (INPUT_LINES + REPLY_LINES))
    await store_facts(env.newton, islice(sentences, FACTS))
    options = _create_options(list(islice(sentences, INSTRUCTION_LINES))) if client == "api" else None
    inputs = [" ".join(islice(sentences, INPUT_LINES)) for _ in range(turns)]
    model = CountingModel(iter([" ".join(islice(sentences, REPLY_LINES)) for _ in range(turns)]))
    scope, runner = env.newton.scope.at("bench"), env.newton.turn_runner(model)
    async with scope.transaction() as tx:
        session_id = await sessions.ensure_session(tx, agent_id=scope.agent_id, ref="bench", now=scope.now())
    for text in inputs:
        async for _ in runner.run(TurnInput(session_id=session_id, text=text, caller_options=options)):
            pass
    await vacuum_analyze(env.owner_dsn)
    async with scope.transaction() as tx:
        rows = await SQL["measure_prompts"].fetch_one(tx, agent_id=scope.agent_id)
        texts = await SQL["measure_texts"].fetch_one(tx, agent_id=scope.agent_id)
    async with connect(env.owner_dsn) as owner:
        disk = await SQL["measure_disk"].fetch_one(owner, tables=TABLES)
    assert rows and texts and disk and rows["count"] == len(model.prompt_bytes)
    calls, sent = rows["count"], sum(model.prompt_bytes)
    return {
        "calls": calls,
        "prompt_bytes": round(sent / calls),
        "row_bytes": round(rows["bytes"] / calls),
        "text_bytes": texts["bytes"],
        "texts": texts["count"],
        "disk_bytes": round(disk["bytes"] / calls),
        "ratio": round((rows["bytes"] + texts["bytes"]) / sent, 4),
        "disk_ratio": round(disk["bytes"] / sent, 4),
    }


def _generate_sentences(number: int) -> Iterator[str]:
    lines = generate_dialogue(number, 0, seed=SEED).lines
    return iter([json_module.loads(line)["content"] for line in lines])


def _create_options(instructions: Sequence[str]) -> CallerOptions:
    """Return the options of a caller with a system message and tools, each described by a sentence."""
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    functions = [
        {"name": f"tool_{number}", "description": text, "parameters": schema}
        for number, text in enumerate(instructions[:TOOL_COUNT])
    ]
    tools = tuple(ToolDefinition(str(function["name"]), function) for function in functions)
    return CallerOptions(
        instructions=" ".join(instructions), request_options=RequestOptions(tools=tools, extra_body={"temperature": 0})
    )
