"""The verbs that MCP clients are offered: a form, a hint of what it changes, and one call."""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, NamedTuple

from pydantic import Field

from newton.agent import tools
from newton.agent.tools import MOST_WORDS, Form, Told, read
from newton.brain.calibration.plain import plain
from newton.brain.calibration.report import calibration as computed
from newton.cognition.request import Request
from newton.content.frames import frame_named
from newton.errors import DatabaseError, InputError, NewtonError, NotFoundError
from newton.memory.lookup import short
from newton.runtime.access.tokens import Scope
from newton.runtime.wiring import Newton

ORIGIN = "mcp"
MOST_TOKENS = 100_000

Changes = Literal["nothing", "adds", "destroys"]
SCOPES: Mapping[Changes, Scope] = {"nothing": "read", "adds": "write", "destroys": "admin"}


class ToGetContext(Form):
    """The context for an input: what the memory holds that matters for it, chosen and ordered within a budget of
    tokens, with what must not be done first. Ask for it before you answer or begin work."""

    input: str = Field(max_length=MOST_WORDS, description="What the person said, or what is to be done.")
    budget: int | None = Field(
        None,
        ge=50,
        le=MOST_TOKENS,
        description="Tokens it may have at most; all that fits comes in then. Left out, it gets what the input needs.",
    )
    frame: str | None = Field(None, description="How to look at it, e.g. debug or planning; chosen when left out.")


class ToForget(Form):
    """Take one memory away for good. It cannot be undone; of a fact that is no longer so, remember the new one instead,
    which takes its place."""

    memory_id: str = Field(description="The id that a result shows, or its last letters.")
    because: str = Field(max_length=1_000, description="Why; only this stays.")


class ToCalibrate(Form):
    """How far the confidence stated in decisions can be trusted, from those whose outcome is known: Brier score, bias,
    reliability, and what to state instead."""

    category: str | None = Field(None, description="Only decisions of this category.")


class Verb(NamedTuple):
    """What it takes, what it changes, and what it does. Saying the same again changes nothing when it `repeats`."""

    form: type[Form]
    changes: Changes
    act: Callable[[Newton, Any], Awaitable[Told]]
    repeats: bool = False

    @property
    def description(self) -> str:
        return " ".join((self.form.__doc__ or "").split())

    @property
    def schema(self) -> dict[str, Any]:
        return {name: one for name, one in self.form.model_json_schema().items() if name != "description"}


async def called(newton: Newton, name: str, arguments: Mapping[str, object]) -> Told:
    """What came of it, or why nothing did, with what to do. Raises DatabaseError."""
    try:
        verb = VERBS.get(name)
        if verb is None:
            raise NotFoundError(f"There is no tool {name!r}.", hint=f"There are: {', '.join(VERBS)}.")
        return await verb.act(newton, read(verb.form, json.dumps(arguments)))
    except DatabaseError:
        raise
    except NewtonError as error:
        return refusal(error)


def refusal(error: NewtonError) -> Told:
    return Told({"error": error.what, "hint": error.hint, "code": error.code}, error=True)


def _tool(name: str) -> Callable[[Newton, Form], Awaitable[Told]]:
    async def act(newton: Newton, form: Form) -> Told:
        return await newton.toolbox(ORIGIN).use(name, form.model_dump_json())

    return act


async def _context(newton: Newton, form: ToGetContext) -> Told:
    if form.frame:
        frame_named(newton.frames, form.frame)
    request = Request(
        agent_id=newton.scope.agent_id,
        input=form.input,
        tokens=form.budget or newton.settings.context_tokens,
        adapt=form.budget is None,
        frame=form.frame,
    )
    bundle = await newton.contexts.build(request)
    fields = {
        "bundle_id": str(bundle.bundle_id),
        "frame": bundle.frame.frame,
        "tokens": bundle.tokens,
        "text": bundle.text,
        **({"missing": dict(bundle.missing)} if bundle.missing else {}),
    }
    return Told(fields)


async def _forget(newton: Newton, form: ToForget) -> Told:
    gone = await newton.curation(ORIGIN).forget([form.memory_id], derived=False, because=form.because)
    return Told({"forgotten": [short(one) for one in gone]})


async def _calibration(newton: Newton, form: ToCalibrate) -> Told:
    judged = await newton.deciding(ORIGIN).judged()
    known = sorted({one.category for one in judged})
    if form.category is not None and form.category not in known:
        listed = ", ".join(known) or "none"
        raise InputError(f"No judged decision is of category {form.category!r}.", hint=f"There are: {listed}.")
    return Told(plain(computed(one for one in judged if form.category in (None, one.category))))


VERBS: Mapping[str, Verb] = {
    "remember": Verb(tools.ToRemember, "adds", _tool("remember"), repeats=True),
    "recall": Verb(tools.ToRecall, "nothing", _tool("recall"), repeats=True),
    "context": Verb(ToGetContext, "nothing", _context, repeats=True),
    "expand": Verb(tools.ToExpand, "nothing", _tool("expand"), repeats=True),
    "decide": Verb(tools.ToDecide, "adds", _tool("decide")),
    "review": Verb(tools.ToReview, "adds", _tool("review")),
    "calibration": Verb(ToCalibrate, "nothing", _calibration, repeats=True),
    "forget": Verb(ToForget, "destroys", _forget),
}
