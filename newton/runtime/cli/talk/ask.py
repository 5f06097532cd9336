"""`newton ask` and `newton context`: one turn, and the context alone."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import datetime
from typing import Annotated

from cyclopts import Parameter

from newton.cognition.request import ContextBuildRequest, ContextFilters
from newton.errors import InputError, ProviderError
from newton.ids import new_id
from newton.memory.hygiene import clean_text
from newton.memory.lookup import short_id
from newton.memory.memory import Kind
from newton.runtime.bootstrap import open_newton
from newton.runtime.chat_backend.view_models import TurnView, to_context_view
from newton.runtime.cli import formatting
from newton.runtime.cli.connection import DaemonOption, TokenFileOption, open_chat_backend
from newton.runtime.cli.errors import print_error
from newton.runtime.cli.options import (
    AgentOption,
    EndTime,
    FrameOption,
    JsonOption,
    ProfileOption,
    StartTime,
    check_session_name,
    load_settings,
)
from newton.runtime.cli.printing import say
from newton.runtime.error_status import EXIT_FAILED, EXIT_OK


async def ask(
    question: str,
    *,
    session: str | None = None,
    frame: FrameOption = None,
    debug: Annotated[
        bool,
        Parameter(
            negative=(),
            help="Say on standard error what of memory was injected, as comment lines of an event stream: passages"
            " (RAG_DEBUG), the web (SEARCH_DEBUG), all else (MEMORY_DEBUG), each item with its layer, tokens, score and"
            " first words. `newton why ID` tells more of an item.",
        ),
    ] = False,
    agent: AgentOption = None,
    daemon: DaemonOption = None,
    token_file: TokenFileOption = None,
    json: JsonOption = False,
) -> int:
    """Ask one question and get one answer. It is remembered.

    Exits with 1 when the model that is set did not answer to the end; what memory says is printed all the same.

    Example: newton ask "What did we decide about the database?"

    Example: newton ask "What did we decide about the database?" --daemon http://127.0.0.1:8700

    Parameters
    ----------
    question:
        What you want to know.
    session:
        Go on with the conversation of this name; without it the question begins a new one.
    """
    chosen, session, question = load_settings(agent), check_session_name(session), clean_text(question, what="question")
    async with open_chat_backend(chosen, daemon, token_file, is_agent_explicit=agent is not None) as partner:
        if frame:
            await partner.resolve_frame(frame)
        taken = partner.run_turn(session or str(new_id()), question, frame=frame, include_context=json or debug)
        answer = await (_collect_answer(taken) if json else _print_answer(taken))
        await partner.process_pending()
    for line in answer.debug_lines if debug else ():
        formatting.print_notice(line)
    if json:
        formatting.print_json(_answer_to_json(answer))
    return _exit_status(answer, json=json)


async def show_context(
    question: str,
    *,
    tokens: Annotated[
        int | None,
        Parameter(
            help="Maximum tokens. If set, the context is filled up to it; if not, Newton picks a size and leaves out"
            " weak matches."
        ),
    ] = None,
    frame: FrameOption = None,
    profile: ProfileOption = None,
    as_of: Annotated[
        datetime | None,
        StartTime,
        Parameter(help="The context as it would have been then: a day, a time with zone, words."),
    ] = None,
    since: Annotated[
        datetime | None, StartTime, Parameter(help="Only what happened or was said from then on, such as 'last week'.")
    ] = None,
    until: Annotated[datetime | None, EndTime, Parameter(help="Only what happened or was said up to its end.")] = None,
    kind: Annotated[
        list[Kind] | None, Parameter(negative=(), help="Only these kinds; may be given more than once.")
    ] = None,
    event_type: Annotated[list[str] | None, Parameter(negative=(), help="Of events only these types.")] = None,
    entity_type: Annotated[list[str] | None, Parameter(negative=(), help="Of entities only these types.")] = None,
    exclude: Annotated[
        list[str] | None, Parameter(negative=(), help="Not this memory; the end of its id does.")
    ] = None,
    additional: Annotated[str | None, Parameter("--with", help="Words of yours that stand in it too.")] = None,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Show the context that a model would be given for an input. The bundle is kept, the input is not remembered.

    Example: newton context "Should we use Redis for caching?" --since 2026-05-01 --kind fact --kind decision

    Parameters
    ----------
    question:
        The input.
    """
    chosen, question = load_settings(agent), clean_text(question, what="question")
    async with open_newton(chosen) as newton:
        _ensure_past(as_of, newton.scope.now())
        bundle = await newton.context_builder.build(
            ContextBuildRequest(
                agent_id=newton.scope.agent_id,
                input=question,
                tokens=chosen.context_tokens if tokens is None else tokens,
                adaptive_budget=tokens is None,
                frame=frame,
                profile=profile or chosen.profile,
                as_of=as_of,
                filters=ContextFilters(
                    since=since,
                    until=until,
                    kinds=frozenset(kind or ()),
                    event_types=frozenset(event_type or ()),
                    entity_types=frozenset(entity_type or ()),
                    exclude=frozenset([await newton.curation("cli").resolve(one) for one in exclude or ()]),
                ),
                additional=additional and clean_text(additional, what="text"),
            )
        )
        if as_of is None:  # a look at the past is no use of what it shows
            await newton.memories("cli").record_access([item.memory_id for item in bundle.items])
    if json:
        formatting.print_json(bundle.as_json())
    else:
        say(bundle.text, end="")
        formatting.print_missing_sources(bundle.missing)
        formatting.print_hidden_identity_lines(len(bundle.identity.omitted), budget=tokens)
        formatting.print_empty_filters(bundle)
        formatting.print_unknown_times(bundle.empty_time_ranges)
        formatting.print_notice(f"\n{formatting.format_bundle_line(to_context_view(bundle))}")


