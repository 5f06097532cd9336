"""`newton bundles`, `why`, `replay` and `diff`: what contexts were given, why, and whether they would be again."""

from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter

from newton.cognition.bundles.bundle_store import LATEST, PREVIOUS, BundleSummary
from newton.cognition.bundles.diff import BundleDiff, OnlyInOne
from newton.cognition.bundles.replay import ReplayResult
from newton.errors import InputError
from newton.memory.lookup import short_id
from newton.runtime.bootstrap import open_newton
from newton.runtime.chat_backend.view_models import to_explanation_view
from newton.runtime.cli import formatting
from newton.runtime.cli.options import AgentOption, JsonOption, load_settings
from newton.runtime.cli.printing import say
from newton.runtime.error_status import EXIT_FAILED, EXIT_OK

MAX_LIMIT = 1_000
MAX_INPUT_CHARS = 60  # characters of an input that a list shows

BundleArgument = Annotated[
    str, Parameter(help="`latest`, `previous`, its id, or the end of it as `newton bundles` shows it.")
]


async def list_bundles(
    *,
    limit: Annotated[int, Parameter(help="The most to show.")] = 20,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """List the contexts that were made, the last first.

    Example: newton bundles --limit 5
    """
    if not 1 <= limit <= MAX_LIMIT:
        raise InputError(f"{limit} bundles cannot be shown.", hint=f"Give 1 to {MAX_LIMIT:,}.")
    async with open_newton(load_settings(agent)) as newton:
        listed = await newton.bundles().list_recent(limit)
    if json:
        formatting.print_json([_bundle_to_json(one) for one in listed])
        return
    for one in listed:
        moment = f" as of {one.as_of:%Y-%m-%d %H:%M}" if one.as_of else ""
        say(
            f"{short_id(one.bundle_id)}  {one.created_at:%Y-%m-%d %H:%M}{moment}  {one.session or '-'}  {one.frame}"
            f"  {one.tokens}/{one.budget}  {formatting.truncate(one.input, MAX_INPUT_CHARS)}"
        )
    if not listed:
        say('There is no context yet: `newton context "…"` makes one.')


async def explain_bundle(
    bundle: BundleArgument = LATEST, item: str | None = None, /, *, agent: AgentOption = None, json: JsonOption = False
) -> None:
    """Explain a context, whoever made it and whenever; or one memory of it, whether it is in or was left out.

    Example: newton why latest 3

    Parameters
    ----------
    item:
        Its number in the context, its id or six letters of its beginning or end, its ref, or words of its text.
    """
    async with open_newton(load_settings(agent)) as newton:
        account = await newton.bundles().explain(bundle)
    picked = None if item is None else account.find_item(item)
    if json:
        formatting.print_json(picked.as_json() if picked else account.as_json())
    else:
        say(
            formatting.format_candidate_explanation(to_explanation_view(account, picked))
            if picked
            else formatting.format_bundle_explanation(account)
        )


async def replay_bundle(
    bundle: BundleArgument = LATEST, /, *, agent: AgentOption = None, json: JsonOption = False
) -> int:
    """Make a context once more from what is stored of it, and compare. Exits with 1 when it comes out otherwise.

    Its memories are told in the words of then. What has changed since, and does not matter to it, is said beside.

    Example: newton replay latest
    """
    async with open_newton(load_settings(agent)) as newton:
        replayed = await newton.bundles().replay(bundle)
    if json:
        formatting.print_json(_replay_to_json(replayed))
    else:
        _print_replay(replayed)
    return EXIT_OK if replayed.identical else EXIT_FAILED


async def diff_bundles(
    one: BundleArgument = LATEST,
    other: BundleArgument = LATEST,
    /,
    *,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Show what two contexts do not have in common, and why. One alone is compared with the latest, and the latest
    alone with the one before it.

    Example: newton diff 3f9c2a71
    """
    if one == other == LATEST:
        one = PREVIOUS
    async with open_newton(load_settings(agent)) as newton:
        compared = await newton.bundles().diff(one, other)
    if json:
        formatting.print_json(compared.as_json())
    else:
        say(_format_comparison(compared))


def _print_replay(result: ReplayResult) -> None:
    for difference in result.differences:
        say(f"{difference.what}: {difference.why}")
    say(f"{_format_heading(result)}: {'identical' if result.identical else 'not the same'}")
    for remark in result.since:
        formatting.print_notice(f"(Since then {remark}.)")


def _format_heading(result: ReplayResult) -> str:
    items, tokens = formatting.pluralize(result.items, "item"), formatting.pluralize(result.tokens, "token")
    said = formatting.truncate(result.input, MAX_INPUT_CHARS)
    return f'{short_id(result.bundle_id)} of {result.created_at:%Y-%m-%d %H:%M}, {tokens}, {items}, "{said}"'


def _replay_to_json(result: ReplayResult) -> dict[str, object]:
    return {
        "bundle_id": str(result.bundle_id),
        "created_at": result.created_at.isoformat(),
        "input": result.input,
        "tokens": result.tokens,
        "items": result.items,
        "identical": result.identical,
        "differences": [difference._asdict() for difference in result.differences],
        "since": list(result.since),
        "text": result.text,
    }


def _format_comparison(comparison: BundleDiff) -> str:
    if comparison.is_identical:
        return "They are the same."
    lines = [f"{name}: {one} → {other}" for name, one, other in comparison.settings]
    lines += _format_missing_items(f"only in {short_id(comparison.one)}", comparison.only_one)
    lines += _format_missing_items(f"only in {short_id(comparison.other)}", comparison.only_other)
    if comparison.moved:
        lines.append("\nin both")
    for moved in comparison.moved:
        lines.append(f"  {short_id(moved.memory_id)}  {moved.text}")
        lines += [f"            {name} {one} → {other}" for name, (one, other) in moved.differs.items()]
    return "\n".join(lines)


def _format_missing_items(title: str, items: Sequence[OnlyInOne]) -> list[str]:
    if not items:
        return []
    lines = [f"\n{title}"]
    for one in items:
        lines += [f"  {short_id(one.memory_id)}  {one.text}", f"            here {one.here}; there {one.there}"]
    return lines


def _bundle_to_json(bundle: BundleSummary) -> dict[str, object]:
    return {
        "bundle_id": str(bundle.bundle_id),
        "created_at": bundle.created_at.isoformat(),
        "as_of": bundle.as_of and bundle.as_of.isoformat(),
        "session": bundle.session,
        "frame": bundle.frame,
        "tokens": bundle.tokens,
        "budget": bundle.budget,
        "input": bundle.input,
    }
