"""`newton reembed`."""

from newton.errors import ConfigError
from newton.memory.reembedding import ReembedResult
from newton.memory.reembedding import reembed as made_anew
from newton.runtime.bootstrap import open_newton
from newton.runtime.cli import formatting
from newton.runtime.cli.memory.import_ import progress_bar
from newton.runtime.cli.options import AgentOption, JsonOption, load_settings
from newton.runtime.cli.printing import say
from newton.runtime.wiring import AgentServices


async def reembed_memories(*, agent: AgentOption = None, json: JsonOption = False) -> int:
    """Have the embedding model of your settings take over from the one by which memories are found until now.

    It makes a vector of every memory, beside the old ones, which answer meanwhile; then it takes over at once.
    Interrupted, it goes on where it was. A daemon does the same by itself, as its job `reembed`.

    Example: NEWTON_EMBEDDING_PROVIDER=openai newton reembed
    """
    async with open_newton(load_settings(agent)) as newton:
        done = await _run_reembedding(newton)
    if json:
        formatting.print_json({"embedded": done.embedded, "active": done.is_active, "down": done.stopped_by})
    elif done.is_active:
        say(
            f"{formatting.pluralize(done.embedded, 'memory', 'memories')} embedded "
            f"anew. The model of your settings answers."
        )
    else:
        say(f"{formatting.pluralize(done.embedded, 'memory', 'memories')} embedded anew, then: {done.stopped_by}")
        formatting.print_notice("The old model answers as before. Run it again to go on.")
    return 0 if done.is_active else 1


async def _run_reembedding(newton: AgentServices) -> ReembedResult:
    if newton.configured_embedder is None:
        raise ConfigError("No embedding model is set.", hint="Set NEWTON_EMBEDDING_PROVIDER to local or openai.")
    with progress_bar() as progress:
        task = progress.add_task("embedding", total=None)
        return await made_anew(
            newton.scope.db,
            newton.configured_embedder,
            agent_id=newton.scope.agent_id,
            now=newton.scope.now(),
            on_progress=lambda many: progress.advance(task, many),
        )
