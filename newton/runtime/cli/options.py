"""Options and argument parsers shared by several commands."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Annotated

from cyclopts import Parameter, Token

from newton.clock import SystemClock
from newton.deadline import DEFAULT_TIMEOUT_SECONDS, RequestDeadline, check_timeout
from newton.errors import InputError
from newton.memory import hygiene
from newton.runtime.cli.command_context import current_context, current_terminal
from newton.runtime.cli.printing import visible
from newton.settings import Settings, load
from newton.text.time_expressions import find_time_ranges

AgentOption = Annotated[
    str | None,
    Parameter(
        "--agent", help="Name of the agent to use. Agents share no data. `--project NAME` selects a project of it."
    ),
]
JsonOption = Annotated[bool, Parameter("--json", negative=(), help="Print the result as JSON.")]
DebugOption = Annotated[
    bool,
    Parameter(
        "--debug",
        negative=(),
        help="Before the answer, print what the model is sent on standard error, as comment lines: the frame"
        " (FRAME_DEBUG), the tasks (TASK_DEBUG), the items of the context, which are passages (RAG_DEBUG), web results"
        " (SEARCH_DEBUG) and other memories (MEMORY_DEBUG), each with layer, tokens, score and first words, and how the"
        " conversation was shortened (COMPACTION_DEBUG). `newton prompt` shows the whole prompt.",
    ),
]
FrameOption = Annotated[
    str | None,
    Parameter("--frame", help="Frame (kind of input, such as debug) to use; if omitted, the input selects it."),
]
ModelOption = Annotated[
    str | None, Parameter("--model", help="Name of the chat model to use; `/model` in `newton chat` lists the names.")
]
StrategyOption = Annotated[
    str | None,
    Parameter("--strategy", help="Compaction preset or list of strategies (default: the setting compaction)."),
]
LimitOption = Annotated[int, Parameter("--limit", help="Maximum number of results.")]
TimeoutOption = Annotated[
    float | None,
    Parameter(
        "--timeout",
        help="Seconds to wait for the memory; then the command fails, because its result would not be complete"
        f" (default: {DEFAULT_TIMEOUT_SECONDS:g}).",
    ),
]
ReasonOption = Annotated[str, Parameter("--reason", help="Reason of the deletion, which is recorded.")]
YesOption = Annotated[bool, Parameter("--yes", negative=(), help="Do not ask for confirmation.")]


def start_deadline(timeout: float | None) -> RequestDeadline | None:
    """Return the deadline that the option --timeout sets; None without it. Raises InputError if it is out of range."""
    return None if timeout is None else RequestDeadline.after(check_timeout(timeout))


def load_settings(agent: str | None = None, **flags: object) -> Settings:
    """Load the settings of the caller. The command-line flags that are not None override other sources."""
    flags |= {"agent": agent, "project": current_context().project}
    given = {name: value for name, value in flags.items() if value is not None}
    settings = load(given, sources=current_context().sources)
    hygiene.clean_ref(settings.agent, what="agent")
    return settings


def check_session_name(session: str | None) -> str | None:
    """Return the cleaned name of a session, or None for None. Raises InputError for an invalid name."""
    return None if session is None else hygiene.clean_ref(session, what="session")


def check_strategy(strategy: str | None) -> str | None:
    """Return a compaction preset or list of strategies unchanged. Raises InputError for an invalid one."""
    if strategy is not None:
        # late, because most commands have no such option and start twice as fast without it
        import_module("newton.dialogue.compaction.presets").parse_request_preset(strategy)
    return strategy


def parse_time(text: str, *, now: datetime, use_end: bool = False) -> datetime:
    """Parse a day, a time with its zone, or a phrase such as "last week".

    Return the start of the day or period or, with `use_end`, its end. Raises InputError for any other text, and for a
    time without a zone.
    """
    text = text.strip()
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return _parse_time_phrase(text, now=now, use_end=use_end)
    if time.tzinfo is None and ":" not in text:
        return hygiene.validate_time(time.replace(tzinfo=UTC)) + timedelta(days=int(use_end))
    return hygiene.validate_time(time)


def _parse_time_phrase(text: str, *, now: datetime, use_end: bool) -> datetime:
    phrase = " ".join(text.lower().split())
    for candidate in (phrase, f"in {phrase}"):  # "in" for a month or a year alone
        ranges = find_time_ranges(candidate, now=now)
        if ranges and ranges[0].phrase == candidate:
            time = ranges[0].end if use_end else ranges[0].start
            if time is not None:
                return hygiene.validate_time(time)
    raise InputError(
        f"{text!r} is not a valid {'end time' if use_end else 'time'}.",
        hint="Write a day as 2026-01-31, a time as 2026-03-01T09:00:00Z, or words: yesterday, last week, March 2024.",
    )


def _parse_start(_: object, tokens: Sequence[Token]) -> datetime:
    return parse_time(tokens[0].value, now=SystemClock().now())


def _parse_end(_: object, tokens: Sequence[Token]) -> datetime:
    return parse_time(tokens[0].value, now=SystemClock().now(), use_end=True)


# Parameters that parse a time; of a period, its start or its end.
StartTime = Parameter(converter=_parse_start)
EndTime = Parameter(converter=_parse_end)


def require_yes(question: str, *, yes: bool) -> None:
    """Ask the user to confirm, unless `yes`. Raises InputError if the user declines or cannot be asked."""
    if yes:
        return
    if not current_terminal().asks():
        raise InputError(
            "The command needs confirmation; nothing was changed.", hint="Repeat the command with --yes to confirm."
        )
    ask_to_confirm(question)


def ask_to_confirm(question: str) -> None:
    """Ask the user a yes-or-no question. Raises InputError unless the answer is y or yes."""
    if current_terminal().ask(visible(f"{question} [y/N] ")).strip().lower() not in {"y", "yes"}:
        raise InputError("Cancelled; nothing was changed.", hint="Run the command again and answer y to confirm.")
