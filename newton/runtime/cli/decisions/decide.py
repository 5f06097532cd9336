"""Command `newton decide`, which asks for the fields of a decision in a terminal if its confidence is not given."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from inspect import Parameter, signature
from typing import Annotated, Any, get_args

from newton.agent.decision_inputs import REASON_KINDS
from newton.brain.drafts import DecisionPreview, Stakes, format_quality
from newton.clock import SystemClock
from newton.content.frames import get_frame
from newton.errors import InputError
from newton.operations.caller import OperationCaller
from newton.operations.decisions import drafts
from newton.operations.decisions.formats import format_check
from newton.operations.declaration import OPERATIONS
from newton.operations.runner import parse_arguments, run_operation
from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.command_context import current_terminal, require_own_process
from newton.runtime.cli.operation_commands import build_command, to_arguments
from newton.runtime.cli.options import load_settings, parse_time
from newton.runtime.cli.printing import say, visible

ASKED = ("description", "confidence")
_record = build_command(drafts, "record_decision")
_signature = signature(_record)


async def record_decision(*args: Any, **fields: Any) -> int:
    bound = _signature.bind_partial(*args, **fields)
    bound.apply_defaults()
    given: dict[str, Any] = {"confidence": None, **bound.arguments}
    given["description"] = (given.get("description") or "").strip()
    if missing := [name for name in ASKED if given[name] in (None, "")]:
        if not current_terminal().asks():
            hint = 'newton decide "WHAT" --confidence 0.8 --reason KIND:TEXT'
            raise InputError(f"The {missing[0]} is missing.", hint=hint)
        require_own_process()
        given["description"] = given["description"] or _ask("What is decided? ")
        if given["confidence"] is None:
            given |= await _ask_for_fields(given)
    return await _record(**given)


async def _ask_for_fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """Ask for the fields that are not given; the confidence, after the checks of a draft, is asked for last.

    Raises InputError if the user does not want to record the decision.
    """
    async with open_agent(load_settings(given["agent"])) as newton:
        caller = OperationCaller(newton=newton, origin="cli", speaker="person")
        frame = get_frame(newton.frames, given["frame"]) if given["frame"] else None
        category = given["category"] or (frame.category if frame else "process")
        stakes = given["stakes"] or (frame.default_stakes if frame else "medium")
        fields = dict(given)
        fields["category"] = _ask(f"Category? [{category}] ", category)
        fields["stakes"] = _ask(f"Stakes: {', '.join(get_args(Stakes))}? [{stakes}] ", stakes)
        fields["context"] = given["context"] or _ask("Situation? ", "") or None
        say(format_check(await _check(caller, {**fields, "confidence": 0.5})))
        fields["alternative"] = given["alternative"] or list(
            _ask_repeatedly("Alternative considered? (an empty line ends the list) ")
        )
        kinds = ", ".join(REASON_KINDS)
        fields["reason"] = given["reason"] or list(_ask_repeatedly(f"Reason as KIND:TEXT? Kinds: {kinds}: "))
        fields["expected"] = given["expected"] or _ask("Expected outcome? ", "") or None
        due = "When to review the outcome, such as 2026-12-01? "
        fields["review_due"] = given["review_due"] or _ask_date(due)
        fields["confidence"] = _ask_number("Confidence: the probability of success, from 0 to 1? ")
        check = await _check(caller, fields)
    messages = [f"Guardrail: {result.message}" for result in check.guardrails if result.message]
    say("\n".join(messages) or format_quality(check.quality_parts))
    if _ask("Record it? [Y/n] ", "y").lower() not in {"y", "yes"}:
        raise InputError("Nothing was recorded.", hint="Run `newton decide` again to record a decision.")
    return fields


async def _check(caller: OperationCaller, fields: Mapping[str, Any]) -> DecisionPreview:
    preview = OPERATIONS["preview"]
    given = parse_arguments(preview, to_arguments(preview, fields))
    return (await run_operation(preview, given, caller)).result


def _ask(question: str, default: str | None = None) -> str:
    """Return the user's answer, or `default` for an empty one. Without a default, ask until there is an answer."""
    while not (answer := current_terminal().ask(visible(question)).strip()) and default is None:
        pass
    return answer or default or ""


def _ask_repeatedly(question: str) -> Iterator[str]:
    while answer := _ask(question, ""):
        yield answer


def _ask_date(question: str) -> datetime | None:
    while answer := _ask(question, ""):
        try:
            return parse_time(answer, now=SystemClock().now())
        except InputError as error:
            say(f"{error.what} {error.hint} An empty answer skips this question.")
    return None


def _ask_number(question: str) -> float:
    while True:
        try:
            return float(_ask(question))
        except ValueError:
            say("The answer is not a number. Write a number such as 0.8.")


def _to_asked(parameter: Parameter) -> Parameter:
    """Return a parameter that may be left out, because the command asks for it."""
    plain, *described = get_args(parameter.annotation)
    return parameter.replace(default=None, annotation=Annotated[plain | None, *described])


record_decision.__doc__ = (_record.__doc__ or "").replace(
    "Example:", "In a terminal, the command asks for each field if --confidence is not given.\n\n    Example:"
)
record_decision.__signature__ = _signature.replace(  # pyrefly: ignore[missing-attribute]  # cyclopts reads it
    parameters=[_to_asked(one) if one.name in ASKED else one for one in _signature.parameters.values()]
)
