"""Command `newton sessions compact`: summaries that a model receives in place of older messages."""

from newton.memory.hygiene import clean_ref
from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.conversations.sessions import MaxTokensOption, SessionArgument
from newton.runtime.cli.options import AgentOption, StrategyOption, load_settings
from newton.runtime.cli.printing import say
from newton.runtime.cli.progress import print_progress
from newton.runtime.error_status import EXIT_FAILED, EXIT_OK


async def compact_session(
    session: SessionArgument,
    *,
    max_tokens: MaxTokensOption = None,
    strategy: StrategyOption = None,
    agent: AgentOption = None,
) -> int:
    """Replace older messages by summaries in what a model receives of a session, down to --max-tokens if possible.

    The stored messages do not change. `newton sessions expand` undoes a summary. If the limit is not reached, the
    reasons are printed and the exit status is 1.

    Example: newton sessions compact planning --max-tokens 8000
    """
    async with open_agent(load_settings(agent)) as newton:
        service = newton.sessions("cli", print_progress)
        ref = clean_ref(session, what="session")
        outcome = await service.compact(ref, max_tokens=max_tokens, strategy=strategy)
    tokens = outcome.after.tokens
    if saved := outcome.before.tokens - tokens:
        say(f"A model now receives {tokens:,} tokens of the session {session}, {saved:,} fewer.")
    elif outcome.is_reached:
        say(f"No compaction is due: a model receives {tokens:,} tokens of the session {session}.")
    if outcome.is_reached:
        return EXIT_OK
    say(f"{tokens:,} tokens are more than the {outcome.max_tokens:,} requested, because:")
    for obstacle in outcome.obstacles:
        say(f"  {obstacle.reason} ({obstacle.tokens:,} tokens)")
    return EXIT_FAILED
