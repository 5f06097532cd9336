"""`newton bundles`, `why`, `replay` and `diff`: what contexts were given, why, and whether they would be again."""

from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter

from newton.cognition.bundles import LATEST, PREVIOUS, Listed
from newton.cognition.difference import Comparison, Missing
from newton.cognition.replay import Replay
from newton.errors import InputError
from newton.memory.lookup import short
from newton.runtime.cli import show
from newton.runtime.cli.options import Agent, AsJson, settings
from newton.runtime.cli.printing import say
from newton.runtime.opening import opened
from newton.runtime.statuses import FAILED, OK
from newton.runtime.talk.told import explained

MOST = 1_000
BEGINNING = 60  # characters of an input that a list shows

BundleName = Annotated[
    str, Parameter(help="`latest`, `previous`, its id, or the end of it as `newton bundles` shows it.")
]


async def bundles(
    *,
    limit: Annotated[int, Parameter(help="The most to show.")] = 20,
    agent: Agent = None,
    json: AsJson = False,
) -> None:
    """List the contexts that were made, the last first.

    Example: newton bundles --limit 5
    """
    if not 1 <= limit <= MOST:
        raise InputError(f"{limit} bundles cannot be shown.", hint=f"Give 1 to {MOST:,}.")
    async with opened(settings(agent)) as newton:
        listed = await newton.hindsight().recent(limit)
    if json:
        show.as_json([_plain(one) for one in listed])
        return
    for one in listed:
        moment = f" as of {one.as_of:%Y-%m-%d %H:%M}" if one.as_of else ""
        say(
            f"{short(one.bundle_id)}  {one.created_at:%Y-%m-%d %H:%M}{moment}  {one.session or '-'}  {one.frame}"
            f"  {one.tokens}/{one.budget}  {show.beginning(one.input, BEGINNING)}"
        )
    if not listed:
        say('There is no context yet: `newton context "…"` makes one.')


async def why(
    bundle: BundleName = LATEST, item: str | None = None, /, *, agent: Agent = None, json: AsJson = False
) -> None:
    """Explain a context, whoever made it and whenever; or one memory of it, whether it is in or was left out.

    Example: newton why latest 3

    Parameters
    ----------
    item:
        Its number in the context, its id or six letters of its beginning or end, its ref, or words of its text.
    """
    async with opened(settings(agent)) as newton:
        account = await newton.hindsight().why(bundle)
    picked = None if item is None else account.picked(item)
    if json:
        show.as_json(picked.as_json() if picked else account.as_json())
    else:
        say(show.explanation(explained(account, picked)) if picked else show.account(account))


async def replay(bundle: BundleName = LATEST, /, *, agent: Agent = None, json: AsJson = False) -> int:
    """Make a context once more from what is stored of it, and compare. Exits with 1 when it comes out otherwise.

    Its memories are told in the words of then. What has changed since, and does not matter to it, is said beside.

    Example: newton replay latest
    """
    async with opened(settings(agent)) as newton:
        replayed = await newton.hindsight().replay(bundle)
    if json:
        show.as_json(_replayed(replayed))
    else:
        _print(replayed)
    return OK if replayed.identical else FAILED


async def diff(
    one: BundleName = LATEST, other: BundleName = LATEST, /, *, agent: Agent = None, json: AsJson = False
) -> None:
    """Show what two contexts do not have in common, and why. One alone is compared with the latest, and the latest
    alone with the one before it.

    Example: newton diff 3f9c2a71
    """
    if one == other == LATEST:
        one = PREVIOUS
    async with opened(settings(agent)) as newton:
        compared = await newton.hindsight().diff(one, other)
    if json:
        show.as_json(compared.as_json())
    else:
        say(_compared(compared))


def _print(replayed: Replay) -> None:
    for difference in replayed.differences:
        say(f"{difference.what}: {difference.why}")
    say(f"{_which(replayed)}: {'identical' if replayed.identical else 'not the same'}")
    for remark in replayed.since:
        show.notice(f"(Since then {remark}.)")


def _which(replayed: Replay) -> str:
    items, tokens = show.counted(replayed.items, "item"), show.counted(replayed.tokens, "token")
    said = show.beginning(replayed.input, BEGINNING)
    return f'{short(replayed.bundle_id)} of {replayed.created_at:%Y-%m-%d %H:%M}, {tokens}, {items}, "{said}"'


def _replayed(replayed: Replay) -> dict[str, object]:
    return {
        "bundle_id": str(replayed.bundle_id),
        "created_at": replayed.created_at.isoformat(),
        "input": replayed.input,
        "tokens": replayed.tokens,
        "items": replayed.items,
        "identical": replayed.identical,
        "differences": [difference._asdict() for difference in replayed.differences],
        "since": list(replayed.since),
        "text": replayed.text,
    }


def _compared(compared: Comparison) -> str:
    if compared.same:
        return "They are the same."
    lines = [f"{name}: {one} → {other}" for name, one, other in compared.settings]
    lines += _missing(f"only in {short(compared.one)}", compared.only_one)
    lines += _missing(f"only in {short(compared.other)}", compared.only_other)
    if compared.moved:
        lines.append("\nin both")
    for moved in compared.moved:
        lines.append(f"  {short(moved.memory_id)}  {moved.text}")
        lines += [f"            {name} {one} → {other}" for name, (one, other) in moved.differs.items()]
    return "\n".join(lines)


def _missing(title: str, missing: Sequence[Missing]) -> list[str]:
    if not missing:
        return []
    lines = [f"\n{title}"]
    for one in missing:
        lines += [f"  {short(one.memory_id)}  {one.text}", f"            here {one.here}; there {one.there}"]
    return lines


def _plain(one: Listed) -> dict[str, object]:
    return {
        "bundle_id": str(one.bundle_id),
        "created_at": one.created_at.isoformat(),
        "as_of": one.as_of and one.as_of.isoformat(),
        "session": one.session,
        "frame": one.frame,
        "tokens": one.tokens,
        "budget": one.budget,
        "input": one.input,
    }
