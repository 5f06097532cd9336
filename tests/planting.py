"""Planted errors: a named part of an operation raises, as a defect of its code would."""

import inspect
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NoReturn, TypeVar

import pytest

from newton import fault_isolation

T = TypeVar("T")

PLANTED = set[str]()  # the parts that the running test lets fail


@dataclass(slots=True)
class PlantedParts:
    """Replaces the `functions` that run parts: the parts of `names` raise the error. `seen` are all that were run."""

    patch: pytest.MonkeyPatch
    names: frozenset[str] = frozenset()
    functions: frozenset[str] = frozenset(("run_part", "compute_part"))
    error: Exception = field(default_factory=lambda: KeyError("planted"))
    seen: set[str] = field(default_factory=set[str])

    def install(self) -> None:
        PLANTED.update(self.names)
        run, compute = fault_isolation.run_part, fault_isolation.compute_part

        async def run_part(name: str, work: Awaitable[T], **options: Any) -> T:
            self.seen.add(name)
            if name not in self.names:
                return await run(name, work, **options)
            if inspect.iscoroutine(work):
                work.close()
            return await run(name, _fail_later(self.error), **options)

        def compute_part(name: str, work: Callable[[], T], *, default: T, missing: MutableMapping[str, str]) -> T:
            self.seen.add(name)
            return compute(
                name, partial(_fail, self.error) if name in self.names else work, default=default, missing=missing
            )

        for module in [one for name, one in sys.modules.items() if name.startswith("newton.")]:
            for name, original, planted in (("run_part", run, run_part), ("compute_part", compute, compute_part)):
                is_used = name in self.functions and getattr(module, name, None) is original
                if module is not fault_isolation and is_used:
                    self.patch.setattr(module, name, planted)


def _fail(error: Exception) -> NoReturn:
    raise error


async def _fail_later(error: Exception) -> None:
    raise error
