"""`newton bench unknown`: how many memories enter the contexts of questions that memory cannot answer."""

import hashlib
import json as json_format
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from newton.bench.dataset import DatasetConversation, hash_dataset, load_conversations
from newton.bench.environment import open_environment
from newton.bench.run_metadata import RunStart, collect_run_metadata
from newton.bench.scoring import mean, percentile
from newton.clock import ManualClock
from newton.cognition.request import ContextBuildRequest
from newton.content.yaml_source import load_yaml
from newton.errors import InputError
from newton.providers import token_counter
from newton.runtime.cli import formatting
from newton.runtime.cli.options import JsonOption, load_settings
from newton.runtime.cli.printing import say
from newton.runtime.transfer.ndjson import read_file
from newton.runtime.wiring import AgentServices

BUDGET = 8_000
MAX_UNRELATED = 2  # the target: at most this many items in nine of ten contexts
QUESTION_DELAY = timedelta(days=1)  # between the last line and the questions

_QUESTIONS = TypeAdapter(tuple[str, ...])


async def run_benchmark(folder: Path, questions: Path, *, json: JsonOption = False) -> None:
    """Measure how many memories enter the contexts of questions that memory cannot answer.

    All conversations are imported into one agent of a temporary database, not into your memories.

    Example: newton bench unknown ./conversations ./questions.yaml --json

    Parameters
    ----------
    folder:
        A folder of conversations as for `newton bench recall`.
    questions:
        A YAML list of questions whose answers are in none of the conversations.
    """
    start, texts = RunStart(), load_questions(questions)
    conversations = load_conversations(folder, count_tokens=token_counter.count)
    async with open_environment(load_settings()) as env:
        newton = await import_merged(env.newton, conversations)
        loaded = [await _count_items(newton, text) for text in texts]
        digest = hashlib.sha256(f"{hash_dataset(conversations)}{texts}".encode()).hexdigest()
        receipt = await collect_run_metadata(env, start, data_sha256=digest, budgets=[BUDGET])
    result = {**summarize(loaded), "messages": sum(c.line_count for c in conversations), "receipt": receipt}
    if json:
        formatting.print_json(result)
    else:
        say(_format_result(result))


def load_questions(path: Path) -> tuple[str, ...]:
    """Load a YAML list of questions. Raises InputError if there are none, and ConfigError for invalid YAML."""
    try:
        questions = _QUESTIONS.validate_python(load_yaml(path).value, strict=False)
    except ValidationError:
        questions = ()
    if not questions:
        raise InputError(f"{path} is not a list of questions.", hint="Write a line `- QUESTION` for each question.")
    return questions


async def import_merged(newton: AgentServices, conversations: Sequence[DatasetConversation]) -> AgentServices:
    """Import all conversations into one agent; return services whose clock is a day after the end of the last one."""
    with tempfile.TemporaryDirectory(prefix="newton-bench-") as folder:
        path = Path(folder) / "merged.ndjson"
        path.write_text("".join(f"{line}\n" for line in _merge_lines(conversations)), encoding="utf-8")
        report = await newton.importer().run(read_file(path))
    if report.rejections:
        what = f"{len(report.rejections)} lines of the conversations were rejected: {report.rejections[0].reason}."
        raise InputError(what, hint="Correct the rejected lines in the .ndjson files of the conversations.")
    ends = [conversation.ended_at for conversation in conversations if conversation.ended_at]
    asked_at = max(ends, default=newton.scope.now()) + QUESTION_DELAY
    return replace(newton, context_builder=replace(newton.context_builder, clock=ManualClock(asked_at)))


def _merge_lines(conversations: Sequence[DatasetConversation]) -> Iterator[str]:
    """Yield the lines of all conversations. The conversation's name is put before each session and ref."""
    for conversation in conversations:
        for raw in filter(str.strip, conversation.path.read_text(encoding="utf-8").split("\n")):
            line = json_format.loads(raw)
            own = {name: f"{conversation.name}/{line[name]}" for name in ("session", "ref") if name in line}
            yield json_format.dumps({**line, **own})


async def _count_items(newton: AgentServices, text: str) -> int:
    request = ContextBuildRequest(
        agent_id=newton.scope.agent_id, input=text, tokens=BUDGET, profile=newton.settings.profile
    )
    return len((await newton.context_builder.build(request)).items)


def summarize(loaded: Sequence[int]) -> dict[str, Any]:
    """Return statistics as JSON. `loaded` is the number of items in the context of each question."""
    return {
        "questions": len(loaded),
        "within_target": mean([float(count <= MAX_UNRELATED) for count in loaded]),
        "empty": mean([float(count == 0) for count in loaded]),
        "items": {"mean": round(mean(loaded), 2), "p90": percentile(loaded, 0.9), "max": max(loaded, default=0)},
    }


def _format_result(result: Mapping[str, Any]) -> str:
    items = result["items"]
    return (
        f"{result['questions']} questions, {result['messages']} messages: {result['within_target']:.0%} of the contexts"
        f" contain at most {MAX_UNRELATED} items, {result['empty']:.0%} contain none."
        f" Items in a context: mean {items['mean']:.2f}, p90 {items['p90']:.0f}, maximum {items['max']}."
    )
