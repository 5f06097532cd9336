"""Commands `newton profiles`: ways to score memories, and a correction of relevance fitted to usage."""

from typing import Annotated

from cyclopts import Parameter

from newton.cognition.scoring.score import check_expression
from newton.content.profiles import Profile, RecencyDecay, get_profile, load_profiles
from newton.runtime.cli import formatting
from newton.runtime.cli.command_agent import open_own_agent
from newton.runtime.cli.options import AgentOption, JsonOption, load_settings
from newton.runtime.cli.printing import say
from newton.runtime.reports import relevance


def list_profiles(*, json: JsonOption = False) -> None:
    """List the profiles. A profile scores memories, drops weak ones and orders the rest.

    Example: newton profiles list
    """
    profiles = _load_all_profiles().values()
    if json:
        formatting.print_json([profile.model_dump(mode="json") for profile in profiles])
    else:
        say("\n".join(f"{profile.name:<12}{profile.description}" for profile in profiles))


def show_profile(name: Annotated[str, Parameter(help="Name of the profile.")], *, json: JsonOption = False) -> None:
    """Show how a profile scores memories.

    Example: newton profiles show newton
    """
    profile = get_profile(_load_all_profiles(), name)
    if json:
        formatting.print_json(profile.model_dump(mode="json"))
    else:
        say("\n".join([f"{profile.name}: {profile.description}", "", *_format_profile(profile)]))


async def fit_relevance(
    *,
    dry_run: Annotated[bool, Parameter(help="Show the fit without using it.")] = False,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Correct the probability that a memory answers a question by the memories that replies used.

    The older contexts are the training set, the newer ones the validation set. The correction is in use for this agent
    from then on, if the newer contexts show a significantly lower log loss.

    Example: newton profiles fit --dry-run
    """
    async with open_own_agent(load_settings(agent)) as newton:
        correction = await newton.relevance_fitter().fit(keep=not dry_run)
    is_stored = correction.verdict == "better" and not dry_run
    if json:
        formatting.print_json(relevance.fit_to_json(correction, is_stored=is_stored))
    else:
        say("\n".join(relevance.list_fit_lines(correction, is_stored=is_stored)))


async def reset_relevance(*, agent: AgentOption = None, json: JsonOption = False) -> None:
    """Remove the correction of relevance that `newton profiles fit` has fitted to the replies of this agent.

    The shipped probabilities are used again.

    Example: newton profiles reset
    """
    async with open_own_agent(load_settings(agent)) as newton:
        is_removed = await newton.relevance_fitter().reset()
    if json:
        formatting.print_json({"removed": is_removed})
    else:
        say("The shipped relevance is used again." if is_removed else "No correction was in use; nothing changed.")


def _load_all_profiles() -> dict[str, Profile]:
    return load_profiles(load_settings().profiles_dir, check_expression)


def _format_profile(profile: Profile) -> list[str]:
    return [
        *_format_score(profile),
        f"  recency   {_format_decay(profile.recency)}",
        f"  fill      {profile.fill}",
        f"  order     {profile.order}",
        f"  floor     {profile.floor:g} of the best evidence is the minimum for memories other than messages",
        f"  near      {profile.near:g} of the best relevance is the minimum for messages, if no size is set",
    ]


def _format_score(profile: Profile) -> list[str]:
    if profile.expression is not None:
        return [f"  score     {profile.expression}"]
    if profile.by_frame:
        names = [f"  {frame:<10}{name}" for frame, name in profile.by_frame.items()]
        return [*names, f"  otherwise {profile.otherwise}"]
    sign = " × " if profile.combine == "product" else " + "
    weights = profile.weights.nonzero.items()
    terms = (f"{name} ^ {w:g}" if profile.combine == "product" else f"{w:g} {name}" for name, w in weights)
    return [f"  score     {sign.join(terms)}"]


def _format_decay(decay: RecencyDecay) -> str:
    if (half := decay.half_life) is None:
        return "no decay"
    return f"{decay.kind} by {decay.clock}, half-life {half.total_seconds() / 3_600:,.1f} hours"
