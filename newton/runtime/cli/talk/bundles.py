"""Commands `newton bundles`, `why`, `replay` and `diff`: list, explain, rebuild and compare stored contexts."""

from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter

from newton.cognition.bundles.bundle_store import LATEST, PREVIOUS, BundleSummary
from newton.cognition.bundles.diff import BundleDiff, OnlyInOne
from newton.cognition.bundles.replay import ReplayResult
from newton.errors import InputError
from newton.memory.lookup import short_id
from newton.runtime.chat_backend.view_models import explain_item
from newton.runtime.cli import formatting
from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.options import AgentOption, JsonOption, LimitOption, load_settings
from newton.runtime.cli.printing import say
from newton.runtime.error_status import EXIT_FAILED, EXIT_OK

MAX_LIMIT = 1_000
MAX_INPUT_CHARS = 60

BundleArgument = Annotated[
    str,
    Parameter(help="Stored context: `latest`, `previous`, its id, or the end of the id as `newton bundles` prints it."),
]


async def list_bundles(*, limit: LimitOption = 20, agent: AgentOption = None, json: JsonOption = False) -> None:
    """List the stored contexts, newest first.

    Example: newton bundles --limit 5
    """
    if not 1 <= limit <= MAX_LIMIT:
        raise InputError(f"A limit of {limit} is out of range.", hint=f"Give a limit from 1 to {MAX_LIMIT:,}.")
    async with open_agent(load_settings(agent)) as newton:
        bundles = await newton.bundles().list_recent(limit)
    if json:
        formatting.print_json(list(map(_bundle_to_json, bundles)))
        return
    for one in bundles:
        as_of = f" as of {one.as_of:%Y-%m-%d %H:%M}" if one.as_of else ""
        say(
            f"{short_id(one.bundle_id)}  {one.created_at:%Y-%m-%d %H:%M}{as_of}  {one.session or '-'}  {one.frame}"
            f"  {one.tokens}/{one.budget}  {formatting.truncate(one.input, MAX_INPUT_CHARS)}"
        )
    if not bundles:
        say('No contexts yet. Build one: `newton context "…"`')


async def explain_bundle(
    bundle: BundleArgument = LATEST,
    item: Annotated[
        str | None,
        Parameter(
            help="A memory: its number in the context, id (or 6 characters of either end), ref, or words of its text."
        ),
    ] = None,
    /,
    *,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Explain how a stored context was selected or, with ITEM, why one memory is in it or not.

    Example: newton why latest 3
    """
    async with open_agent(load_settings(agent)) as newton:
        explanation = await newton.bundles().explain(bundle)
    if item is None:
        shown = formatting.format_bundle_explanation
        formatting.print_json(explanation.as_json()) if json else say(shown(explanation))
    elif json:
        formatting.print_json((explanation.find_fixed_line(item) or explanation.find_item(item)).as_json())
    else:
        say(formatting.format_candidate_explanation(explain_item(explanation, item)))


async def replay_bundle(
    bundle: BundleArgument = LATEST, /, *, agent: AgentOption = None, json: JsonOption = False
) -> int:
    """Rebuild a context from its stored input and compare it with the original. The exit status is 1 if they differ.

    Memories are used with the text that they had at that time. Later changes of the code, the frame and the profile are
    listed as notices.

    Example: newton replay latest
    """
    async with open_agent(load_settings(agent)) as newton:
        result = await newton.bundles().replay(bundle)
    if json:
        formatting.print_json(_replay_to_json(result))
    else:
        _print_replay(result)
    return EXIT_OK if result.identical else EXIT_FAILED


async def diff_bundles(
    one: BundleArgument = LATEST,
    other: BundleArgument = LATEST,
    /,
    *,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Compare two stored contexts and explain the differences.

    Without arguments, the previous context is compared with the latest; with one, that context and the latest.

    Example: newton diff 3f9c2a71
    """
    if one == other == LATEST:
        one = PREVIOUS
    async with open_agent(load_settings(agent)) as newton:
        diff = await newton.bundles().diff(one, other)
    if json:
        formatting.print_json(diff.as_json())
    else:
        say(_format_diff(diff))


def _print_replay(result: ReplayResult) -> None:
    for difference in result.differences:
        say(f"{difference.what}: {difference.why}")
    items, tokens = formatting.pluralize(result.items, "item"), formatting.pluralize(result.tokens, "token")
    name = f"{short_id(result.bundle_id)} of {result.created_at:%Y-%m-%d %H:%M}"
    text = formatting.truncate(result.input, MAX_INPUT_CHARS)
    say(f'{name}, {tokens}, {items}, "{text}": {"identical" if result.identical else "different"}')
    for change in result.since:
        formatting.print_notice(f"(Since the context was built, {change}.)")


def _replay_to_json(result: ReplayResult) -> dict[str, object]:
    return {
        "bundle_id": str(result.bundle_id),
        "created_at": result.created_at.isoformat(),
        "input": result.input,
        "tokens": result.tokens,
        "items": result.items,
        "identical": result.identical,
        "differences": [{"field": one.what, "reason": one.why} for one in result.differences],
        "changes_since": list(result.since),
        "text": result.text,
    }


def _format_diff(diff: BundleDiff) -> str:
    if diff.is_identical:
        return "The contexts are identical."
    lines = [f"{name}: {one} → {other}" for name, one, other in diff.settings]
    lines += _format_missing_items(f"only in {short_id(diff.one)}", diff.only_one)
    lines += _format_missing_items(f"only in {short_id(diff.other)}", diff.only_other)
    if diff.moved:
        lines.append("\nin both")
    for moved in diff.moved:
        lines.append(f"  {short_id(moved.memory_id)}  {moved.text}")
        lines += [f"            {name} {one} → {other}" for name, (one, other) in moved.differs.items()]
    return "\n".join(lines)


def _format_missing_items(title: str, items: Sequence[OnlyInOne]) -> list[str]:
    if not items:
        return []
    lines = [f"\n{title}"]
    for one in items:
        lines += [
            f"  {short_id(one.memory_id)}  {one.text}",
            f"            in this context: {one.here}; in the other: {one.there}",
        ]
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
