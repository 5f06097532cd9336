"""Command `newton chat`: an interactive conversation with an agent."""

import asyncio
import math
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from prompt_toolkit import PromptSession
from prompt_toolkit.history import FileHistory

from newton.client import ApiError
from newton.errors import InputError, NewtonError
from newton.ids import new_id
from newton.memory.hygiene import clean_model_text, clean_ref
from newton.runtime.chat_backend.protocol import ChatBackend, PrivateMessage
from newton.runtime.chat_backend.view_models import IdentityView, ProposalView, TurnView
from newton.runtime.cli import formatting
from newton.runtime.cli.connection import DaemonOption, TokenFileOption, open_chat_backend
from newton.runtime.cli.conversations.sessions import format_checkpoints
from newton.runtime.cli.conversations.tasks import run_task_command
from newton.runtime.cli.options import AgentOption, FrameOption, ModelOption, check_session_name, load_settings
from newton.runtime.cli.printing import say
from newton.runtime.cli.talk.slash_commands import find_command, format_help, format_result, parse_arguments
from newton.runtime.error_status import EXIT_INTERRUPTED, EXIT_OK
from newton.runtime.hint_names import rename_commands
from newton.settings import Settings

HELP_TEXT = """\
/context          show the context of the last answer, by layer, with scores
/why NUMBER       explain an item of /context; /why TEXT finds a memory by its text, selected or not
/frame            show the frame of the last answer, its confidence and the reason
/frame NAME       use this frame for the next inputs; /frame auto selects one for each input again
/model            list the chat models; /model NAME uses this one for the next inputs
/remember TEXT    store a fact
/private          store nothing of the next inputs and answers; /private again ends it
/checkpoint NAME  set a checkpoint here; /checkpoint alone lists the checkpoints
/branch NAME [AT] continue in a new session from here, or from a checkpoint or a message position
/switch NAME      continue in another session, or create it; /switch alone shows the current one
/task             show the tasks; /task push GOAL, pop RESULT, block REASON, resume NUMBER, fail REASON
/yes, /no [N]     accept or reject a proposed standing instruction; number N of several
/help             show this help
/quit             leave (so does Ctrl-D); Ctrl-C stops an answer and stores the part received so far"""

AUTO_FRAME = "auto"
DOUBLE_PRESS_SECONDS = 0.5  # a second Ctrl-C within this time stops only the answer

LineReader = Callable[[], Awaitable[str]]


