"""A part that fails costs itself: its default is taken, and the failure is named, counted and logged."""

import asyncio
import logging

import pytest

from newton.errors import CensorError, DatabaseError, InputError, NewtonError, OverloadedError, ProviderError
from newton.fault_isolation import compute_part, count_failures, run_part


def fail(error: BaseException) -> int:
    raise error


async def fail_later(error: BaseException) -> int:
    raise error


@pytest.mark.failing_parts("features")
async def test_a_part_that_fails_has_its_default_and_is_named_counted_and_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    missing, before = dict[str, str](), count_failures()
    with caplog.at_level(logging.ERROR):
        assert compute_part("features", lambda: fail(KeyError("secret")), default=7, missing=missing) == 7
        assert await run_part("web", fail_later(ProviderError("No answer.", hint="Wait.")), default=8, missing={}) == 8
    assert missing == {"features": "internal error (KeyError)"}
    assert count_failures() - before == {("features", "KeyError"): 1, ("web", "provider_error"): 1}
    first, second = caplog.records
    assert first.getMessage() == "part_failed" and vars(first)["part"] == "features"
    assert "test_fault_isolation.py" in vars(first)["at"][-1] and vars(first)["at"][-1].endswith("fail")
    assert vars(second)["error"] == "provider_error" and "secret" not in caplog.text + str(vars(first))


async def test_a_part_that_succeeds_is_not_missing_and_a_cancelled_one_stays_cancelled() -> None:
    missing, before = dict[str, str](), count_failures()
    assert compute_part("sum", lambda: 1 + 1, default=0, missing=missing) == 2
    assert await run_part("sum", asyncio.sleep(0, 3), default=0, missing=missing) == 3
    assert missing == {} and count_failures() == before
    with pytest.raises(asyncio.CancelledError):
        await run_part("part", fail_later(asyncio.CancelledError()), default=0, missing={})


@pytest.mark.parametrize("error", [InputError, CensorError, OverloadedError, DatabaseError])
async def test_an_error_of_the_caller_or_of_the_whole_operation_is_not_hidden(error: type[NewtonError]) -> None:
    raised = error("It is wrong.", hint="Correct it.")
    with pytest.raises(error):
        compute_part("part", lambda: fail(raised), default=0, missing={})
    with pytest.raises(error):
        await run_part("part", fail_later(raised), default=0, missing={})


async def test_a_part_that_breaks_while_it_is_cancelled_is_late_and_has_not_failed() -> None:
    async def read() -> int:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise RuntimeError("the connection was closed") from None
        return 1

    missing, before = dict[str, str](), count_failures()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await run_part("session", read(), default=0, missing=missing)
    assert missing == {} and count_failures() == before
