"""Commands `newton profiles`: ways to score memories, and weights fitted to usage."""

from typing import Annotated

from cyclopts import Parameter

from newton.agent.maintenance.profile_fitting import LEARNABLE_FEATURES, ProfileFitter
from newton.cognition.scoring.score import check_expression
from newton.cognition.scoring.weight_fit import WeightFit
from newton.content.profiles import Profile, get_profile, load_profiles
from newton.content.recency_decay import RecencyDecay
from newton.errors import ConfigError, ConflictError
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


async def fit_profile(
    *,
    base: Annotated[
        str | None,
        Parameter(name="--from", help="Profile whose contexts are the training data (default: the most used profile)."),
    ] = None,
    save: Annotated[str | None, Parameter(help="Save the fitted weights as a profile of this name.")] = None,
    dry_run: Annotated[bool, Parameter(help="Show the fit of relevance without using it.")] = False,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Fit scoring weights and relevance to the memories that replies used, and compare them with the current ones.

    The older contexts are the training set, the newer ones the validation set. A saved profile takes effect only when a
    frame, --profile or the setting `profile` names it. The probability that a memory answers a question is corrected
    for this agent from then on, if the newer contexts show a significantly lower log loss.

    Example: newton profiles fit --save mine
    """
    settings = load_settings(agent)
    folder = settings.profiles_dir
    if save is not None and folder is None:
        raise ConfigError("No folder of your own profiles is configured.", hint="Set NEWTON_PROFILES_DIR.")
    async with open_own_agent(settings) as newton:
        fitter = newton.profile_fitter()
        base = base or await fitter.find_profile_in_use()
        result, problem = await _fit_weights(fitter, base)
        correction = await newton.relevance_fitter().fit(keep=not dry_run)
    if problem and (save is not None or correction.verdict == "too few"):
        raise problem
    is_stored = correction.verdict == "better" and not dry_run
    if json:
        relevance_fields = relevance.fit_to_json(correction, is_stored=is_stored)
        formatting.print_json({"base_profile": base, **_fit_to_json(result), "relevance": relevance_fields})
    else:
        weights = _format_fit(result, base, newton.profiles[base]) if result else [str(problem)]
        say("\n".join([*weights, "", *relevance.list_fit_lines(correction, is_stored=is_stored)]))
    if save is not None and folder is not None and result:
        formatting.print_notice(f"Written to {fitter.save(result, base, save, folder)}.")


async def reset_relevance(*, agent: AgentOption = None, json: JsonOption = False) -> None:
    """Remove the correction of relevance that `newton profiles fit` has fitted to the replies of this agent.

    The shipped probabilities are used again. The weights of a saved profile are in its file, and are not changed.

    Example: newton profiles reset
    """
    async with open_own_agent(load_settings(agent)) as newton:
        is_removed = await newton.relevance_fitter().reset()
    if json:
        formatting.print_json({"removed": is_removed})
    else:
        say("The shipped relevance is used again." if is_removed else "No correction was in use; nothing changed.")


async def _fit_weights(fitter: ProfileFitter, base: str) -> tuple[WeightFit | None, ConflictError | None]:
    """Return the fitted weights, or why there are none: relevance may be fitted with less data."""
    try:
        return await fitter.fit(base), None
    except ConflictError as error:
        return None, error


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


def _format_fit(result: WeightFit, base: str, profile: Profile) -> list[str]:
    total = sum(profile.weights.nonzero.values())
    verdict = "a significant improvement" if result.is_better else "no significant improvement"
    return [
        f"trained on {result.training_count} contexts, validated on {result.validation_count} newer contexts",
        "",
        f"{'':<15}{base:>10}{'fitted':>10}",
        *(
            f"{name:<15}{profile.weights.nonzero.get(name, 0.0) / total:>10.3f}{float(weight):>10.3f}"
            for name, weight in zip(LEARNABLE_FEATURES, result.weights, strict=True)
        ),
        "",
        f"{'precision':<15}{result.before.precision:>10.3f}{result.after.precision:>10.3f}",
        f"{'log loss':<15}{result.before.log_loss:>10.3f}{result.after.log_loss:>10.3f}",
        "",
        f"precision gain {result.gain:+.3f}, 95 % CI {result.gain_low:+.3f} to {result.gain_high:+.3f}: {verdict}.",
    ]


def _fit_to_json(result: WeightFit | None) -> dict[str, object]:
    if result is None:
        return {"weights": None}
    return {
        "weights": {
            name: round(float(weight), 4) for name, weight in zip(LEARNABLE_FEATURES, result.weights, strict=True)
        },
        "training_contexts": result.training_count,
        "validation_contexts": result.validation_count,
        "before": {"precision": result.before.precision, "log_loss": result.before.log_loss},
        "after": {"precision": result.after.precision, "log_loss": result.after.log_loss},
        "gain": result.gain,
        "gain_low": result.gain_low,
        "gain_high": result.gain_high,
        "is_better": result.is_better,
    }
