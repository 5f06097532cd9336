"""Command `newton erase`: permanently erase a person's data or a whole agent."""

import shlex
from collections import Counter
from typing import Annotated

from cyclopts import Parameter

from newton.agent.services.erasure import ErasurePlan
from newton.db import scrub as database_scrub
from newton.errors import InputError
from newton.operations.text_format import pluralize
from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.formatting import print_json
from newton.runtime.cli.options import AgentOption, JsonOption, ReasonOption, YesOption, load_settings, require_yes
from newton.runtime.cli.printing import say

MAX_SHOWN_MEMORIES = 10


async def erase_subject_or_agent(
    *,
    subject: Annotated[str | None, Parameter(help="Name of the person whose data is erased.")] = None,
    everything: Annotated[bool, Parameter(negative=(), help="Erase the whole agent given by --agent.")] = False,
    scrub: Annotated[
        bool,
        Parameter(negative=(), help="Rewrite the tables of the database, so that their files hold no deleted text."),
    ] = False,
    also: Annotated[
        tuple[str, ...], Parameter(negative=(), help="Another name or spelling of the person. Repeatable.")
    ] = (),
    confirm: Annotated[str | None, Parameter(help="Code that the preview printed.")] = None,
    reason: ReasonOption = "requested",
    yes: YesOption = False,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Permanently erase everything said by or about a person, or a whole agent, or the remains of deleted texts.

    With --subject, the first call only lists what would be erased, with the names that it is found by, and prints a
    code: the given names, the aliases of entities with them, and names that messages state for them. It also lists
    names that may be the person's: give these, and other spellings, with --also. Repeat the command with --confirm CODE
    to erase it; a scan of all tables and logs then says what is left. Decisions remain as records without text, so
    their hash chain stays valid.
    Existing backups and exports still contain the text. So do the files of the database, as free space and in the
    write-ahead log, until they are overwritten. --scrub, without other options, rewrites all tables; each is locked
    meanwhile.

    Example: newton erase --subject "Ana Berg"
    """
    _check_target(subject, everything=everything, agent=agent, scrub=scrub, skips_preview=yes and confirm is None)
    if scrub:
        tables = await database_scrub.scrub(load_settings(agent))
        say(f"Rewrote {pluralize(tables, 'table')} without deleted rows. The write-ahead log is overwritten later.")
        return
    if everything:
        require_yes(f"Permanently erase the agent {agent} with all its data?", yes=yes)
    async with open_agent(load_settings(agent), skip_procedure_sync=True) as newton:
        erasure = newton.erasure("cli")
        if subject is None:
            await erasure.erase_agent()
            newton.chain_heads.delete(newton.scope.agent_id)
            say(f"The agent {agent} was erased.")
            return
        if confirm is None:
            plan = await erasure.plan(subject, also=also)
        else:
            plan = await erasure.erase(subject, token=confirm, reason=reason, also=also)
    if json:
        _print_json(plan, is_erased=confirm is not None)
    elif confirm is None:
        command = ["newton", "erase", "--agent", newton.settings.agent, "--subject", subject]
        _print_preview(plan, shlex.join([*command, *(part for name in also for part in ("--also", name))]))
    else:
        _print_summary("Erased", plan)
        _print_remains(plan)


def _check_target(
    subject: str | None, *, everything: bool, agent: str | None, scrub: bool, skips_preview: bool
) -> None:
    """Raise InputError unless exactly one thing to erase is given, or if a person's data has no preview before."""
    if [subject is not None, everything, scrub].count(True) != 1 or (everything and agent is None):
        raise InputError(
            "Either a person, an agent or --scrub must be given.",
            hint="Give --subject NAME, or --agent NAME --everything, or --scrub.",
        )
    if subject is not None and skips_preview:
        raise InputError(
            "Nothing was erased: a preview is required first.",
            hint="Omit --yes to list what would be erased and to get the code for --confirm.",
        )


def _print_json(plan: ErasurePlan, *, is_erased: bool) -> None:
    kinds, related = Counter(kind for _, kind, _ in plan.memories), Counter(kind for _, kind in plan.related)
    counts = {**kinds, **related, "decision": len(plan.decisions), "identity": len(plan.tenets)}
    stated, possible = (
        [{"name": one.name, "text": one.shorten()} for one in found if not is_erased]
        for found in (plan.stated, plan.possible)
    )
    names = {"names": plan.names, "stated_names": stated, "possible_names": possible}
    names["shared_names"] = plan.shared_names
    print_json({"erased": is_erased, **names, "counts": counts, "confirm": plan.token, "remains": plan.remains})


def _print_summary(verb: str, plan: ErasurePlan) -> None:
    kinds, related = Counter(kind for _, kind, _ in plan.memories), Counter(kind for _, kind in plan.related)
    parts = [f"{number} of kind {kind}" for kind, number in sorted(kinds.items())]
    parts += [pluralize(number, kind) for kind, number in sorted(related.items())]
    parts += [f"the text of {pluralize(len(plan.decisions), 'decision')}"] if plan.decisions else []
    parts += [f"{pluralize(len(plan.tenets), 'line')} of the identity"] if plan.tenets else []
    say(f"{verb} ({', '.join(plan.names)}): {', '.join(parts)}.")


def _print_preview(plan: ErasurePlan, command: str) -> None:
    """Print what would be erased, the names that stay, and how to go on; `command` printed the preview."""
    _print_summary("To be erased", plan)
    for _, kind, micro in plan.memories[:MAX_SHOWN_MEMORIES]:
        say(f"  {kind:<10} {micro}")
    if plan.stated:
        say("Further names, and where memory states them; everything with one of them is listed too:")
    for one in plan.stated:
        say(f"  {one.name}: {one.shorten()}")
    if plan.shared_names:
        say(f"Not erased, because others have these names too: {', '.join(plan.shared_names)}.")
    if plan.possible:
        say("Perhaps names of the person too, and the texts; what has one of them stays unless you give the name:")
        for one in plan.possible:
            say(f"  {shlex.join(('--also', one.name))}: {one.shorten()}")
        options = shlex.join(part for one in plan.possible for part in ("--also", one.name))
        say(f"To list and erase all of them too, run `{command} {options}`.")
    say("Other spellings, short forms and addresses stay: add each to the command with `--also NAME`.")
    say(
        "Memories derived from the listed ones are also erased."
        f" To erase everything listed, run `{command} --confirm {plan.token}`."
    )


def _print_remains(plan: ErasurePlan) -> None:
    """Print what a scan of all tables and logs still finds."""
    if not plan.remains:
        say("A scan of all tables and logs finds none of these names.")
        return
    places = ", ".join(f"{name} ({number})" for name, number in plan.remains.items())
    say(f"A scan still finds these names in: {places}.")
