"""`newton chat`: a conversation in the terminal."""

import asyncio
import math
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.history import FileHistory

from newton.errors import InputError, NewtonError
from newton.ids import new_id
from newton.memory.hygiene import clean_model_text, clean_ref
from newton.runtime.chat_backend.protocol import ChatBackend
from newton.runtime.chat_backend.view_models import IdentityView, ProposalView, TurnView
from newton.runtime.cli import formatting
from newton.runtime.cli.connection import DaemonOption, TokenFileOption, open_chat_backend
from newton.runtime.cli.conversations.sessions import format_checkpoints
from newton.runtime.cli.conversations.tasks import run_task_command
from newton.runtime.cli.options import AgentOption, check_session_name, load_settings
from newton.runtime.cli.printing import say
from newton.runtime.error_status import EXIT_INTERRUPTED, EXIT_OK
from newton.settings import Settings

HELP_TEXT = """\
/context          what the last answer was given, by layer, with scores
/why NUMBER       why that item of /context is in; /why WORDS finds it by its text, left out or not
/frame            the frame of the last answer, how surely it was chosen, and why
/frame NAME       look at the next inputs in this frame; /frame auto chooses again each time
/remember TEXT    keep a fact
/checkpoint NAME  name the place where this conversation is; /checkpoint alone lists the names
/branch NAME [AT] go on in a new conversation from here, or from a checkpoint or a line
/switch NAME      go on in another conversation, or begin it; /switch alone says in which this is
/task             the tasks of this conversation; /task push GOAL, pop RESULT, block WHY, resume N, fail WHY
/yes, /no [N]     to what you seem to want from now on: keep it always, or drop it; number N of several
/help             this
/quit             leave (so does Ctrl-D); Ctrl-C stops an answer and keeps what was said so far"""

AUTO_FRAME = "auto"
DOUBLE_PRESS_SECONDS = 0.5  # pressed twice within it, Ctrl-C is meant for the answer alone

LineReader = Callable[[], Awaitable[str]]


