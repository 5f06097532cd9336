"""`newton reembed`."""

from newton.errors import ConfigError
from newton.memory.reembedding import Reembedded
from newton.memory.reembedding import reembed as made_anew
from newton.runtime.cli import show
from newton.runtime.cli.importing import progress_bar
from newton.runtime.cli.options import Agent, AsJson, settings
from newton.runtime.cli.printing import say
from newton.runtime.opening import opened
from newton.runtime.wiring import Newton


async def reembed(*, agent: Agent = None, json: AsJson = False) -> int:
    """Have the embedding model of your settings take over from the one by which memories are found until now.

    It makes a vector of every memory, beside the old ones, which answer meanwhile; then it takes over at once.
    Interrupted, it goes on where it was. A daemon does the same by itself, as its job `reembed`.

    Example: NEWTON_EMBEDDING=openai newton reembed
    """
    async with opened(settings(agent)) as newton:
        done = await _done(newton)
    if json:
        show.as_json({"embedded": done.embedded, "active": done.active, "down": done.down})
    elif done.active:
        say(f"{show.counted(done.embedded, 'memory', 'memories')} embedded anew. The model of your settings answers.")
    else:
        say(f"{show.counted(done.embedded, 'memory', 'memories')} embedded anew, then: {done.down}")
        show.notice("The old model answers as before. Run it again to go on.")
    return 0 if done.active else 1


async def _done(newton: Newton) -> Reembedded:
    if newton.configured is None:
        raise ConfigError("No embedding model is set.", hint="Set NEWTON_EMBEDDING to local or openai.")
    with progress_bar() as progress:
        task = progress.add_task("embedding", total=None)
        return await made_anew(
            newton.scope.db,
            newton.configured,
            agent_id=newton.scope.agent_id,
            now=newton.scope.now(),
            seen=lambda many: progress.advance(task, many),
        )
