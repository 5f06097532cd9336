"""The one way to run an operation: check, transaction with the stored response, and what follows a write."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, cast
from uuid import UUID

from pydantic_core import to_jsonable_python

from newton.agent.inputs import ToolInput, parse_json
from newton.db.pool import Tx
from newton.heart.identity.standing_wishes import detect_instructions
from newton.heart.speakers import TargetStatement
from newton.memory.lookup import short_id
from newton.memory.memory import UNTRUSTED_TIERS
from newton.operations.caller import OperationCaller
from newton.operations.declaration import TARGET, Operation
from newton.operations.foreign_text import limit_trust, note_foreign_text
from newton.operations.results import CursorPage, ItemList

LINE, CONTENT = "line", "content"  # the parameters of the message that a change cites, and of the new text
SOURCE = "source"  # the parameter that says where a text is from
REASON = "reason"  # the one text that is stored of what deletes or ends something
TOKEN = "token"  # the parameter that confirms a preview
INPUT_HINT = "Call it again with valid input."


class ResponseRecorder(Protocol):
    """Finds and stores the response of a request that may be repeated, in the transaction of its effect."""

    async def find(self, tx: Tx) -> str | None:
        """Return the stored response of the request; if there is none, claim the request until the transaction ends."""
        ...

    async def save(self, tx: Tx, response: str) -> None:
        """Store the response, which must not contain text of a person."""
        ...


class OperationOutcome(NamedTuple):
    """The outcome of a call: its result or, for a repeated request, the stored response as JSON (`replayed`).

    `warning` is that of a censor which matches the text of a model.
    """

    result: Any
    replayed: str | None = None
    warning: str | None = None


def parse_arguments(operation: Operation, arguments: Mapping[str, object]) -> ToolInput:
    """Check the arguments of an operation; return them as its input. Raises InputError that names one invalid field."""
    return parse_json(operation.input_model, json.dumps(arguments, default=str), hint=INPUT_HINT)


async def run_operation(
    operation: Operation, given: ToolInput, caller: OperationCaller, *, recorder: ResponseRecorder | None = None
) -> OperationOutcome:
    """Run an operation with checked input.

    What writes runs in one transaction with its events, its recorded response and the ruling on who may do it, which
    raises ForbiddenError. Before it, text of a caller who is no person is checked by the censors, which raises
    CensorError, and the operation's `prepare` is called, unless the response of the same request is stored. After it,
    new text is made searchable. What takes a token only reads without it: it returns a preview with the token. What a
    model writes has at most the trust of what it was given before.
    """
    fields = operation.bind({name: getattr(given, name) for name in type(given).model_fields})
    if operation.effect == "reads" or (TOKEN in fields and fields[TOKEN] is None):
        caller = caller if operation.effect == "reads" else await _authorize(operation, caller, fields)
        result = await operation.run(caller, **fields)
        await note_foreign_text(caller, fields, result)
        return OperationOutcome(result)
    text = given.all_text()
    is_proposed = operation.options.get("proposes_rules") and bool(detect_instructions(text))
    caller = await limit_trust(caller, fields, "" if is_proposed else text)
    prepare, prepared = operation.options.get("prepare"), list[Any]()
    if prepare and recorder:
        async with caller.scope.transaction() as tx:
            if stored := await recorder.find(tx):
                return OperationOutcome(None, replayed=stored)
    warning = await _check_text(operation, given, caller)
    if prepare:
        prepared.append(await prepare(caller, **fields))
    stored, result = await _write(operation, caller, prepared, fields, recorder)
    if stored is not None:
        return await _replay(operation, stored, caller, fields)
    return OperationOutcome(await _finish(operation, result, caller, fields), warning=warning)


async def _write(
    operation: Operation,
    caller: OperationCaller,
    prepared: Sequence[Any],
    fields: Mapping[str, Any],
    recorder: ResponseRecorder | None,
) -> tuple[str | None, Any]:
    """Run an operation in one transaction; return (None, its result).

    If the response of the same request is stored, return (this response, None) without running it.
    """
    async with caller.scope.transaction() as tx:
        if recorder and (stored := await recorder.find(tx)):
            return stored, None
        caller = await _authorize(operation, caller.within(tx), fields)
        result = await operation.run(caller, *prepared, **fields)
        if recorder:
            await recorder.save(tx, operation.result_type.dump_json(result).decode())
        return None, result


async def _authorize(operation: Operation, caller: OperationCaller, fields: Mapping[str, Any]) -> OperationCaller:
    """Return the caller with the ruling on the operation. Raises ForbiddenError if it is refused."""
    targets: Sequence[str | TargetStatement] = [fields[TARGET]] if TARGET in fields else []
    act, list_targets = operation.act, operation.options.get("list_targets")
    if list_targets:
        targets = await list_targets(caller, **fields)
        act = act if targets else "state"
    return await caller.authorize(act, targets, line=fields.get(LINE), text=fields.get(CONTENT) or "")


async def _finish(operation: Operation, result: Any, caller: OperationCaller, fields: Mapping[str, Any]) -> Any:
    """Do what follows a stored write, such as embedding new text; return the result with what that found."""
    report, error = operation.options.get("report"), None
    if operation.effect == "adds" and report:
        error = (await caller.newton.maintenance(caller.origin).process_pending()).stopped_by
    elif operation.effect == "adds":
        await caller.newton.process_written(caller.origin)
    return await report(caller, result, error, **fields) if report else result


async def _replay(
    operation: Operation, stored: str, caller: OperationCaller, fields: Mapping[str, Any]
) -> OperationOutcome:
    """Return the stored response of a repeated request, completed by the operation's `report` as the first one was."""
    if report := operation.options.get("report"):
        result = await report(caller, operation.result_type.validate_json(stored), None, **fields)
        stored = operation.result_type.dump_json(result).decode()
    return OperationOutcome(None, replayed=stored)


