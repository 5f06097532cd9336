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
from newton.memory.hygiene import mended, ref
from newton.runtime.cli import show
from newton.runtime.cli.meeting import Daemon, TokenFile, met
from newton.runtime.cli.options import Agent, session_name, settings
from newton.runtime.cli.printing import say
from newton.runtime.cli.sessions import places
from newton.runtime.cli.tasks import typed
from newton.runtime.statuses import INTERRUPTED, OK
from newton.runtime.talk.partner import Partner
from newton.runtime.talk.told import Shown, Turned, Wish
from newton.settings import Settings

HELP = """\
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

AUTO = "auto"
SAME_SECONDS = 0.5  # pressed twice within it, Ctrl-C is meant for the answer alone

Reader = Callable[[], Awaitable[str]]


@dataclass(slots=True, kw_only=True)
class Conversation:
    """What a running chat knows: where it is, and the last context."""

    partner: Partner
    read: Reader
    name: str
    frame: str | None = None
    given: Turned | None = None
    proposed: Sequence[Wish] = ()
    answering: "asyncio.Task[None] | None" = None
    leaving: bool = False
    stopped: float = -math.inf

    async def hold(self) -> None:
        """The conversation from its first input to its end, whatever ends it; then it becomes an episode."""
        # The rest of the vectors is made while the person thinks.
        settling = asyncio.ensure_future(self.partner.settle(most=None))
        try:
            await self._converse()
        finally:
            settling.cancel()
            try:
                await self.partner.close(self.name)
                await self.partner.settle()
            finally:
                with suppress(asyncio.CancelledError):
                    await settling

    async def _converse(self) -> None:
        while True:
            try:
                words = (await self.read()).strip()
            except EOFError:
                return
            except KeyboardInterrupt:
                continue
            if words in ("/quit", "/exit"):
                return
            if words:
                await self._answered(words)

    async def _answered(self, words: str) -> None:
        """One input. What goes wrong with it is said, and the conversation goes on."""
        try:
            if words.startswith("/"):
                await self._command(words)
            else:
                await self._interruptible(self._turn(words))
                await self.partner.settle()
        except NewtonError as error:
            show.notice(f"{error.what}\n  {error.hint}")

    async def _interruptible(self, turn: Coroutine[Any, Any, None]) -> None:
        """Ctrl-C stops the turn, not the conversation; the turn itself keeps what was said."""
        self.answering = asyncio.ensure_future(turn)
        try:
            await self.answering
        except asyncio.CancelledError:
            if self.leaving:
                raise
            say(" …\n")
        finally:
            self.answering = None

    def stops(self, now: float) -> bool:
        """Stops the answer that is being given. False when there is none, and more than that is meant."""
        if self.answering:
            self.stopped = now
            if not self.answering.cancelling():  # a second time, it would stop what keeps the answer
                self.answering.cancel()
        return now - self.stopped < SAME_SECONDS

    async def _turn(self, words: str) -> None:
        taken = self.partner.take(self.name, words, frame=self.frame)
        async with aclosing(taken) as pieces:  # what was said is kept when the terminal is gone, too
            async for piece in pieces:
                if isinstance(piece, Turned):
                    self._tell_unshown(piece.contents.identity)
                    self.given, self.proposed = piece, piece.proposed or self.proposed
                    show.missing(piece.contents.missing)
                    if piece.caveat and self.partner.model:
                        show.notice(f"\n({piece.caveat})")
                    show.proposed(piece.proposed)
                else:
                    say(piece, end="", flush=True)
        say("\n", flush=True)

    def _tell_unshown(self, identity: Shown) -> None:
        """What of the identity has no room; once, as long as it stays the same."""
        if self.given is None or self.given.contents.identity != identity:
            show.unshown(identity.unshown)

    async def _command(self, words: str) -> None:
        name, _, rest = words.partition(" ")
        commands: dict[str, Callable[[str], Awaitable[None] | None]] = {
            "/help": lambda _: say(HELP),
            "/context": self._context,
            "/why": self._why,
            "/frame": self._frame,
            "/remember": self._remember,
            "/checkpoint": self._checkpoint,
            "/branch": self._branch,
            "/switch": self._switch,
            "/task": self._task,
            "/yes": self._accept,
            "/no": self._reject,
        }
        if name not in commands:
            raise InputError(f"There is no command {name}.", hint="/help lists them.")
        if waiting := commands[name](rest.strip()):
            await waiting

    def _context(self, _: str) -> None:
        given = self._given()
        say(f"{show.bundle_summary(given.contents)}\n\n{show.came_about(given)}")

    async def _why(self, which: str) -> None:
        say(show.explanation(await self.partner.why(self._given().contents.bundle_id, which)))

    async def _frame(self, name: str) -> None:
        if name:
            self.frame = None if name == AUTO else await self.partner.frame(name)
        say(f"Frame: {self.frame or 'chosen for each input'}.")
        if not name and self.given:
            frame = self.given.contents.frame
            say(f"The last answer: {show.framed(frame)}, because {frame.reason}.")

    async def _remember(self, text: str) -> None:
        say(show.kept(*await self.partner.remember(text)))

    async def _task(self, words: str) -> None:
        say(await typed(await self.partner.tasks(self.name), words))

    async def _checkpoint(self, name: str) -> None:
        if name:
            say(places([await self.partner.checkpoint(self.name, ref(name, what="checkpoint"))], self.name))
        else:
            say(places(await self.partner.checkpoints(self.name), self.name))

    async def _branch(self, words: str) -> None:
        name, _, at = words.partition(" ")
        await self.partner.branch(self.name, ref(name, what="session"), at=at.strip() or None)
        await self._switch(name)

    async def _switch(self, name: str) -> None:
        """What is left becomes an episode, and the context of the last answer stays there."""
        left, known = self.name, not name or await self.partner.known(ref(name, what="session"))
        if name:
            await self.partner.close(self.name)
            await self.partner.begin(name)
            self.name, self.given = name, None
        new = "" if known else f" It is a new conversation; /switch {left} goes back."
        say(f"This is {self.name}.{new}")

    async def _accept(self, which: str) -> None:
        for wish in await self._meant(which):
            stands = show.wished(await self.partner.accept(wish.tenet_id))
            self._settle(wish)
            say(f"It stands: {stands} (`newton identity` shows it, and takes it out again)")

    async def _reject(self, which: str) -> None:
        for wish in await self._meant(which):
            await self.partner.reject(wish.tenet_id)
            self._settle(wish)
            say(f"Dropped: {wish.words}")

    async def _meant(self, which: str) -> Sequence[Wish]:
        """Of what was proposed last, that number, or all of it."""
        if not self.proposed:
            waiting = await self.partner.wishes()
            raise InputError("Nothing here waits for an answer.", hint=show.elsewhere(waiting))
        if not which:
            return self.proposed
        if which.isdigit() and 1 <= int(which) <= len(self.proposed):
            return [self.proposed[int(which) - 1]]
        raise InputError(
            f"{which!r} is none of them.",
            hint=f"Give a number from 1 to {len(self.proposed)}; `newton identity proposals` lists the earlier ones.",
        )

    def _settle(self, wish: Wish) -> None:
        self.proposed = [one for one in self.proposed if one != wish]

    def _given(self) -> Turned:
        if self.given is None:
            raise InputError("There is no context yet.", hint="Say something first.")
        return self.given


async def chat(
    *,
    session: str | None = None,
    frame: str | None = None,
    agent: Agent = None,
    daemon: Daemon = None,
    token_file: TokenFile = None,
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
    chosen, session = settings(agent), session_name(session)
    async with met(chosen, daemon, token_file, named=agent is not None) as partner:
        if frame:
            await partner.frame(frame)
        name = session or str(new_id())
        await partner.begin(name)
        conversation = Conversation(partner=partner, read=_reader(chosen), name=name, frame=frame)
        model, todo = partner.model, "the daemon has none" if daemon else "set OPENAI_API_KEY"
        who = f"with {model}" if model else f"without a model: answers quote memory ({todo})"
        show.notice(f"Newton, agent {partner.agent}, {who}. /help for help.")
        return await _until_interrupted(conversation)


async def _until_interrupted(conversation: Conversation) -> int:
    """Holds the conversation; returns the exit status. Ctrl-C stops the answer that is being given, or else all of it.
    What ends the process or closes its terminal stops both, and what was said so far is kept.

    The loop is told of it from here to its end: an exception out of the middle of its work could leave a connection to
    the database in no state at all, and crash.
    """
    whole = asyncio.ensure_future(conversation.hold())

    def stop() -> None:
        if not conversation.stops(loop.time()):
            whole.cancel()

    def leave() -> None:
        if not conversation.leaving:  # a terminal that is closed says so twice
            conversation.leaving = True
            whole.cancel()

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, stop)
    for ending in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(ending, leave)
    try:
        await whole
    except asyncio.CancelledError:
        return INTERRUPTED
    return OK


class History(FileHistory):
    """What was typed, for the next conversation. It is kept like anything else: without secrets, for nobody else."""

    def store_string(self, string: str) -> None:
        Path(str(self.filename)).touch(mode=0o600)
        super().store_string(mended(string))


def _reader(chosen: Settings) -> Reader:
    """Lines from the person, with history and editing; from a pipe, just lines."""
    if not sys.stdin.isatty():
        return _piped
    prompt: PromptSession[str] = PromptSession(history=History(str(chosen.home / "history")))
    # it would take our handler of Ctrl-C away, and leave none behind for the time of the answer
    return lambda: prompt.prompt_async("› ", handle_sigint=False)


async def _piped() -> str:
    line = await asyncio.to_thread(sys.stdin.buffer.readline)
    if not line:
        raise EOFError
    return line.decode("utf-8", "surrogateescape")  # what is no text is refused as a message, and the next may be one
