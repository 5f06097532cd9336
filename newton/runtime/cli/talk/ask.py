"""The command `newton ask`, which answers one question."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated

from cyclopts import Parameter

from newton.agent.loop.fallback import NOTHING_FOUND
from newton.cognition.assembly.sections import format_missing
from newton.errors import InputError, ProviderError
from newton.ids import new_id
from newton.memory.hygiene import clean_text
from newton.memory.lookup import short_id
from newton.operations.contexts.context_text import format_hidden_lines, format_unknown_times
from newton.operations.text_format import format_redactions
from newton.runtime.chat_backend.protocol import DebugLines, run_named
from newton.runtime.chat_backend.view_models import TurnView
from newton.runtime.cli import formatting
from newton.runtime.cli.command_context import current_terminal
from newton.runtime.cli.connection import open_chat_backend
from newton.runtime.cli.daemon_access import DaemonOption, TokenFileOption
from newton.runtime.cli.options import (
    AgentOption,
    DebugOption,
    FrameOption,
    JsonOption,
    ModelOption,
    StrategyOption,
    check_session_name,
    check_strategy,
    load_settings,
)
from newton.runtime.cli.printing import print_error
from newton.runtime.cli.status_line import clear_status
from newton.runtime.cli.talk.reply_printer import ReplyPrinter
from newton.runtime.error_status import EXIT_FAILED, EXIT_OK, EXIT_REFUSED


async def ask(
    input: Annotated[
        str | None, Parameter(help="Question or instruction (default: what a pipe gives on standard input).")
    ] = None,
    *,
    session: Annotated[str | None, Parameter(help="Session to continue (default: a new one).")] = None,
    frame: FrameOption = None,
    model: ModelOption = None,
    strategy: StrategyOption = None,
    private: Annotated[
        bool, Parameter(negative=(), help="Store nothing of the question and the answer. Memory is still used.")
    ] = False,
    debug: DebugOption = False,
    agent: AgentOption = None,
    daemon: DaemonOption = None,
    token_file: TokenFileOption = None,
    json: JsonOption = False,
) -> int:
    """Ask one question and print the answer. Both are stored, unless --private is given.

    If the configured model fails, the answer quotes memory and the exit status is 1.

    Example: newton ask "What did we decide about the database?"

    Example: newton ask "What did we decide about the database?" --daemon http://127.0.0.1:8700

    Example: cat question.txt | newton ask
    """
    given = await _read_pipe() if input is None else input
    settings, session, text = load_settings(agent), check_session_name(session), clean_text(given, what="input")
    async with open_chat_backend(settings, daemon, token_file, is_agent_explicit=agent is not None) as backend:
        if frame:
            await run_named(backend, "frame", name=frame)
        if model:
            await backend.select_model(model)
        turn = backend.run_turn(
            session or str(new_id()),
            text,
            frame=frame,
            strategy=check_strategy(strategy),
            include_context=json or debug,
            private=() if private else None,
        )
        pieces = _print_debug_lines(turn, debug=debug)
        answer = await (_collect_answer(pieces) if json else _print_answer(pieces, has_model=backend.model is not None))
        await backend.learn()
        await backend.process_pending()
    if json:
        formatting.print_json(_answer_to_json(answer))
    return _exit_status(answer, json=json)


async def _read_pipe() -> str:
    """Return what a pipe gives on standard input. Raises InputError if a person would have to type it."""
    if current_terminal().asks():
        raise InputError("The command requires a question.", hint='Write newton ask "QUESTION", or pipe it in.')
    return (await asyncio.to_thread(current_terminal().read_input)).strip()


async def _print_debug_lines(
    stream: AsyncGenerator[str | DebugLines | TurnView], *, debug: bool
) -> AsyncGenerator[str | TurnView]:
    """Yield the pieces of the reply and its result; print the debug lines before them, if `debug`."""
    async with aclosing(clear_status(stream)) as pieces:  # closing it stores the reply so far
        async for piece in pieces:
            if not isinstance(piece, DebugLines):
                yield piece
            elif debug:
                formatting.print_notices(piece.lines)


async def _print_answer(stream: AsyncGenerator[str | TurnView], *, has_model: bool) -> TurnView:
    """Print the reply while it is received, then the notices on the turn; return its result."""
    answer: TurnView | None = None
    printer = ReplyPrinter(is_markdown=has_model)
    with printer.open():
        async with aclosing(stream) as pieces:
            async for piece in pieces:
                if isinstance(piece, TurnView):
                    answer = piece
                else:
                    printer.write(piece)
        printer.finish()
    assert answer is not None
    _print_context_notices(answer)
    formatting.print_receipt(answer, undo="`newton retract ID`" if answer.learnt else "")
    formatting.print_rule_changes(answer.rules)
    for proposal in answer.proposals:
        command = f"`newton identity accept {short_id(proposal.line_id)}`"
        formatting.print_notice(
            f"(Should this always apply? {formatting.format_proposal(proposal)}. {command} adds it to the identity.)"
        )
    if answer.redacted:
        formatting.print_notice(f"({format_redactions(answer.redacted)})")
    if answer.warning:
        formatting.print_notice(f"({answer.warning})")
    if answer.text == NOTHING_FOUND:
        formatting.print_notice("(`newton remember TEXT` stores a fact, `newton ingest PATH` reads documents.)")
    return answer


def _print_context_notices(answer: TurnView) -> None:
    formatting.print_notices(format_missing(answer.missing))
    if context := answer.context_summary:
        if not answer.from_memory:  # a quoting answer contains it
            formatting.print_notices(format_unknown_times(context.empty_time_ranges))
        formatting.print_notices(format_hidden_lines(context.identity.omitted))


async def _collect_answer(stream: AsyncGenerator[str | TurnView]) -> TurnView:
    pieces = [piece async for piece in stream]
    assert isinstance(pieces[-1], TurnView)
    return pieces[-1]


def _answer_to_json(answer: TurnView) -> dict[str, object]:
    return {
        "text": answer.text,
        "degraded": answer.degraded,
        "redacted": answer.redacted,
        "from_memory": answer.from_memory,
        "failed": answer.failed,
        "forbidden": answer.forbidden,
        "context_source": answer.context_source,
        "context_reason": answer.context_reason,
        "missing": answer.missing,
        "rules": [change.model_dump(mode="json") for change in answer.rules],
        "proposals": [proposal.model_dump(mode="json") for proposal in answer.proposals],
        "context": answer.context,
    }


def _exit_status(answer: TurnView, *, json: bool) -> int:
    """Return the exit status: 2 if a censor (a prohibition) blocked the turn, 1 if the model failed, else 0.

    If the model failed and the output is JSON, print the error on standard error.
    """
    if answer.forbidden:
        return EXIT_REFUSED
    if not answer.failed:
        return EXIT_OK
    if json:
        print_error(ProviderError(answer.degraded or "", hint=answer.missing_model_note), EXIT_FAILED, as_json=True)
    return EXIT_FAILED
