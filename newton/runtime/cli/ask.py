"""`newton ask` and `newton context`: one turn, and the context alone."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import datetime
from typing import Annotated

from cyclopts import Parameter

from newton.cognition.filters import Filters
from newton.cognition.request import Request
from newton.errors import InputError, ProviderError
from newton.ids import new_id
from newton.memory.hygiene import clean
from newton.memory.lookup import short
from newton.memory.memory import Kind
from newton.runtime.cli import show
from newton.runtime.cli.failing import told
from newton.runtime.cli.meeting import Daemon, TokenFile, met
from newton.runtime.cli.options import Agent, AsJson, FrameName, ProfileName, Until, When, session_name, settings
from newton.runtime.cli.printing import say
from newton.runtime.opening import opened
from newton.runtime.statuses import FAILED, OK
from newton.runtime.talk.told import Turned, contents


async def ask(
    question: str,
    *,
    session: str | None = None,
    frame: FrameName = None,
    debug: Annotated[
        bool,
        Parameter(
            negative=(),
            help="Say on standard error what of memory was injected, as comment lines of an event stream: passages"
            " (RAG_DEBUG), the web (SEARCH_DEBUG), all else (MEMORY_DEBUG), each item with its layer, tokens, score and"
            " first words. `newton why ID` tells more of an item.",
        ),
    ] = False,
    agent: Agent = None,
    daemon: Daemon = None,
    token_file: TokenFile = None,
    json: AsJson = False,
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
    chosen, session, question = settings(agent), session_name(session), clean(question, what="question")
    async with met(chosen, daemon, token_file, named=agent is not None) as partner:
        if frame:
            await partner.frame(frame)
        taken = partner.take(session or str(new_id()), question, frame=frame, whole=json or debug)
        answer = await (_collected(taken) if json else _printed(taken))
        await partner.settle()
    for line in answer.debug if debug else ():
        show.notice(line)
    if json:
        show.as_json(_plain(answer))
    return _ended(answer, json=json)


async def context(
    question: str,
    *,
    budget: Annotated[
        int | None,
        Parameter(
            help="The most tokens the context may have. All that fits comes in then; without it an input is allotted"
            " what it needs of the usual number, and what is far from it stays out."
        ),
    ] = None,
    frame: FrameName = None,
    profile: ProfileName = None,
    as_of: Annotated[
        datetime | None, When, Parameter(help="The context as it would have been then: a day, a time with zone, words.")
    ] = None,
    since: Annotated[
        datetime | None, When, Parameter(help="Only what happened or was said from then on, such as 'last week'.")
    ] = None,
    until: Annotated[datetime | None, Until, Parameter(help="Only what happened or was said up to its end.")] = None,
    kind: Annotated[
        list[Kind] | None, Parameter(negative=(), help="Only these kinds; may be given more than once.")
    ] = None,
    event_type: Annotated[list[str] | None, Parameter(negative=(), help="Of events only these types.")] = None,
    entity_type: Annotated[list[str] | None, Parameter(negative=(), help="Of entities only these types.")] = None,
    exclude: Annotated[
        list[str] | None, Parameter(negative=(), help="Not this memory; the end of its id does.")
    ] = None,
    additional: Annotated[str | None, Parameter("--with", help="Words of yours that stand in it too.")] = None,
    agent: Agent = None,
    json: AsJson = False,
) -> None:
    """Show the context that a model would be given for an input. The bundle is kept, the input is not remembered.

    Example: newton context "Should we use Redis for caching?" --since 2026-05-01 --kind fact --kind decision

    Parameters
    ----------
    question:
        The input.
    """
    chosen, question = settings(agent), clean(question, what="question")
    async with opened(chosen) as newton:
        _ensure_over(as_of, newton.scope.now())
        bundle = await newton.contexts.build(
            Request(
                agent_id=newton.scope.agent_id,
                input=question,
                tokens=chosen.context_tokens if budget is None else budget,
                adapt=budget is None,
                frame=frame,
                profile=profile or chosen.profile,
                as_of=as_of,
                filters=Filters(
                    since=since,
                    until=until,
                    kinds=frozenset(kind or ()),
                    event_types=frozenset(event_type or ()),
                    entity_types=frozenset(entity_type or ()),
                    exclude=frozenset([await newton.curation("cli").meant(one) for one in exclude or ()]),
                ),
                additional=additional and clean(additional, what="text"),
            )
        )
        if as_of is None:  # a look at the past is no use of what it shows
            await newton.verbs("cli").read([item.memory_id for item in bundle.items])
    if json:
        show.as_json(bundle.as_json())
    else:
        say(bundle.text, end="")
        show.missing(bundle.missing)
        show.unshown(len(bundle.identity.unshown), budget=budget)
        show.emptied(bundle)
        show.blank(bundle.blank)
        show.notice(f"\n{show.bundle_line(contents(bundle))}")


def _ensure_over(moment: datetime | None, now: datetime) -> None:
    if moment is not None and moment > now:
        raise InputError(f"{moment:%Y-%m-%d %H:%M} has not been yet.", hint="Leave --as-of out for the present.")


async def _printed(taken: AsyncGenerator[str | Turned]) -> Turned:
    answer: Turned | None = None
    async with aclosing(taken) as pieces:  # what was said is kept when nobody reads it any more, too
        async for piece in pieces:
            if isinstance(piece, Turned):
                answer = piece
            else:
                say(piece, end="", flush=True)
    assert answer is not None
    say()
    show.missing(answer.contents.missing)
    if not answer.quoted:  # what quotes says so itself
        show.blank(answer.contents.blank)
    show.unshown(answer.contents.identity.unshown)
    for wish in answer.proposed:
        show.notice(
            f"(Always? {show.wished(wish)}. `newton identity accept {short(wish.tenet_id)}` keeps it for good.)"
        )
    if answer.caveat:
        show.notice(f"({answer.caveat})")
    return answer


async def _collected(taken: AsyncGenerator[str | Turned]) -> Turned:
    pieces = [piece async for piece in taken]
    assert isinstance(pieces[-1], Turned)
    return pieces[-1]


def _plain(answer: Turned) -> dict[str, object]:
    return {
        "answer": answer.text,
        "degraded": answer.degraded,
        "quoted": answer.quoted,
        "failed": answer.failed,
        "refresh": {"how": answer.how, "because": answer.because},
        "proposed": [wish.model_dump(mode="json") for wish in answer.proposed],
        "context": answer.context,
    }


def _ended(answer: Turned, *, json: bool) -> int:
    """The exit status. A model that failed is said where it never mixes with the answer."""
    if not answer.failed:
        return OK
    if json:
        told(ProviderError(answer.degraded or "", hint=answer.shortcoming), FAILED, as_json=True)
    return FAILED
