"""A look at what a model would be sent: as it comes to be when it is made so, and without a trace."""

import pytest

from newton.dialogue.compaction.view_budget import fit_to_budget
from newton.dialogue.messages import Message
from newton.providers import token_counter
from tests.scenarios.conftest import Mind
from tests.scenarios.longtalk import Talk
from tests.scenarios.talking import Talking
from tests.support import NOON


@pytest.mark.slow
async def test_a_preview_is_what_comes_to_be_and_writes_nothing(mind: Mind) -> None:
    # S003-9
    talking = Talking(mind)
    doors = talking.doors
    for number, lines in enumerate(Talk(48)):
        await talking.says(*lines)
        if number % 12:
            continue
        before = await doors.get_view("s1")
        preview = await doors.preview("s1", max_tokens=6_000)
        assert (await doors.get_view("s1"), len(talking.told)) == (before, 0)
        told = [(item.text, item.first, item.last, item.kind) for item in preview.view]
        compacted = await doors.compact("s1", max_tokens=6_000)
        sent = fit_to_budget(compacted.after.view, max_tokens=6_000, count_tokens=token_counter.count)
        assert [(item.text, item.first, item.last, item.kind) for item in sent] == told
        assert preview.tokens <= 6_000 and preview.logged == before.logged
        talking.told.clear()
    assert (await doors.list_entries("s1")) != []


async def test_lines_that_are_alike_all_count_and_a_call_that_is_repeated_adds_none(mind: Mind) -> None:
    talking = Talking(mind)
    yes, no = (Message(role="user", content=text, said_at=NOON) for text in ("yes", "no"))
    said = [yes, yes, no, yes]
    for _ in range(2):
        await talking.doors.append("s1", said)
        logged = [placed.message.content for placed in await talking.doors.read_log("s1")]
        assert logged == [line.content for line in said]