def _ensure_past(moment: datetime | None, now: datetime) -> None:
    if moment is not None and moment > now:
        raise InputError(f"{moment:%Y-%m-%d %H:%M} has not been yet.", hint="Leave --as-of out for the present.")


async def _print_answer(stream: AsyncGenerator[str | TurnView]) -> TurnView:
    answer: TurnView | None = None
    async with aclosing(stream) as pieces:  # what was said is kept when nobody reads it any more, too
        async for piece in pieces:
            if isinstance(piece, TurnView):
                answer = piece
            else:
                say(piece, end="", flush=True)
    assert answer is not None
    say()
    formatting.print_missing_sources(answer.context_summary.missing)
    if not answer.from_memory:  # what quotes says so itself
        formatting.print_unknown_times(answer.context_summary.empty_time_ranges)
    formatting.print_hidden_identity_lines(answer.context_summary.identity.omitted)
    for wish in answer.proposals:
        formatting.print_notice(
            f"(Always? {formatting.format_proposal(wish)}. `newton identity accept "
            f"{short_id(wish.line_id)}` keeps it for good.)"
        )
    if answer.warning:
        formatting.print_notice(f"({answer.warning})")
    return answer


async def _collect_answer(stream: AsyncGenerator[str | TurnView]) -> TurnView:
    pieces = [piece async for piece in stream]
    assert isinstance(pieces[-1], TurnView)
    return pieces[-1]


def _answer_to_json(answer: TurnView) -> dict[str, object]:
    return {
        "answer": answer.text,
        "degraded": answer.degraded,
        "from_memory": answer.from_memory,
        "failed": answer.failed,
        "context_source": answer.context_source,
        "context_reason": answer.context_reason,
        "proposals": [wish.model_dump(mode="json") for wish in answer.proposals],
        "context": answer.context,
    }


def _exit_status(answer: TurnView, *, json: bool) -> int:
    """The exit status. A model that failed is said where it never mixes with the answer."""
    if not answer.failed:
        return EXIT_OK
    if json:
        print_error(ProviderError(answer.degraded or "", hint=answer.missing_model_note), EXIT_FAILED, as_json=True)
    return EXIT_FAILED
