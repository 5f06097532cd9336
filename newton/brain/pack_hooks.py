"""Execution of the hooks of a pack, each with a deadline. A hook that fails or is late has no effect."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from pydantic import ValidationError

from newton.clock import monotonic_ms
from newton.content.packs import ENTRY_POINT_GROUP, HOOK_VALUES, HookEffect, HookPoint, PackHook, check_effect
from newton.errors import ConfigError, InputError
from newton.fault_isolation import isolate_failure

if TYPE_CHECKING:
    from newton.client.context import HookRun

MAX_THREADS = 4  # of functions; a function that does not end occupies one
INSTANT_MS, FAST_MS = 10, 100

HookFunction = Callable[[Mapping[str, Any]], object]
# A class, not milliseconds: a bundle of the same hooks says the same on a slower machine.
DurationClass = Literal["instant", "fast", "slow", "late"]

NO_EFFECT = HookEffect()


class HookResult(NamedTuple):
    """The run of one hook (a rule or function of a pack): its effect, or the problem that prevented an effect."""

    name: str
    point: HookPoint
    duration: DurationClass
    effect: HookEffect = NO_EFFECT
    problem: str | None = None

    def as_json(self) -> "HookRun":
        effect = self.effect.model_dump(mode="json", include=set(self.effect.names))
        return {
            "name": self.name,
            "point": self.point,
            "duration": self.duration,
            "effect": effect,
            "problem": self.problem,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class HookRunner:
    """Runs the hooks (rules and functions) of a pack, in their order.

    `functions` are those of installed entry points, by the name of the hook.
    """

    hooks: Sequence[PackHook] = ()
    functions: Mapping[str, HookFunction] = field(default_factory=dict[str, HookFunction])
    _running: dict[str, "Future[object]"] = field(default_factory=dict[str, "Future[object]"])

    def has_hooks(self, point: HookPoint) -> bool:
        return any(hook.at == point for hook in self.hooks)

    async def run(self, point: HookPoint, values: Mapping[str, object]) -> tuple[HookResult, ...]:
        """Run the hooks of a point one after another, with a read-only copy of `values`.

        No error of a hook is raised.
        """
        frozen = freeze(values)
        event_type = values.get("type")
        wanted = [hook for hook in self.hooks if hook.at == point and (not hook.types or event_type in hook.types)]
        return tuple([await self._run_hook(hook, frozen) for hook in wanted])

    async def _run_hook(self, hook: PackHook, values: Mapping[str, Any]) -> HookResult:
        started, problems, effect = monotonic_ms(), dict[str, str](), NO_EFFECT
        try:
            with isolate_failure(f"hook {hook.name}", problems, passed=(TimeoutError,), describe=_describe_failure):
                returned = self._evaluate(hook, values) if hook.rule else await self._call(hook, values)
                check_effect(returned, hook.at)
                effect = returned
        except TimeoutError:
            return HookResult(hook.name, hook.at, "late", problem=f"no result within {hook.timeout_ms} ms")
        problem = next(iter(problems.values()), None)
        return HookResult(hook.name, hook.at, _classify(monotonic_ms() - started), effect, problem)

    def _evaluate(self, hook: PackHook, values: Mapping[str, Any]) -> HookEffect:
        holds: object = _compile(hook.rule or "", hook.at).execute(
            {name: values[name] for name in HOOK_VALUES[hook.at]}
        )
        if not isinstance(holds, bool):
            raise TypeError("the rule is neither true nor false")
        return hook.effect or NO_EFFECT if holds else NO_EFFECT

    async def _call(self, hook: PackHook, values: Mapping[str, Any]) -> HookEffect:
        earlier = self._running.get(hook.name)
        if earlier is not None and not earlier.done():
            raise RuntimeError("an earlier call has not ended yet")
        future = _threads().submit(self.functions[hook.name], values)
        self._running[hook.name] = future
        returned = await asyncio.wait_for(asyncio.wrap_future(future), hook.timeout_ms / 1_000)
        return NO_EFFECT if returned is None else HookEffect.model_validate(returned, strict=False)


NO_HOOKS = HookRunner()


def _describe_failure(error: Exception) -> str:
    """Return why a hook has no effect. Its message is kept, because its author is the one who can correct it."""
    if isinstance(error, ValidationError):
        return f"its result is invalid: {error.errors()[0]['msg']}"
    return f"{type(error).__name__}: {error}"[:200]


def load_hooks(hooks: Sequence[PackHook]) -> HookRunner:
    """Return a runner with the functions of the hooks.

    Raises ConfigError for a function that is not installed or cannot be imported.
    """
    # To list the entry points of all installed packages takes longer than most of the rest of a start.
    has_functions = any(hook.entry_point is not None for hook in hooks)
    installed = {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)} if has_functions else {}
    functions = dict[str, HookFunction]()
    for hook in hooks:
        if hook.entry_point is None:
            _check_rule(hook)
            continue
        if hook.entry_point not in installed:
            known = ", ".join(sorted(installed)) or "none"
            raise ConfigError(
                f"The hook {hook.name!r} names the function {hook.entry_point!r}, which no installed package has.",
                hint=f"Install its package. Functions of `{ENTRY_POINT_GROUP}`: {known}.",
            )
        problems = dict[str, str]()
        with isolate_failure(f"hook {hook.name}", problems, passed=(), describe=str):
            functions[hook.name] = cast("HookFunction", installed[hook.entry_point].load())
        for problem in problems.values():
            raise ConfigError(
                f"The function {hook.entry_point!r} of the hook {hook.name!r} cannot be loaded: {problem}.",
                hint="Repair or remove its package, or remove the hook.",
            )
    return HookRunner(hooks=tuple(hooks), functions=functions)


def _check_rule(hook: PackHook) -> None:
    try:
        _compile(hook.rule or "", hook.at)
    except InputError as error:
        raise ConfigError(f"The rule of the hook {hook.name!r} is invalid: {error.what}", hint=error.hint) from None


def freeze(value: Any) -> Any:
    """Return a copy of a JSON value that cannot be changed.

    >>> freeze({"a": [1, {"b": 2}]})["a"][0]
    1
    """
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value).items()
        return MappingProxyType({name: freeze(item) for name, item in items})
    if isinstance(value, (list, tuple)):
        return tuple(freeze(item) for item in cast("Sequence[Any]", value))
    return value


@cache
def _compile(rule: str, point: HookPoint) -> Any:
    cel = import_module("newton.brain.cel_expressions")  # CEL takes 0.2 s to load, and most packs have no rule
    return cel.compile_expression(rule, cel.AllowedNames(variables=frozenset(HOOK_VALUES[point])))


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(MAX_THREADS, "hook")


def _classify(duration_ms: float) -> DurationClass:
    return "instant" if duration_ms < INSTANT_MS else "fast" if duration_ms < FAST_MS else "slow"
