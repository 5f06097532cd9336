"""Hooks of packs: what they see, what they may do, and that a hook that fails or is late breaks nothing."""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from newton.brain.pack_hooks import HookFunction, HookResult, HookRunner, freeze, load_hooks
from newton.content.packs import HookEffect, PackHook, load_packs
from newton.errors import ConfigError

pytestmark = pytest.mark.failing_parts("hook a-call", "hook x")

INPUT = {"input": "I want a refund for the boat.", "frame": ""}


def rule(expression: str, on: str = "before_assembly", **effect: object) -> PackHook:
    return PackHook.model_validate(
        {"name": "a-rule", "at": on, "rule": expression, "effect": effect or {"note": "n"}}, strict=False
    )


def calling(function: HookFunction, *, on: str = "before_assembly", timeout_ms: int = 2_000) -> HookRunner:
    hook = PackHook.model_validate({"name": "a-call", "at": on, "entry_point": "any", "timeout_ms": timeout_ms})
    return HookRunner(hooks=(hook,), functions={"a-call": function})


async def run(hook: PackHook, values: Mapping[str, object] = INPUT) -> HookResult:
    (result,) = await load_hooks([hook]).run(hook.at, values)
    return result


# S001-A


async def test_rules_have_their_effect_if_they_hold_and_unknown_names_are_refused() -> None:
    hook = rule("input.contains('refund')", lines=["Ask for the order number first."])
    assert (await run(hook)).effect.lines == ("Ask for the order number first.",)
    other = await run(hook, {**INPUT, "input": "Hello"})
    assert other.effect == HookEffect() and other.problem is None
    # a rule with unknown names and a function that is not installed are refused at the start
    with pytest.raises(ConfigError, match="'outcome' is not a known variable"):
        load_hooks([rule("outcome == 'x'")])
    with pytest.raises(ConfigError, match="which no installed package has"):
        load_hooks([PackHook(name="x", at="session_start", entry_point="not-there")])


async def test_hooks_run_in_order_and_only_at_their_point_and_for_their_types() -> None:
    runner = load_hooks(
        [
            rule("true", "before_record", drop=True).model_copy(update={"types": ("refund",)}),
            rule("true", "before_record", note="seen"),
            rule("true", "session_end", note="ended"),
        ]
    )
    names = [one.effect.names for one in await runner.run("before_record", {"type": "refund", "text": "x"})]
    assert names == [("drop",), ("note",)]
    assert len(await runner.run("before_record", {"type": "message", "text": "x"})) == 1
    assert await runner.run("after_record", {"type": "refund", "text": "x"}) == ()


async def test_a_function_sees_frozen_values_and_returns_an_effect() -> None:
    seen = list[Mapping[str, Any]]()

    def hook(values: Mapping[str, Any]) -> object:
        seen.append(values)
        return {"lines": [f"Input of {len(values['input'])} characters."], "frame": "debug"}

    (result,) = await calling(hook).run("before_assembly", INPUT)
    assert result.effect.frame == "debug" and result.effect.lines == ("Input of 29 characters.",)
    with pytest.raises(TypeError):
        seen[0]["input"] = "changed"  # pyright: ignore[reportIndexIssue]  # the test of what must fail
    frozen = freeze({"a": [{"b": [1]}]})
    with pytest.raises(TypeError):
        frozen["a"][0]["b"] = 2
    assert frozen["a"][0]["b"] == (1,)


def returning(result: object) -> HookFunction:
    return lambda _: result


def fail(_: Mapping[str, Any]) -> object:
    raise RuntimeError("no connection")


@pytest.mark.failing_parts("hook x")
@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (fail, "RuntimeError: no connection"),
        (returning({"drop": True}), "the effect `drop`"),
        (returning({"unknown": 1}), "its result is invalid"),
        (returning("text"), "its result is invalid"),
        (returning({"lines": ["two\nlines"]}), "its result is invalid"),
    ],
)
async def test_a_function_that_fails_has_no_effect_and_says_why(function: HookFunction, problem: str) -> None:
    (result,) = await calling(function).run("before_assembly", INPUT)
    assert result.effect == HookEffect() and problem in (result.problem or "")


async def test_a_function_that_is_late_has_no_effect_and_is_not_called_again_before_it_ends() -> None:
    ended, calls = threading.Event(), list[int]()

    def hook(_: Mapping[str, Any]) -> object:
        calls.append(1)
        ended.wait(30)
        return {"note": "too late"}

    runner = calling(hook, timeout_ms=20)
    (late,) = await runner.run("before_assembly", INPUT)
    assert (late.duration, late.effect, late.problem) == ("late", HookEffect(), "no result within 20 ms")
    (busy,) = await runner.run("before_assembly", INPUT)
    assert "an earlier call has not ended yet" in (busy.problem or "") and len(calls) == 1
    ended.set()


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"at": "before_assembly"}, "needs either a `rule` or an `entry_point`"),
        ({"at": "before_assembly", "rule": "true"}, "needs an `effect`"),
        ({"at": "session_start", "rule": "true", "effect": {"drop": True}}, "the effect `drop`"),
        ({"at": "session_start", "entry_point": "x", "types": ["refund"]}, "has `types`"),
    ],
)
def test_a_hook_that_cannot_work_is_refused(fields: dict[str, object], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        PackHook.model_validate({"name": "x", **fields}, strict=False)


def test_the_packs_that_ship_with_newton_have_no_functions(tmp_path: Path) -> None:
    assert all(hook.entry_point is None for pack in load_packs().packs.values() for hook in pack.hooks)
    folder = tmp_path / "packs" / "mine"
    folder.mkdir(parents=True)
    (folder / "pack.yaml").write_text(
        "name: mine\ndescription: Mine.\nbudget: {recent: 20, semantic: 40, entity: 20, patterns: 20}\nhooks:\n"
        "  - {name: ask, at: before_assembly, rule: \"input.contains('refund')\", effect: {lines: [Ask first.]}}\n",
        encoding="utf-8",
    )
    assert load_packs(tmp_path).packs["mine"].hooks[0].name == "ask"
