"""Command `newton chat`: an interactive conversation with an agent in the terminal."""

import asyncio
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from prompt_toolkit import PromptSession
from prompt_toolkit.history import FileHistory

from newton.environment import CHAT_HISTORY
from newton.ids import new_id
from newton.memory.hygiene import clean_model_text
from newton.runtime.cli import formatting
from newton.runtime.cli.connection import DaemonOption, TokenFileOption, open_chat_backend
from newton.runtime.cli.options import (
    AgentOption,
    DebugOption,
    FrameOption,
    ModelOption,
    StrategyOption,
    check_session_name,
    check_strategy,
    load_settings,
)
from newton.runtime.cli.talk.chat_conversation import ChatConversation, LineReader
from newton.runtime.cli.talk.slash_commands import run_slash_command
from newton.runtime.error_status import EXIT_INTERRUPTED, EXIT_OK
from newton.settings import Settings


async def chat(
    *,
    session: Annotated[str | None, Parameter(help="Session to continue or create (default: a new one).")] = None,
    frame: FrameOption = None,
    model: ModelOption = None,
    strategy: StrategyOption = None,
    debug: DebugOption = False,
    agent: AgentOption = None,
    daemon: DaemonOption = None,
    token_file: TokenFileOption = None,
) -> int:
    """Chat with the agent. The conversation is stored; /help in the chat lists its commands.

    Example: newton chat --session planning

    Example: newton chat --daemon https://newton.example --token-file laptop.token
    """
    settings, session, strategy = load_settings(agent), check_session_name(session), check_strategy(strategy)
    async with open_chat_backend(settings, daemon, token_file, is_agent_explicit=agent is not None) as backend:
        if frame:
            await backend.resolve_frame(frame)
        if model:
            await backend.select_model(model)
        name = session or str(new_id())
        read_line = _create_reader(settings, lambda: conversation.private_messages is not None)
        conversation = ChatConversation(
            backend=backend,
            read_line=read_line,
            run_command=run_slash_command,
            name=name,
            frame=frame,
            strategy=strategy,
            debug=debug,
        )
        hint = "the daemon has no model" if daemon else "set OPENAI_API_KEY or ANTHROPIC_API_KEY to use a model"
        model = f"model {backend.model}" if backend.model else f"no model: answers quote memory ({hint})"
        formatting.print_notice(f"Newton, agent {backend.agent}, {model}. /help lists the commands.")
        return await _run_until_interrupt(conversation)


async def _run_until_interrupt(conversation: ChatConversation) -> int:
    """Run the conversation and return the exit status.

    Ctrl-C stops the running answer or, if none is running, the conversation. SIGTERM and SIGHUP stop both. The part of
    an answer that was received is stored. The event loop handles the signals: an exception raised by a signal could
    interrupt the use of a database connection and corrupt its state.
    """
    task = asyncio.ensure_future(conversation.run())

    def stop() -> None:
        if not conversation.interrupt(loop.time()):
            task.cancel()

    def leave() -> None:
        if not conversation.is_leaving:  # a closed terminal sends the signal twice
            conversation.is_leaving = True
            task.cancel()

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, stop)
    for signal_number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(signal_number, leave)
    try:
        await task
    except asyncio.CancelledError:
        return EXIT_INTERRUPTED
    return EXIT_OK


class RedactingFileHistory(FileHistory):
    """History of the inputs of a chat, with secrets redacted, in a file that only its owner can read.

    While `is_paused` returns true, inputs are not written.
    """

    def __init__(self, filename: str, is_paused: Callable[[], bool] = lambda: False) -> None:
        super().__init__(filename)
        self.is_paused = is_paused

    def store_string(self, string: str) -> None:
        if self.is_paused():
            return
        Path(str(self.filename)).touch(mode=0o600)
        super().store_string(clean_model_text(string))


def _create_reader(settings: Settings, is_private: Callable[[], bool]) -> LineReader:
    """Return a function that reads one line of input; in a terminal, with editing and a history."""
    if not sys.stdin.isatty():
        return _read_piped_line
    history = RedactingFileHistory(str(settings.home / CHAT_HISTORY), is_private)
    prompt: PromptSession[str] = PromptSession(history=history)
    # handle_sigint would replace the handler of Ctrl-C and not restore it for the answer
    return lambda: prompt.prompt_async("private › " if is_private() else "› ", handle_sigint=False)


async def _read_piped_line() -> str:
    line = await asyncio.to_thread(sys.stdin.buffer.readline)
    if not line:
        raise EOFError
    return line.decode("utf-8", "surrogateescape")  # invalid UTF-8 is rejected later, as one message
