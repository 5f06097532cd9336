"""The comment lines that say what was injected into a prompt."""

import json

from newton.cognition.bundles.debug import format_debug_lines
from tests.unit.test_replaying import bundle
from tests.unit.test_score import found


def test_each_sort_of_what_was_injected_has_its_line_with_its_first_words() -> None:
    # S004-14
    known = f"The harbour master is called Xylo. {'He is old. ' * 20}"
    made = bundle([found(kind="fact", summary=known, similarity=0.9), found(kind="passage", similarity=0.9)], focus=[])
    lines = format_debug_lines(made)
    assert [line.split(" ")[1] for line in lines] == ["FRAME_DEBUG", "RAG_DEBUG", "MEMORY_DEBUG"]
    assert json.loads(lines[0].split(" ", 2)[2])["frame"] == made.frame_choice.frame
    for line in lines[1:]:
        assert line.startswith(": ") and "\n" not in line
        told = json.loads(line.split(" ", 2)[2])
        assert told["tokens"] == sum(item["tokens"] for item in told["items"]) > 0
        assert all(0 < len(item["text"]) <= 60 for item in told["items"])
    assert "The harbour master is called Xylo. " in lines[2]
    assert [line.split(" ")[1] for line in format_debug_lines(bundle([], focus=[]))] == ["FRAME_DEBUG"]