@dataclass(slots=True, kw_only=True)
class ChatConversation:
    """A running conversation: its session, chosen frame (kind of input), last turn and pending proposals.

    `private_messages` are the messages since /private was entered; None if messages are stored.
    """

    backend: ChatBackend
    read_line: LineReader
    name: str
    frame: str | None = None
    last_turn: TurnView | None = None
    private_messages: list[PrivateMessage] | None = None
    proposals: Sequence[ProposalView] = ()
    answer_task: "asyncio.Task[None] | None" = None
    is_leaving: bool = False
    stopped_at: float = -math.inf

    async def run(self) -> None:
        """Run the conversation until its end, then close the session, which stores it as an episode."""
        # Earlier sessions are learnt from, and pending memories are embedded, while the user types.
        processing = asyncio.ensure_future(self._process_earlier())
        try:
            await self._read_inputs()
        finally:
            processing.cancel()
            try:
                await self._close_session()
                if not self.is_leaving:  # whoever closes the terminal does not wait for a model; a later run learns
                    await self.backend.learn()
                    await self.backend.process_pending()
            finally:
                with suppress(asyncio.CancelledError):
                    await processing

    async def _process_earlier(self) -> None:
        await self.backend.learn()
        await self.backend.process_pending(limit=None)

    async def _close_session(self) -> None:
        """Close the session, if it has any message."""
        if await self.backend.has_session(self.name):
            await self.backend.close_session(self.name)

    async def _read_inputs(self) -> None:
        while True:
            try:
                text = (await self.read_line()).strip()
            except EOFError:
                return
            except KeyboardInterrupt:
                continue
            if text in ("/quit", "/exit"):
                return
            if text:
                await self._handle_input(text)

    async def _handle_input(self, text: str) -> None:
        """Run a slash command or a turn for one input. An error is printed and does not end the conversation."""
        try:
            if text.startswith("/"):
                await self._run_command(text)
            else:
                await self._run_interruptible(self._run_turn(text))
                await self.backend.process_pending()
        except NewtonError as error:
            formatting.print_notice(rename_commands(f"{error.what}\n  {error.hint}", "chat"))
        except ApiError as error:
            formatting.print_notice(rename_commands(f"{error.detail}\n  {error.hint}", "chat"))

    async def _run_interruptible(self, turn: Coroutine[Any, Any, None]) -> None:
        """Run a turn. Ctrl-C stops the turn, which stores the partial reply; the conversation continues."""
        self.answer_task = asyncio.ensure_future(turn)
        try:
            await self.answer_task
        except asyncio.CancelledError:
            if self.is_leaving:
                raise
            say(" …\n")
        finally:
            self.answer_task = None

    def interrupt(self, now: float) -> bool:
        """Stop the running answer on Ctrl-C at the time `now`, in seconds of the event loop.

        Return False if none is running and none was stopped in the last half second: the conversation then ends.
        """
        if self.answer_task:
            self.stopped_at = now
            if not self.answer_task.cancelling():  # a second cancellation would interrupt storing the answer
                self.answer_task.cancel()
        return now - self.stopped_at < DOUBLE_PRESS_SECONDS

    async def _run_turn(self, text: str) -> None:
        private = None if self.private_messages is None else tuple(self.private_messages)
        turn = self.backend.run_turn(self.name, text, frame=self.frame, private=private)
        async with aclosing(turn) as pieces:  # closing it stores the partial reply if the terminal is closed
            async for piece in pieces:
                if isinstance(piece, TurnView):
                    self._print_hidden_identity(piece.context_summary.identity)
                    self.last_turn, self.proposals = piece, piece.proposals or self.proposals
                    if self.private_messages is not None:
                        self.private_messages += [PrivateMessage("user", text), PrivateMessage("assistant", piece.text)]
                    formatting.print_missing_sources(piece.context_summary.missing)
                    if piece.redacted:
                        formatting.print_notice(f"\n({formatting.format_redactions(piece.redacted)})")
                    if piece.warning and self.backend.model:
                        formatting.print_notice(f"\n({piece.warning})")
                    formatting.print_proposals(piece.proposals)
                else:
                    say(piece, end="", flush=True)
        say("\n", flush=True)

    def _print_hidden_identity(self, identity: IdentityView) -> None:
        """Print how many identity lines did not fit into the context, unless the last turn had the same identity."""
        if self.last_turn is None or self.last_turn.context_summary.identity != identity:
            formatting.print_hidden_identity_lines(identity.omitted)

    async def _run_command(self, text: str) -> None:
        name, _, rest = text.partition(" ")
        if command := BUILTIN_COMMANDS.get(name):
            if result := command(self, rest.strip()):
                await result
        else:
            tool_command = find_command(name, BUILTIN_COMMANDS)
            arguments = parse_arguments(tool_command, rest.strip(), session=self.name)
            say(format_result(await self.backend.call_tool(tool_command.tool, arguments)))

    def print_help(self, _: str) -> None:
        say(f"{HELP_TEXT}\n\n{format_help()}")

    def print_context(self, _: str) -> None:
        turn = self._require_last_turn()
        say(f"{formatting.format_bundle(turn.context_summary)}\n\n{formatting.format_refresh(turn)}")
        if turn.context_summary.has_nothing_relevant:
            formatting.print_notice("(No memory was relevant; the model got only the messages of this conversation.)")

    async def explain(self, item: str) -> None:
        last_turn = self._require_last_turn()
        if not last_turn.remembered:
            what = "The items of a private answer's context cannot be explained, because the context is not stored."
            raise InputError(what, hint="/context lists the items of the context of the last answer.")
        bundle_id = last_turn.context_summary.bundle_id
        say(formatting.format_candidate_explanation(await self.backend.explain_memory(bundle_id, item)))

    async def set_frame(self, name: str) -> None:
        if name:
            self.frame = None if name == AUTO_FRAME else await self.backend.resolve_frame(name)
        say(f"Frame: {self.frame or 'selected for each input'}.")
        if not name and self.last_turn:
            frame = self.last_turn.context_summary.frame
            say(f"Last answer: {formatting.format_frame(frame)}; reason: {frame['reason']}.")

    async def select_model(self, name: str) -> None:
        if name:
            await self.backend.select_model(name)
        say(f"Model: {self.backend.model or 'none; answers only quote memory'}.")
        if not name and (names := await self.backend.list_models()):
            say(f"Available models: {', '.join(names)}.")

    async def remember(self, text: str) -> None:
        report = await self.backend.remember(text)
        say(formatting.format_remember_report(report, settle_command="/settle"))
        formatting.print_censor_warning(report.warning)

    def toggle_privacy(self, _: str) -> None:
        if self.private_messages is None:
            self.private_messages = []
            say("Private: nothing of the next inputs and answers is stored. Memory is still used. /private ends it.")
        else:
            self.private_messages = None
            say("Inputs and answers are stored again. The model is not sent what was private.")

    async def run_task_command(self, text: str) -> None:
        await self.backend.create_session(self.name)
        say(await run_task_command(await self.backend.open_tasks(self.name), text))

    async def checkpoint(self, name: str) -> None:
        await self.backend.create_session(self.name)
        if name:
            checkpoints = [await self.backend.create_checkpoint(self.name, clean_ref(name, what="checkpoint"))]
        else:
            checkpoints = list(await self.backend.list_checkpoints(self.name))
        say(format_checkpoints(checkpoints, self.name))

    async def branch(self, text: str) -> None:
        name, _, at = text.partition(" ")
        await self.backend.create_session(self.name)
        await self.backend.create_branch(self.name, clean_ref(name, what="session"), position=at.strip() or None)
        await self.switch(name)

    async def switch(self, name: str) -> None:
        """Close the current session and continue in the session `name`; print the name of the current session.

        Without a name, only print the current one.
        """
        previous, exists = self.name, not name or await self.backend.has_session(clean_ref(name, what="session"))
        if name:
            await self._close_session()
            self.name, self.last_turn = name, None
        note = "" if exists else f" It is new; /switch {previous} returns to the previous one."
        say(f"Session {self.name}.{note}")

    async def accept(self, number: str) -> None:
        for proposal in await self._select_proposals(number):
            accepted = formatting.format_proposal(await self.backend.accept_proposal(proposal.line_id))
            self._drop_proposal(proposal)
            say(f"Added: {accepted} (`newton identity` shows it; `newton identity remove` removes it)")

    async def reject(self, number: str) -> None:
        for proposal in await self._select_proposals(number):
            await self.backend.reject_proposal(proposal.line_id)
            self._drop_proposal(proposal)
            say(f"Rejected: {proposal.text}")

    async def _select_proposals(self, number: str) -> Sequence[ProposalView]:
        """Return the proposed identity line with a number from 1, or all for an empty `number`. Raises InputError."""
        if not self.proposals:
            pending = formatting.format_pending_proposals(await self.backend.list_proposals())
            raise InputError("There is no proposal in this conversation.", hint=pending)
        if not number:
            return self.proposals
        if number.isdigit() and 1 <= int(number) <= len(self.proposals):
            return [self.proposals[int(number) - 1]]
        hint = f"Give a number from 1 to {len(self.proposals)}; `newton identity proposals` lists earlier proposals."
        raise InputError(f"{number!r} is not the number of a proposal.", hint=hint)

    def _drop_proposal(self, proposal: ProposalView) -> None:
        self.proposals = [one for one in self.proposals if one != proposal]

    def _require_last_turn(self) -> TurnView:
        if self.last_turn is None:
            raise InputError("There is no context yet.", hint="Send a message first.")
        return self.last_turn


