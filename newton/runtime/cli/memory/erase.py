"""`newton erase`."""

import shlex
from collections import Counter
from typing import Annotated

from cyclopts import Parameter

from newton.agent.services.erasure import ErasurePlan
from newton.errors import InputError
from newton.runtime.bootstrap import open_newton
from newton.runtime.cli import formatting
from newton.runtime.cli.options import AgentOption, JsonOption, ask_confirmation, load_settings
from newton.runtime.cli.printing import say

MAX_SHOWN_MEMORIES = 10


async def erase_subject_or_agent(
    *,
    subject: Annotated[str | None, Parameter(help="Whom: by name.")] = None,
    everything: Annotated[bool, Parameter(negative=(), help="The agent that --agent names, as a whole.")] = False,
    confirm: Annotated[str | None, Parameter(help="What the look at it said to give.")] = None,
    reason: Annotated[str, Parameter(help="Why; it is kept beside the ids.")] = "asked for",
    yes: Annotated[bool, Parameter(negative=(), help="Do not ask.")] = False,
    agent: AgentOption = None,
    json: JsonOption = False,
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
    if everything and not yes and not ask_confirmation(f"Take the agent {agent} away with all that it is?"):
        raise InputError("Nothing was erased.", hint="Answer with y, or give --yes.")
    async with open_newton(load_settings(agent), skip_procedure_sync=True, create_agent=False) as newton:
        erasing = newton.erasure("cli")
        if subject is None:
            await erasing.erase_agent()
            newton.chain_heads.delete(newton.scope.agent_id)
            say(f"The agent {agent} has nothing left.")
            return
        found = await (
            erasing.plan(subject) if confirm is None else erasing.erase(subject, token=confirm, reason=reason)
        )
    _print_plan(found, newton.settings.agent, subject, is_erased=confirm is not None, json=json)


def _print_plan(plan: ErasurePlan, agent: str, subject: str, *, is_erased: bool, json: bool) -> None:
    kinds, beside = Counter(kind for _, kind, _ in plan.memories), Counter(kind for _, kind in plan.related)
    if json:
        counts = {**kinds, **beside, "decision": len(plan.decisions), "identity": len(plan.tenets)}
        formatting.print_json({"erased": is_erased, "names": plan.names, "counts": counts, "confirm": plan.token})
        return
    told = [f"{number} of kind {kind}" for kind, number in sorted(kinds.items())]
    told += [formatting.pluralize(number, kind) for kind, number in sorted(beside.items())]
    told += [f"the words of {formatting.pluralize(len(plan.decisions), 'decision')}"] if plan.decisions else []
    told += [f"{formatting.pluralize(len(plan.tenets), 'line')} of the identity"] if plan.tenets else []
    say(f"{'Erased' if is_erased else 'Would go'} ({', '.join(plan.names)}): {', '.join(told)}.")
    if not is_erased:
        for _, kind, micro in plan.memories[:MAX_SHOWN_MEMORIES]:
            say(f"  {kind:<10} {micro}")
        words = f"newton erase --agent {shlex.quote(agent)} --subject {shlex.quote(subject)} --confirm {plan.token}"
        say(f"What was made from it goes too. `{words}` does it.")
