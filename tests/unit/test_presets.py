"""How a person sets in which ways conversations are made shorter."""

from typing import NamedTuple

import pytest

from newton.dialogue.compaction.presets import PRESETS, parse_preset
from newton.dialogue.compaction.strategies import (
    BatchTurns,
    MaskOutputs,
    MergeSummaries,
    SummarizeOldest,
    SummarizeToolCalls,
    ViewState,
)
from newton.dialogue.view import ViewMessage
from newton.errors import InputError
from newton.runtime.settings_mapping import build_preset, check_settings, conversation_budget
from newton.settings import load
from tests.cases import load_cases

CASES = load_cases(__file__)


class PresetNumbers(NamedTuple):
    """The numbers of a preset, in tokens and turns, with a window of 200,000 tokens."""

    conversation: int
    masks_at: int | None
    summarizes_calls_after: int | None
    compacts_at: int | None
    compacts_to: int | None
    batches_before: int | None
    merges_at: int | None


# S003-5, S003-13, S003-14
TABLE = {
    "default": PresetNumbers(100_000, 60_000, 10, 80_000, 50_000, 20, 6),
    "long": PresetNumbers(150_000, 90_000, 5, 112_500, 75_000, 20, 6),
    "conservative": PresetNumbers(100_000, 80_000, 20, 90_000, 50_000, 20, 6),
    "none": PresetNumbers(100_000, None, None, None, None, None, None),
}


def measure(name: str) -> PresetNumbers:
    settings = load({"compaction": name, "window_tokens": 200_000}, env={})
    check_settings(settings)
    limit, strategies = conversation_budget(settings), {type(one): one for one in build_preset(settings).strategies}
    mask, calls, oldest = (strategies.get(kind) for kind in (MaskOutputs, SummarizeToolCalls, SummarizeOldest))
    batch, merge = strategies.get(BatchTurns), strategies.get(MergeSummaries)
    return PresetNumbers(
        conversation=limit,
        masks_at=int(mask.share * limit) if isinstance(mask, MaskOutputs) else None,
        summarizes_calls_after=calls.age if isinstance(calls, SummarizeToolCalls) else None,
        compacts_at=int(oldest.share * limit) if isinstance(oldest, SummarizeOldest) else None,
        compacts_to=int(oldest.target * limit) if isinstance(oldest, SummarizeOldest) else None,
        batches_before=batch.back if isinstance(batch, BatchTurns) else None,
        merges_at=merge.held if isinstance(merge, MergeSummaries) else None,
    )


def test_presets_have_their_numbers_and_own_strategies_their_order() -> None:
    # S003-13, S003-14, S003-15, S003-F2
    # the preset long compacts at 112,500 of its 150,000 tokens
    assert {name: measure(name) for name in PRESETS} == TABLE
    # the strategies of a preset run in their order
    names = ["mask_outputs", "tool_calls", "threshold", "goal_batch", "goal_merge"]
    for name in ("default", "long", "conservative"):
        assert [strategy.name for strategy in parse_preset(name).strategies] == names
    assert parse_preset("none").strategies == ()
    # own strategies are taken in their order
    assert parse_preset("threshold(share=0.7, recent=2), tool_calls(age=5),mask_outputs").strategies == (
        SummarizeOldest(share=0.7, recent=2),
        SummarizeToolCalls(age=5),
        MaskOutputs(),
    )
    assert parse_preset(" goal_merge ( keep = 2 ) ").strategies == (MergeSummaries(keep=2),)
    assert parse_preset("goal_batch()").strategies == (BatchTurns(),)


@pytest.mark.parametrize("name", [name for name, numbers in TABLE.items() if numbers.compacts_at])
def test_a_preset_compacts_at_its_number_and_not_below(name: str) -> None:
    # S003-5, S003-14
    numbers, preset = TABLE[name], parse_preset(name)
    assert numbers.compacts_at
    oldest = next(one for one in preset.strategies if isinstance(one, SummarizeOldest))
    for tokens, is_due in ((numbers.compacts_at - 500, False), (numbers.compacts_at, True)):
        view = [ViewMessage("user", "word", 500, position, position) for position in range(tokens // 500)]
        assert bool(oldest.plan(ViewState(view, numbers.conversation))) == is_due, tokens


@pytest.mark.parametrize(("text", "says_"), CASES["what_is_no_preset_is_refused_with_what_there_is"])
def test_what_is_no_preset_is_refused_with_what_there_is(text: str, says_: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_preset(text)
    assert says_ in refused.value.what
    assert refused.value.hint.startswith(
        ("Use one of: ", "The settings of the strategy, with their defaults, are ", "Give the preset alone")
    )