BUILTIN_COMMANDS: Mapping[str, Callable[[ChatConversation, str], Awaitable[None] | None]] = {
    "/help": ChatConversation.print_help,
    "/context": ChatConversation.print_context,
    "/why": ChatConversation.explain,
    "/frame": ChatConversation.set_frame,
    "/model": ChatConversation.select_model,
    "/remember": ChatConversation.remember,
    "/private": ChatConversation.toggle_privacy,
    "/checkpoint": ChatConversation.checkpoint,
    "/branch": ChatConversation.branch,
    "/switch": ChatConversation.switch,
    "/task": ChatConversation.run_task_command,
    "/yes": ChatConversation.accept,
    "/no": ChatConversation.reject,
}


async def chat(
    *,
    session: Annotated[str | None, Parameter(help="Session to continue or create (default: a new one).")] = None,
    frame: FrameOption = None,
    model: ModelOption = None,
    agent: AgentOption = None,
    daemon: DaemonOption = None,
    token_file: TokenFileOption = None,
) -> int:
    """Chat with the agent. The conversation is stored; /help in the chat lists its commands.

    Example: newton chat --session planning

    Example: newton chat --daemon https://newton.example --token-file laptop.token
    """
    settings, session = load_settings(agent), check_session_name(session)
    async with open_chat_backend(settings, daemon, token_file, is_agent_explicit=agent is not None) as backend:
        if frame:
            await backend.resolve_frame(frame)
        if model:
            await backend.select_model(model)
        name = session or str(new_id())
        read_line = _create_reader(settings, lambda: conversation.private_messages is not None)
        conversation = ChatConversation(backend=backend, read_line=read_line, name=name, frame=frame)
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
    history = RedactingFileHistory(str(settings.home / "history"), is_private)
    prompt: PromptSession[str] = PromptSession(history=history)
    # handle_sigint would replace the handler of Ctrl-C and not restore it for the answer
    return lambda: prompt.prompt_async("private › " if is_private() else "› ", handle_sigint=False)


async def _read_piped_line() -> str:
    line = await asyncio.to_thread(sys.stdin.buffer.readline)
    if not line:
        raise EOFError
    return line.decode("utf-8", "surrogateescape")  # invalid UTF-8 is rejected later, as one message