async def _check_text(operation: Operation, given: ToolInput, caller: OperationCaller) -> str | None:
    """Compare text that is to be stored with the censors; return the warning of one, None without one.

    Raises CensorError if one blocks it. A person's own text is no act of the agent, so it is not blocked. A text whose
    `source` is a tool or a page is no person's, whoever passes it on.
    """
    is_own = getattr(given, SOURCE, None) not in UNTRUSTED_TIERS
    text = given.all_text() if operation.effect != "destroys" else getattr(given, REASON, None)
    if not text:
        return None
    return await caller.gate.check_write(text, by=caller.speaker if is_own else "model")


def to_data(operation: Operation, result: object, *, shortens_ids: bool = False) -> Any:
    """Return the result as JSON values. With `shortens_ids`, for models: ids by their last digits, and no nulls."""
    data = operation.result_type.dump_python(result)
    return to_jsonable_python(_shorten(data) if shortens_ids else data)


def _shorten(value: object) -> object:
    """Return a value with the last digits of ids in place of the ids, and without nulls in objects, at any depth."""
    match value:
        case UUID():
            return short_id(value)
        case dict():
            known = cast("dict[str, object]", value)
            return {key: _shorten(one) for key, one in known.items() if one is not None}
        case list() | tuple():
            return [_shorten(one) for one in cast("list[object]", value)]
        case _:
            return value


def list_notices(operation: Operation, result: Any, name_commands: Callable[[str], str] = str) -> list[str]:
    """Return the lines that a command prints beside a result. `name_commands` renames commands in them."""
    return [name_commands(one) for one in operation.options.get("notices", lambda _: ())(result)]


def format_result(
    operation: Operation, result: Any, name_commands: Callable[[str], str] = str, *, columns: int | None = None
) -> str:
    """Return a result as text for people; the items of a list are one below the other.

    `name_commands` replaces commands in what the declaration says by their names in the interface of the caller.
    `columns` is the width of a terminal.
    """
    format_one = operation.options.get("text", str)
    if not isinstance(result, ItemList | CursorPage):
        text = format_one(result)
        return name_commands(text) if operation.options.get("names_commands") else text
    listed = cast("ItemList[object] | CursorPage[object]", result)
    if not listed.items:
        return name_commands(operation.options.get("empty", "Nothing found."))
    table = operation.options.get("table")
    lines = [table(listed, columns)] if table else [format_one(one) for one in listed.items]
    if advice := operation.options.get("advice"):
        lines += ["", name_commands(advice)]
    return "\n".join(lines)
