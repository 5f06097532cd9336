"""`newton erase`."""

import shlex
from collections import Counter
from typing import Annotated

from cyclopts import Parameter

from newton.agent.erasing import Going
from newton.errors import InputError
from newton.runtime.cli import show
from newton.runtime.cli.options import Agent, AsJson, agreed, settings
from newton.runtime.cli.printing import say
from newton.runtime.opening import opened

SHOWN = 10


async def erase(
    *,
    subject: Annotated[str | None, Parameter(help="Whom: by name.")] = None,
    everything: Annotated[bool, Parameter(negative=(), help="The agent that --agent names, as a whole.")] = False,
    confirm: Annotated[str | None, Parameter(help="What the look at it said to give.")] = None,
    because: Annotated[str, Parameter(help="Why; it is kept beside the ids.")] = "asked for",
    yes: Annotated[bool, Parameter(negative=(), help="Do not ask.")] = False,
    agent: Agent = None,
    json: AsJson = False,
) -> None:
    """Take away all that somebody said or that is told of them, or an agent as a whole. There is no way back.

    With --subject it shows first what would go, with what to give as --confirm. Decisions stay as records without
    words, and their chain verifies. Backups and exports that were made before hold the words still.

    Example: newton erase --subject "Ana Berg"
    """
    if (subject is None) == (not everything) or (everything and agent is None):
        raise InputError("Whom?", hint="Give --subject NAME, or --agent NAME --everything.")
    if subject is not None and yes and confirm is None:
        raise InputError(
            "Nothing was erased: what would go is to be looked at first.",
            hint="Leave --yes out; it says then what to give as --confirm.",
        )
    if everything and not yes and not agreed(f"Take the agent {agent} away with all that it is?"):
        raise InputError("Nothing was erased.", hint="Answer with y, or give --yes.")
    async with opened(settings(agent), as_found=True, begin=False) as newton:
        erasing = newton.erasing("cli")
        if subject is None:
            await erasing.wipe()
            newton.notes.drop(newton.scope.agent_id)
            say(f"The agent {agent} has nothing left.")
            return
        found = await (
            erasing.going(subject) if confirm is None else erasing.erase(subject, token=confirm, because=because)
        )
    _tell(found, newton.settings.agent, subject, done=confirm is not None, json=json)


def _tell(found: Going, agent: str, subject: str, *, done: bool, json: bool) -> None:
    kinds, beside = Counter(kind for _, kind, _ in found.memories), Counter(kind for _, kind in found.beside)
    if json:
        counts = {**kinds, **beside, "decision": len(found.decisions), "identity": len(found.tenets)}
        show.as_json({"erased": done, "names": found.names, "counts": counts, "confirm": found.token})
        return
    told = [f"{number} of kind {kind}" for kind, number in sorted(kinds.items())]
    told += [show.counted(number, kind) for kind, number in sorted(beside.items())]
    told += [f"the words of {show.counted(len(found.decisions), 'decision')}"] if found.decisions else []
    told += [f"{show.counted(len(found.tenets), 'line')} of the identity"] if found.tenets else []
    say(f"{'Erased' if done else 'Would go'} ({', '.join(found.names)}): {', '.join(told)}.")
    if not done:
        for _, kind, micro in found.memories[:SHOWN]:
            say(f"  {kind:<10} {micro}")
        words = f"newton erase --agent {shlex.quote(agent)} --subject {shlex.quote(subject)} --confirm {found.token}"
        say(f"What was made from it goes too. `{words}` does it.")
