"""Commands `newton remember` and `newton recall`: store and search memories."""

import shlex
from datetime import datetime
from typing import Annotated

from cyclopts import Parameter

from newton.agent.services.memories import FactDraft
from newton.errors import InputError
from newton.runtime.cli import formatting
from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.command_index import load_commands
from newton.runtime.cli.options import (
    AgentOption,
    EndTime,
    JsonOption,
    StartTime,
    load_settings,
)
from newton.runtime.cli.printing import say


async def remember(
    content: Annotated[str, Parameter(help="Text to store.")],
    *,
    fact: Annotated[
        bool,
        Parameter(negative=(), help="Store the text as a fact (the default), even if it is the name of a command."),
    ] = False,
    episode: Annotated[str | None, Parameter(help="Store the text as an episode with this title.")] = None,
    subject: Annotated[str | None, Parameter(help="Person or thing that the fact is about.")] = None,
    attribute: Annotated[str | None, Parameter(help="Attribute of the subject, such as 'lives in'.")] = None,
    confidence: Annotated[float | None, Parameter(help="Probability from 0 to 1 that the fact is true.")] = None,
    importance: Annotated[float | None, Parameter(help="Importance from 0 to 10.")] = None,
    at: Annotated[
        datetime | None, StartTime, Parameter(help="When the fact became true, or the episode began: a day or a time.")
    ] = None,
    until: Annotated[datetime | None, EndTime, Parameter(help="When the fact stops being true, if known.")] = None,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Store a fact or, with --episode TITLE, an episode (an experience). Repeating a fact confirms it.

    Example: newton remember --fact "We chose Postgres with pgvector over ChromaDB"
    """
    if fact and episode is not None:
        raise InputError("--fact and --episode exclude each other.", hint="Give --fact or --episode.")
    if not fact and episode is None:
        _reject_command_name(content.strip())
    async with open_agent(load_settings(agent), on_new_agent=formatting.print_new_agent) as newton:
        intake = newton.fact_intake("cli")
        if episode is not None:
            report = await intake.store_episode(content, title=episode, occurred_at=at)
        else:
            report = await intake.store(
                FactDraft(
                    content=content,
                    subject=subject,
                    attribute=attribute,
                    confidence=confidence,
                    importance=importance,
                    at=at,
                    until=until,
                )
            )
    if json:
        formatting.print_json(
            {
                "status": report.result.status,
                "memory_id": str(report.result.memory_id),
                "replaced": list(map(formatting.mention_to_json, report.replaced)),
                "contested": list(map(formatting.mention_to_json, report.contested)),
                "redacted": report.result.redacted,
                "warning": report.warning,
                "embedder_error": report.embedder_error,
            }
        )
        return
    say(formatting.format_remember_report(report))
    formatting.print_censor_warning(report.warning)
    if report.embedder_error:
        formatting.print_notice(
            f"(The memory is not embedded yet: {report.embedder_error}. Search finds it by its words only.)"
        )


def _reject_command_name(content: str) -> None:
    """Raise InputError if a text is the name of a command, because the user probably wants to run the command."""
    known = load_commands()
    if content not in known and not any(content in one.commands for one in known.values()):
        return
    command = f"newton {content}" if content in known else "newton help"
    raise InputError(
        f"{content!r} is the name of a command, not a fact.",
        hint=f"Run `{command}`. To store the word, run `newton remember --fact {shlex.quote(content)}`.",
    )
