"""Outcome verifiers: configured commands whose exit status is the outcome of a decision."""

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL
from collections.abc import Sequence
from contextlib import suppress
from uuid import UUID

from newton.brain.draft import Verdict
from newton.errors import ConfigError

# Placeholder of the decision id in a command. Its text is never passed.
PLACEHOLDER = "{decision}"
EXIT_STATUS_VERDICTS: dict[int, Verdict] = {0: "success", 1: "failure"}


async def run_verifier(command: Sequence[str], decision_id: UUID, *, timeout_seconds: float) -> Verdict | None:
    """Run the command without a shell and return its outcome: status 0 is success, 1 failure.

    Returns None for any other status and after `timeout_seconds`. Raises ConfigError when the command cannot be run.
    """
    if not command:
        raise ConfigError("The verifier command is empty.", hint="Correct [verifiers] in newton.toml.")
    words = [word.replace(PLACEHOLDER, str(decision_id)) for word in command]
    try:
        running = await asyncio.create_subprocess_exec(
            *words, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, start_new_session=True
        )
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"The verifier {words[:1]} cannot be run: {error}.", hint="Correct [verifiers] in newton.toml."
        ) from None
    try:
        async with asyncio.timeout(timeout_seconds):
            return EXIT_STATUS_VERDICTS.get(await running.wait())
    except TimeoutError:
        return None
    finally:
        with suppress(ProcessLookupError):  # the whole process group
            os.killpg(running.pid, signal.SIGKILL)
        await running.wait()