@dataclass(slots=True, kw_only=True)
class ChatConversation:
    """What a running chat knows: where it is, and the last context."""

    backend: ChatBackend
    read_line: LineReader
    name: str
    frame: str | None = None
    last_turn: TurnView | None = None
    proposals: Sequence[ProposalView] = ()
    answer_task: "asyncio.Task[None] | None" = None
    is_leaving: bool = False
    stopped_at: float = -math.inf

    async def run(self) -> None:
        """The conversation from its first input to its end, whatever ends it; then it becomes an episode."""
        # The rest of the vectors is made while the person thinks.
        settling = asyncio.ensure_future(self.backend.process_pending(limit=None))
        try:
            await self._read_inputs()
        finally:
            settling.cancel()
            try:
                await self.backend.close_session(self.name)
                await self.backend.process_pending()
            finally:
                with suppress(asyncio.CancelledError):
                    await settling

    async def _read_inputs(self) -> None:
        while True:
            try:
                words = (await self.read_line()).strip()
            except EOFError:
                return
            except KeyboardInterrupt:
                continue
            if words in ("/quit", "/exit"):
                return
            if words:
                await self._handle_input(words)

    async def _handle_input(self, text: str) -> None:
        """One input. What goes wrong with it is said, and the conversation goes on."""
        try:
            if text.startswith("/"):
                await self._run_command(text)
            else:
                await self._run_interruptible(self._run_turn(text))
                await self.backend.process_pending()
        except NewtonError as error:
            formatting.print_notice(f"{error.what}\n  {error.hint}")

    async def _run_interruptible(self, turn: Coroutine[Any, Any, None]) -> None:
        """Ctrl-C stops the turn, not the conversation; the turn itself keeps what was said."""
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
        """Stops the answer that is being given. False when there is none, and more than that is meant."""
        if self.answer_task:
            self.stopped_at = now
            if not self.answer_task.cancelling():  # a second time, it would stop what keeps the answer
                self.answer_task.cancel()
        return now - self.stopped_at < DOUBLE_PRESS_SECONDS

    async def _run_turn(self, text: str) -> None:
        taken = self.backend.run_turn(self.name, text, frame=self.frame)
        async with aclosing(taken) as pieces:  # what was said is kept when the terminal is gone, too
            async for piece in pieces:
                if isinstance(piece, TurnView):
                    self._print_hidden_identity(piece.context_summary.identity)
                    self.last_turn, self.proposals = piece, piece.proposals or self.proposals
                    formatting.print_missing_sources(piece.context_summary.missing)
                    if piece.warning and self.backend.model:
                        formatting.print_notice(f"\n({piece.warning})")
                    formatting.print_proposals(piece.proposals)
                else:
                    say(piece, end="", flush=True)
        say("\n", flush=True)

    def _print_hidden_identity(self, identity: IdentityView) -> None:
        """What of the identity has no room; once, as long as it stays the same."""
        if self.last_turn is None or self.last_turn.context_summary.identity != identity:
            formatting.print_hidden_identity_lines(identity.omitted)

    async def _run_command(self, text: str) -> None:
        name, _, rest = text.partition(" ")
        commands: dict[str, Callable[[str], Awaitable[None] | None]] = {
            "/help": lambda _: say(HELP_TEXT),
            "/context": self._print_context,
            "/why": self._explain,
            "/frame": self._set_frame,
            "/remember": self._remember,
            "/checkpoint": self._checkpoint,
            "/branch": self._branch,
            "/switch": self._switch,
            "/task": self._run_task_command,
            "/yes": self._accept,
            "/no": self._reject,
        }
        if name not in commands:
            raise InputError(f"There is no command {name}.", hint="/help lists them.")
        if waiting := commands[name](rest.strip()):
            await waiting

    def _print_context(self, _: str) -> None:
        given = self._require_last_turn()
        say(f"{formatting.format_bundle(given.context_summary)}\n\n{formatting.format_refresh(given)}")

    async def _explain(self, which: str) -> None:
        say(
            formatting.format_candidate_explanation(
                await self.backend.explain_memory(self._require_last_turn().context_summary.bundle_id, which)
            )
        )

    async def _set_frame(self, name: str) -> None:
        if name:
            self.frame = None if name == AUTO_FRAME else await self.backend.resolve_frame(name)
        say(f"Frame: {self.frame or 'chosen for each input'}.")
        if not name and self.last_turn:
            frame = self.last_turn.context_summary.frame
            say(f"The last answer: {formatting.format_frame(frame)}, because {frame['reason']}.")

    async def _remember(self, text: str) -> None:
        say(formatting.format_remember_result(*await self.backend.remember(text)))

    async def _run_task_command(self, text: str) -> None:
        say(await run_task_command(await self.backend.open_tasks(self.name), text))

    async def _checkpoint(self, name: str) -> None:
        if name:
            say(
                format_checkpoints(
                    [await self.backend.create_checkpoint(self.name, clean_ref(name, what="checkpoint"))], self.name
                )
            )
        else:
            say(format_checkpoints(await self.backend.list_checkpoints(self.name), self.name))

    async def _branch(self, text: str) -> None:
        name, _, at = text.partition(" ")
        await self.backend.create_branch(self.name, clean_ref(name, what="session"), position=at.strip() or None)
        await self._switch(name)

    async def _switch(self, name: str) -> None:
        """What is left becomes an episode, and the context of the last answer stays there."""
        left, known = self.name, not name or await self.backend.has_session(clean_ref(name, what="session"))
        if name:
            await self.backend.close_session(self.name)
            await self.backend.create_session(name)
            self.name, self.last_turn = name, None
        new = "" if known else f" It is a new conversation; /switch {left} goes back."
        say(f"This is {self.name}.{new}")

    async def _accept(self, which: str) -> None:
        for wish in await self._select_proposals(which):
            stands = formatting.format_proposal(await self.backend.accept_proposal(wish.line_id))
            self._drop_proposal(wish)
            say(f"It stands: {stands} (`newton identity` shows it, and takes it out again)")

    async def _reject(self, which: str) -> None:
        for wish in await self._select_proposals(which):
            await self.backend.reject_proposal(wish.line_id)
            self._drop_proposal(wish)
            say(f"Dropped: {wish.text}")

    async def _select_proposals(self, which: str) -> Sequence[ProposalView]:
        """Of what was proposed last, that number, or all of it."""
        if not self.proposals:
            waiting = await self.backend.list_proposals()
            raise InputError("Nothing here waits for an answer.", hint=formatting.format_pending_proposals(waiting))
        if not which:
            return self.proposals
        if which.isdigit() and 1 <= int(which) <= len(self.proposals):
            return [self.proposals[int(which) - 1]]
        raise InputError(
            f"{which!r} is none of them.",
            hint=f"Give a number from 1 to {len(self.proposals)}; `newton identity proposals` lists the earlier ones.",
        )

    def _drop_proposal(self, proposal: ProposalView) -> None:
        self.proposals = [one for one in self.proposals if one != proposal]

    def _require_last_turn(self) -> TurnView:
        if self.last_turn is None:
            raise InputError("There is no context yet.", hint="Say something first.")
        return self.last_turn


