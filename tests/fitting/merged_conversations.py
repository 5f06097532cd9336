"""All conversations of a data set in one agent, whose questions are asked a day after the last one ended."""

import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from bench.dataset import DatasetConversation
from newton.clock import ManualClock
from newton.runtime.transfer.import_source import read_file
from newton.runtime.wiring import AgentServices

QUESTION_DELAY = timedelta(days=1)  # between the last line and the questions


async def import_merged(newton: AgentServices, conversations: Sequence[DatasetConversation]) -> AgentServices:
    """Import all conversations into one agent; return services whose clock is a day after the end of the last one."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "merged.ndjson"
        path.write_text("".join(f"{line}\n" for line in _merge_lines(conversations)), encoding="utf-8")
        report = await newton.importer().run(read_file(path))
    assert not report.rejections, report.rejections[:3]
    ends = [conversation.ended_at for conversation in conversations if conversation.ended_at]
    asked_at = max(ends, default=newton.scope.now()) + QUESTION_DELAY
    return replace(newton, context_builder=replace(newton.context_builder, clock=ManualClock(asked_at)))


def _merge_lines(conversations: Sequence[DatasetConversation]) -> Iterator[str]:
    """Yield the lines of all conversations. The conversation's name is put before each session and ref."""
    for conversation in conversations:
        for raw in filter(str.strip, conversation.path.read_text(encoding="utf-8").split("\n")):
            line = json.loads(raw)
            own = {name: f"{conversation.name}/{line[name]}" for name in ("session", "ref") if name in line}
            yield json.dumps({**line, **own})
