"""Command `newton chat`: an interactive conversation with an agent in the terminal."""

import asyncio
import errno
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from prompt_toolkit import PromptSession
from prompt_toolkit.history import FileHistory
from prompt_toolkit.input.typeahead import clear_typeahead
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from newton.agent.actions.external_tools import ApprovalAnswer, ApprovalRequest
from newton.client import ApiError
from newton.environment import CHAT_HISTORY
from newton.errors import NewtonError
from newton.ids import new_id
from newton.memory.hygiene import clean_model_text
from newton.runtime.chat_backend.local import LocalAgent
from newton.runtime.chat_backend.protocol import ChatBackend, run_named
from newton.runtime.cli import formatting
from newton.runtime.cli.connection import open_chat_backend
from newton.runtime.cli.daemon_access import DaemonOption, TokenFileOption
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
from newton.runtime.cli.printing import visible
from newton.runtime.cli.talk.approvals import ask_approval
from newton.runtime.cli.talk.chat_conversation import ChatConversation, LineReader
from newton.runtime.cli.talk.completion import ChatCompleter
from newton.runtime.cli.talk.operation_lines import SLASH_COMMANDS
from newton.runtime.cli.talk.session_picker import pick_session
from newton.runtime.cli.talk.slash_commands import BUILTIN_COMMANDS, describe_model, run_slash_command
from newton.runtime.error_status import EXIT_INTERRUPTED, EXIT_OK
from newton.settings import Settings


async def chat(
    *,
    session: Annotated[str | None, Parameter(help="Session to continue or create (default: a new one).")] = None,
    resume: Annotated[bool, Parameter(negative=(), help="Choose the session to continue from a list.")] = False,
    frame: FrameOption = None,
    model: ModelOption = None,
    strategy: StrategyOption = None,
    debug: DebugOption = False,
    agent: AgentOption = None,
    daemon: DaemonOption = None,
    token_file: TokenFileOption = None,
) -> int:
    """Chat with the agent. The conversation is stored; /help in the chat lists its commands.

    From a pipe, each line is a message of its own, as if it were typed. `newton ask` takes all of a pipe as one
    question.

    Example: printf '%s\\n' "The ferry leaves at nine." "When does it leave?" | newton chat

    Example: newton chat --session planning

    Example: newton chat --daemon https://newton.example --token-file laptop.token
    """
    settings, session, strategy = load_settings(agent), check_session_name(session), check_strategy(strategy)
    async with open_chat_backend(settings, daemon, token_file, is_agent_explicit=agent is not None) as backend:
        if frame:
            await run_named(backend, "frame", name=frame)
        if model:
            await backend.select_model(model)
        if resume and session is None:
            session = await pick_session(backend, _ask_line)
        name = session or str(new_id())
        completer = ChatCompleter(sorted((*BUILTIN_COMMANDS, *SLASH_COMMANDS, "/quit")))
        read_line = _create_reader(settings, lambda: conversation, completer)
        if isinstance(backend, LocalAgent) and sys.stdin.isatty():
            backend.approve = partial(_approve, lambda: conversation)
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
        answers = f"no model: answers quote memory ({hint})"
        if backend.model:
            answers = f"model {await describe_model(backend)}"
        formatting.print_notice(f"Newton, agent {backend.agent}, {answers}. /help lists the commands.")
        loading = asyncio.ensure_future(_load_names(backend, completer))
        try:
            return await _run_until_interrupt(conversation)
        finally:
            loading.cancel()
            await asyncio.wait({loading})


async def _run_until_interrupt(conversation: ChatConversation) -> int:
    """Run the conversation and return the exit status.

    Ctrl-C stops the running answer or command or, if none is running, the conversation. SIGTERM and SIGHUP stop both.
    The part of an answer that was received is stored. The event loop handles the signals: an exception raised by a
    signal could interrupt the use of a database connection and corrupt its state.
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
    except OSError as error:
        return _check_closed_terminal(error, conversation)
    return EXIT_OK


def _check_closed_terminal(error: OSError, conversation: ChatConversation) -> int:
    """Return the exit status if the rest of an answer was written to a terminal that was closed, else raise `error`."""
    if conversation.is_leaving and error.errno == errno.EIO:
        return EXIT_INTERRUPTED
    raise error


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


async def _approve(get_conversation: Callable[[], ChatConversation], request: ApprovalRequest) -> ApprovalAnswer:
    """Ask for a permission in the terminal. Ctrl-C stops the answer."""
    try:
        return await ask_approval(request, _ask_line)
    except KeyboardInterrupt:
        get_conversation().interrupt(asyncio.get_running_loop().time())
        await asyncio.sleep(0)  # the answer is cancelled here
        return "refused"
    finally:
        get_conversation().typed_ahead.mark_pastes()


async def _ask_line(question: str) -> str:
    if not sys.stdin.isatty():
        return await _read_piped_line()
    session: PromptSession[str] = PromptSession()
    clear_typeahead(session.app.input)
    return await session.prompt_async(question, handle_sigint=False)


async def _load_names(backend: ChatBackend, completer: ChatCompleter) -> None:
    """Load the names that the input is completed with, while the user types. Without a connection there are none."""
    with suppress(NewtonError, ApiError):
        completer.names["/frame"] = ["auto", *(one.name for one in (await run_named(backend, "frames")).items)]
        completer.names["/switch"] = [one.session for one in (await run_named(backend, "sessions", limit=100)).items]


def _create_key_bindings() -> KeyBindings:
    """Return key bindings in which Alt-Enter begins a new line; pasted lines are one input anyway."""
    bindings = KeyBindings()

    @bindings.add("escape", "enter")
    def begin_line(event: KeyPressEvent) -> None:  # pyright: ignore[reportUnusedFunction] (the bindings call it)
        event.current_buffer.insert_text("\n")

    return bindings


def _create_reader(
    settings: Settings, get_conversation: Callable[[], ChatConversation], completer: ChatCompleter
) -> LineReader:
    """Return a function that reads one input; in a terminal, with editing, completion, a history and its search."""

    def is_private() -> bool:
        return get_conversation().private_messages is not None

    if not sys.stdin.isatty():
        return _read_piped_line
    history = RedactingFileHistory(str(settings.home / CHAT_HISTORY), is_private)
    prompt: PromptSession[str] = PromptSession(
        history=history,
        completer=completer,
        complete_while_typing=False,
        enable_history_search=True,
        key_bindings=_create_key_bindings(),
        bottom_toolbar=lambda: visible(get_conversation().status),
    )
    # handle_sigint would replace the handler of Ctrl-C and not restore it for the answer
    return lambda: prompt.prompt_async("private › " if is_private() else "› ", handle_sigint=False)


async def _read_piped_line() -> str:
    line = await asyncio.to_thread(sys.stdin.buffer.readline)
    if not line:
        raise EOFError
    return line.decode("utf-8", "surrogateescape")  # invalid UTF-8 is rejected later, as one message