async def chat(
    *,
    session: str | None = None,
    frame: str | None = None,
    agent: AgentOption = None,
    daemon: DaemonOption = None,
    token_file: TokenFileOption = None,
) -> int:
    """Talk. What is said is remembered; /help lists what else you can do.

    Example: newton chat --session planning

    Example: newton chat --daemon https://newton.example --token-file laptop.token

    Parameters
    ----------
    session:
        Go on with the conversation of this name; without it a new one begins.
    frame:
        Look at every input in this frame instead of choosing one.
    """
    chosen, session = load_settings(agent), check_session_name(session)
    async with open_chat_backend(chosen, daemon, token_file, is_agent_explicit=agent is not None) as partner:
        if frame:
            await partner.resolve_frame(frame)
        name = session or str(new_id())
        await partner.create_session(name)
        conversation = ChatConversation(backend=partner, read_line=_make_reader(chosen), name=name, frame=frame)
        model, todo = partner.model, "the daemon has none" if daemon else "set OPENAI_API_KEY"
        who = f"with {model}" if model else f"without a model: answers quote memory ({todo})"
        formatting.print_notice(f"Newton, agent {partner.agent}, {who}. /help for help.")
        return await _run_until_interrupt(conversation)


async def _run_until_interrupt(conversation: ChatConversation) -> int:
    """Holds the conversation; returns the exit status. Ctrl-C stops the answer that is being given, or else all of it.
    What ends the process or closes its terminal stops both, and what was said so far is kept.

    The loop is told of it from here to its end: an exception out of the middle of its work could leave a connection to
    the database in no state at all, and crash.
    """
    whole = asyncio.ensure_future(conversation.run())

    def stop() -> None:
        if not conversation.interrupt(loop.time()):
            whole.cancel()

    def leave() -> None:
        if not conversation.is_leaving:  # a terminal that is closed says so twice
            conversation.is_leaving = True
            whole.cancel()

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, stop)
    for ending in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(ending, leave)
    try:
        await whole
    except asyncio.CancelledError:
        return EXIT_INTERRUPTED
    return EXIT_OK


class RedactingFileHistory(FileHistory):
    """What was typed, for the next conversation. It is kept like anything else: without secrets, for nobody else."""

    def store_string(self, string: str) -> None:
        Path(str(self.filename)).touch(mode=0o600)
        super().store_string(clean_model_text(string))


def _make_reader(chosen: Settings) -> LineReader:
    """Lines from the person, with history and editing; from a pipe, just lines."""
    if not sys.stdin.isatty():
        return _read_piped_line
    prompt: PromptSession[str] = PromptSession(history=RedactingFileHistory(str(chosen.home / "history")))
    # it would take our handler of Ctrl-C away, and leave none behind for the time of the answer
    return lambda: prompt.prompt_async("› ", handle_sigint=False)


async def _read_piped_line() -> str:
    line = await asyncio.to_thread(sys.stdin.buffer.readline)
    if not line:
        raise EOFError
    return line.decode("utf-8", "surrogateescape")  # what is no text is refused as a message, and the next may be one
