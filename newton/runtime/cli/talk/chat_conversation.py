"""A conversation in the terminal: it reads inputs, runs turns and slash commands, and closes the session at its end."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from newton.client import ApiError
from newton.clock import SystemClock
from newton.cognition.assembly.sections import format_missing
from newton.errors import InputError, NewtonError, NotFoundError
from newton.memory.redaction.tally import redaction_tally
from newton.operations.contexts.context_text import format_hidden_lines
from newton.operations.text_format import format_redactions
from newton.runtime.chat_backend.protocol import ChatBackend, DebugLines, ImageInput, PrivateMessage, run_named
from newton.runtime.chat_backend.view_models import ContextView, ProposalView, RuleChangeView, TurnView
from newton.runtime.cli import formatting
from newton.runtime.cli.printing import say
from newton.runtime.cli.status_line import clear_status, print_status
from newton.runtime.cli.talk.attachments import AttachedInput, attach_files
from newton.runtime.cli.talk.reply_printer import ReplyPrinter
from newton.runtime.cli.talk.typed_ahead import TypedAhead
from newton.runtime.hint_names import rename_commands

MAX_STATUS_LAYERS = 4
DOUBLE_PRESS_SECONDS = 0.5  # a second Ctrl-C within this time stops only the answer

LineReader = Callable[[], Awaitable[str]]
CommandRunner = Callable[["ChatConversation", str], Awaitable[None]]


@dataclass(slots=True, kw_only=True)
class ChatConversation:
    """A running conversation: its session, chosen frame (kind of input), last turn and pending proposals.

    `strategy` is the compaction preset or list of strategies for its turns; None means the setting. `run_command` runs
    an input that begins with "/". `private_messages` are the messages since /private was entered; None if messages are
    stored. With `debug`, what the model is sent is printed before each answer. `rules` are the changes of rules by the
    last turn. `answer_task` is the running answer or command. `has_begun` is True once a part of an answer is printed,
    and `is_leaving` once the conversation is to end. `stopped_at` is the loop time of the last Ctrl-C during an answer.
    `tokens_used` counts the tokens of the model, and `turn_began_at` is the time at which the last turn began.
    """

    backend: ChatBackend
    read_line: LineReader
    run_command: "CommandRunner"
    name: str
    frame: str | None = None
    debug: bool = False
    strategy: str | None = None
    last_turn: TurnView | None = None
    private_messages: list[PrivateMessage] | None = None
    proposals: Sequence[ProposalView] = ()
    rules: Sequence[RuleChangeView] = ()
    answer_task: "asyncio.Task[None] | None" = None
    has_begun: bool = False
    is_leaving: bool = False
    stopped_at: float = -math.inf
    tokens_used: int = 0
    typed_ahead: TypedAhead = field(default_factory=TypedAhead)
    turn_began_at: datetime | None = None

    async def run(self) -> None:
        """Run the conversation until its end, then close the session, which stores it as an episode."""
        # Earlier sessions are learnt from, and pending memories are embedded, while the user types.
        processing = asyncio.ensure_future(self._process_earlier())
        try:
            await self._read_inputs()
        finally:
            processing.cancel()
            try:
                await self.close_session()
                if not self.is_leaving:  # whoever closes the terminal does not wait for a model; a later run learns
                    await self._learn()
            finally:
                with suppress(asyncio.CancelledError):
                    await processing

    async def _learn(self) -> None:
        print_status("Learning from the conversation … (Ctrl-C leaves now; it is learnt later)")
        try:
            await self.backend.learn()
            await self.backend.process_pending()
        finally:
            print_status("")

    async def _process_earlier(self) -> None:
        await self.backend.learn()
        await self.backend.process_pending(limit=None)

    async def close_session(self) -> None:
        """Close the session, if it has any message."""
        if await self.has_session(self.name):
            await run_named(self.backend, "close_session", session=self.name)

    async def has_session(self, name: str) -> bool:
        try:
            await run_named(self.backend, "messages", session=name, limit=1)
        except NotFoundError:
            return False
        return True

    async def _read_inputs(self) -> None:
        while True:
            try:
                text = (await self.read_line()).strip()
            except EOFError:
                return
            except KeyboardInterrupt:
                formatting.print_notice("(/quit or Ctrl-D leaves.)")
                continue
            if text in ("/quit", "/exit"):
                return
            if text:
                with redaction_tally() as redacted:
                    await self._run_interruptible(self._handle_input(text))
                if (removed := redacted.count()) and text.startswith("/") and not text.startswith("/remember "):
                    formatting.print_notice(f"({format_redactions(removed)})")

    async def _handle_input(self, text: str) -> None:
        """Run a slash command or a turn for one input. An error is printed and does not end the conversation."""
        try:
            if text.startswith("/"):
                await self.run_command(self, text)
            else:
                attached = await attach_files(self.backend, self.name, text)
                for note in attached.notes:
                    formatting.print_notice(f"({note})")
                await self._run_turn(text, attached)
                await self.backend.process_pending()
        except NewtonError as error:
            formatting.print_notice(rename_commands(f"{error.what}\n  {error.hint}", "chat"))
        except ApiError as error:
            formatting.print_notice(rename_commands(f"{error.detail}\n  {error.hint}", "chat"))

    async def _run_interruptible(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a turn or a command. Ctrl-C stops it; a turn stores the partial reply. The conversation continues."""
        self.answer_task = asyncio.ensure_future(work)
        try:
            with self.typed_ahead.hold():
                await self.answer_task
        except asyncio.CancelledError:
            if self.is_leaving:
                raise
            say(" …" if self.has_begun else "", flush=True)
            formatting.print_notice("(Stopped.)")
        finally:
            self.answer_task, self.has_begun = None, False

    def interrupt(self, now: float) -> bool:
        """Stop the running answer or command on Ctrl-C at the time `now`, in seconds of the event loop.

        Return False if none is running and none was stopped in the last half second: the conversation then ends.
        """
        if self.answer_task:
            self.stopped_at = now
            if not self.answer_task.cancelling():  # a second cancellation would interrupt storing the answer
                self.answer_task.cancel()
        return now - self.stopped_at < DOUBLE_PRESS_SECONDS

    async def _run_turn(self, text: str, attached: AttachedInput) -> None:
        self.turn_began_at = SystemClock().now()
        sent = ImageInput(attached.text, attached.images) if attached.images else attached.text
        private = None if self.private_messages is None else tuple(self.private_messages)
        turn = self.backend.run_turn(
            self.name,
            sent,
            frame=self.frame,
            strategy=self.strategy,
            include_context=self.debug,
            private=private,
        )
        printer = ReplyPrinter(is_markdown=self.backend.model is not None)
        with printer.open():
            async with aclosing(clear_status(turn)) as pieces:  # closing it stores the reply so far
                async for piece in pieces:
                    if isinstance(piece, DebugLines):
                        formatting.print_notices(piece.lines)
                    elif isinstance(piece, TurnView):
                        printer.finish()
                        self._end_turn(text, piece)
                    else:
                        self.has_begun = True
                        printer.write(piece)
        say(flush=True)

    def _end_turn(self, text: str, turn: TurnView) -> None:
        """Keep the result of the turn with the input `text`, and print what the user should know of it."""
        self._print_changed_notices(turn)
        self.last_turn, self.proposals, self.rules = turn, turn.proposals or self.proposals, turn.rules
        self.tokens_used += turn.input_tokens + turn.output_tokens
        if self.private_messages is not None:
            self.private_messages += [PrivateMessage("user", text), PrivateMessage("assistant", turn.text)]
        if turn.redacted:
            formatting.print_notice(f"({format_redactions(turn.redacted)})")
        if turn.warning and self.backend.model:
            formatting.print_notice(f"({turn.warning})")
        formatting.print_receipt(turn, undo="/undo")
        formatting.print_rule_changes(turn.rules, undo="/undo")
        formatting.print_proposals(turn.proposals)

    def _print_changed_notices(self, turn: TurnView) -> None:
        """Print what did not fit into the context and what is missing, unless the last turn had the same."""
        last, context = self.last_context, turn.context_summary
        if context and (last is None or last.identity != context.identity):
            formatting.print_notices(format_hidden_lines(context.identity.omitted))
        if self.last_turn is None or self.last_turn.missing != turn.missing:
            formatting.print_notices(format_missing(turn.missing))

    @property
    def status(self) -> str:
        """Return one line on the last turn: its frame (kind of input), the tokens of its context by layer (section),
        and the tokens spent; the name of the session before the first turn.
        """
        if (turn := self.last_turn) is None or (context := turn.context_summary) is None:
            return f"session {self.name}"
        layers = sorted(
            ((layer["used"], name) for name, layer in context.layers.items() if layer["used"]), reverse=True
        )
        parts = ", ".join(f"{name} {used:,}" for used, name in layers[:MAX_STATUS_LAYERS])
        spent = f"{turn.input_tokens:,} + {turn.output_tokens:,} tokens, {self.tokens_used:,} in all"
        return f"{context.frame['name']} | context {context.tokens:,} ({parts or 'empty'}) | {spent}"

    @property
    def last_context(self) -> ContextView | None:
        return self.last_turn.context_summary if self.last_turn else None

    def require_last_context(self) -> ContextView:
        """Return the context of the last turn. Raises InputError before the first one, and if it has none."""
        if context := self.require_last_turn().context_summary:
            return context
        raise InputError("The last answer has no context.", hint="Send the message again.")

    def require_last_turn(self) -> TurnView:
        """Return the last turn. Raises InputError before the first one."""
        if self.last_turn is None:
            raise InputError("There is no context yet.", hint="Send a message first.")
        return self.last_turn
