"""Outcome verifiers: configured commands whose exit status tells the outcome of a decision."""

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL
from collections.abc import Sequence
from contextlib import suppress
from uuid import UUID

from newton.brain.drafts import Verdict
from newton.errors import ConfigError

PLACEHOLDER = "{decision}"  # replaced by the id of the decision; its text is never passed
EXIT_STATUS_VERDICTS: dict[int, Verdict] = {0: "success", 1: "failure"}


async def run_verifier(command: Sequence[str], decision_id: UUID, *, timeout_seconds: float) -> Verdict | None:
    """Run the command without a shell; return the outcome: success for exit status 0, failure for 1.

    Return None for another exit status, or if the command runs longer than `timeout_seconds`. Raises ConfigError if the
    command cannot be run.
    """
    if not command:
        raise ConfigError("The verifier command is empty.", hint="Correct [verifiers] in newton.toml.")
    args = [arg.replace(PLACEHOLDER, str(decision_id)) for arg in command]
    try:
        process = await asyncio.create_subprocess_exec(
            *args, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, start_new_session=True
        )
    except (OSError, ValueError) as error:
        hint = "Correct [verifiers] in newton.toml."
        raise ConfigError(f"The verifier command {args[0]!r} cannot be run: {error}.", hint=hint) from None
    try:
        async with asyncio.timeout(timeout_seconds):
            return EXIT_STATUS_VERDICTS.get(await process.wait())
    except TimeoutError:
        return None
    finally:
        with suppress(ProcessLookupError):  # the whole process group
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
