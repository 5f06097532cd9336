"""A verifier: a command that a person has set, whose exit status says what became of a decision."""

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL
from collections.abc import Sequence
from contextlib import suppress
from uuid import UUID

from newton.brain.draft import Verdict
from newton.errors import ConfigError

# What stands for the decision in a command. Nothing of its words ever comes into one.
PLACEHOLDER = "{decision}"
EXIT_STATUS_VERDICTS: dict[int, Verdict] = {0: "success", 1: "failure"}


async def run_verifier(command: Sequence[str], decision_id: UUID, *, timeout_seconds: float) -> Verdict | None:
    """What the command says: 0 is success, 1 failure; anything else, and no end within its time, is no outcome.

    It is run without a shell, in the current folder. Raises ConfigError when it cannot be run.
    """
    if not command:
        raise ConfigError("The verifier has no words and cannot be run.", hint="Mend `verifiers` in newton.toml.")
    words = [word.replace(PLACEHOLDER, str(decision_id)) for word in command]
    try:
        running = await asyncio.create_subprocess_exec(
            *words, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, start_new_session=True
        )
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"The verifier {words[:1]} cannot be run: {error}.", hint="Mend `verifiers` in newton.toml."
        ) from None
    try:
        async with asyncio.timeout(timeout_seconds):
            return EXIT_STATUS_VERDICTS.get(await running.wait())
    except TimeoutError:
        return None
    finally:
        with suppress(ProcessLookupError):  # with all that it has started
            os.killpg(running.pid, signal.SIGKILL)
        await running.wait()
