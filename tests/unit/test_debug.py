"""The comment lines that say what was injected into a prompt."""

import json

from newton.cognition.debug import debug_lines
from tests.unit.test_replaying import bundle
from tests.unit.test_score import found


def test_each_sort_of_what_was_injected_has_its_line_without_words() -> None:
    # S004-14
    secret = "The harbour master is called Xylo."
    made = bundle([found(kind="fact", summary=secret, similarity=0.9), found(kind="passage", similarity=0.9)], focus=[])
    lines = debug_lines(made)
    assert [line.split(" ")[1] for line in lines] == ["RAG_DEBUG", "MEMORY_DEBUG"]
    for line in lines:
        assert line.startswith(": ") and "\n" not in line and "Xylo" not in line
        told = json.loads(line.split(" ", 2)[2])
        assert told["tokens"] == sum(item["tokens"] for item in told["items"]) > 0


def test_nothing_injected_has_no_line() -> None:
    assert debug_lines(bundle([], focus=[])) == []
