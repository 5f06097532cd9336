"""Command `newton reembed`: switch to another embedding model."""

from typing import TYPE_CHECKING

from newton.errors import ConfigError
from newton.memory.vectors import ReembedResult, reembed
from newton.operations.text_format import pluralize
from newton.runtime.cli import formatting
from newton.runtime.cli.command_agent import open_own_agent
from newton.runtime.cli.options import AgentOption, JsonOption, load_settings
from newton.runtime.cli.printing import say
from newton.runtime.cli.transfer.import_report import progress_bar

if TYPE_CHECKING:
    from newton.runtime.wiring import AgentServices


async def reembed_memories(*, agent: AgentOption = None, json: JsonOption = False) -> int:
    """Embed all memories with the configured embedding model, then switch search to it.

    Until all memories are embedded, search uses the old vectors. After an interruption, run the command again to
    continue. The scheduled job `reembed` of a daemon does the same.

    Example: NEWTON_EMBEDDING_PROVIDER=multilingual newton reembed
    """
    async with open_own_agent(load_settings(agent)) as newton:
        result = await _run_reembedding(newton)
    if json:
        formatting.print_json(
            {"embedded": result.embedded, "is_active": result.is_active, "embedder_error": result.stopped_by}
        )
    else:
        end = "Search uses the configured model now." if result.is_active else f"Stopped: {result.stopped_by}"
        say(f"Embedded {pluralize(result.embedded, 'memory', 'memories')}. {end}")
        if not result.is_active:
            formatting.print_notice("Search still uses the old model. Run the command again to continue.")
    return 0 if result.is_active else 1


async def _run_reembedding(newton: "AgentServices") -> ReembedResult:
    if newton.configured_embedder is None:
        raise ConfigError(
            "No embedding model is configured.", hint="Set NEWTON_EMBEDDING_PROVIDER to local, multilingual or openai."
        )
    with progress_bar() as progress:
        task = progress.add_task("embedding", total=None)
        return await reembed(
            newton.scope.db,
            newton.configured_embedder,
            agent_id=newton.scope.agent_id,
            now=newton.scope.now(),
            on_progress=lambda count: progress.advance(task, count),
        )
