"""How a person sets in which ways conversations are made shorter."""

import pytest

from newton.dialogue.compaction.strategies import (
    BatchTurns,
    MaskOutputs,
    MergeSummaries,
    SummarizeOldest,
    SummarizeToolCalls,
    parse_preset,
)
from newton.errors import InputError


def test_presets_have_their_names() -> None:
    # S003-13, S003-14, S003-15
    default, long, conservative = (parse_preset(name) for name in ("default", "long", "conservative"))
    assert [s.name for s in default.strategies] == [
        "mask_outputs",
        "tool_calls",
        "threshold",
        "goal_batch",
        "goal_merge",
    ]
    assert (default.strategies[1:3], default.max_tokens) == (
        (SummarizeToolCalls(age=10), SummarizeOldest(share=0.8)),
        100_000,
    )
    assert (long.strategies[1:3], long.max_tokens) == (
        (SummarizeToolCalls(age=5), SummarizeOldest(share=0.75)),
        150_000,
    )
    assert (conservative.strategies[1:3], conservative.max_tokens) == (
        (SummarizeToolCalls(age=20), SummarizeOldest(share=0.9)),
        100_000,
    )
    assert parse_preset("none").strategies == ()


def test_own_strategies_are_taken_in_their_order() -> None:
    # S003-F2
    assert parse_preset("threshold(share=0.7, recent=2), tool_calls(age=5),mask_outputs").strategies == (
        SummarizeOldest(share=0.7, recent=2),
        SummarizeToolCalls(age=5),
        MaskOutputs(),
    )
    assert parse_preset(" goal_merge ( keep = 2 ) ").strategies == (MergeSummaries(keep=2),)
    assert parse_preset("goal_batch()").strategies == (BatchTurns(),)


@pytest.mark.parametrize(
    ("text", "says_"),
    [
        ("", "is not a compaction strategy"),
        ("defualt", "is not a compaction strategy"),
        ("Default", "is not a compaction strategy"),
        ("tool_calls,,threshold", "is not a compaction strategy"),
        ("tool_calls(age=5", "is not a compaction strategy"),
        ("tool_calls(age=5))", "is not a compaction strategy"),
        ("tool_calls age=5", "is not a compaction strategy"),
        ("none, threshold", "'none' is a preset: it cannot be combined"),
        ("threshold,default", "'default' is a preset: it cannot be combined"),
        ("default(share=0.5)", "'default' is a preset: it cannot be combined"),
        ("tool_calls(years=5)", "'years=5' is not a valid setting of tool_calls"),
        ("tool_calls(name=x)", "'name=x' is not a valid setting of tool_calls"),
        ("tool_calls(age)", "'age' is not a valid setting of tool_calls"),
        ("tool_calls(age=)", "'age=' is not a valid setting of tool_calls"),
        ("tool_calls(age=ten)", "'age=ten' is not a valid setting of tool_calls"),
        ("tool_calls(age=1.5)", "'age=1.5' is not a valid setting of tool_calls"),
        ("tool_calls(age=-1)", "'age=-1' is not a valid setting of tool_calls"),
        ("threshold(share=nan)", "'share=nan' is not a valid setting of threshold"),
        ("threshold(share=inf)", "'share=inf' is not a valid setting of threshold"),
        ("goal_batch(turns=1; drop)", "'turns=1; drop' is not a valid setting of goal_batch"),
    ],
)
def test_what_is_no_preset_is_refused_with_what_there_is(text: str, says_: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_preset(text)
    assert says_ in refused.value.what
    assert refused.value.hint.startswith(
        ("Use one of: ", "The settings of the strategy, with their defaults, are ", "Give the preset alone")
    )
