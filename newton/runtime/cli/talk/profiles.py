"""`newton profiles`: how memories are scored, and how they would be if it were learnt from use."""

from typing import Annotated

from cyclopts import Parameter

from newton.agent.maintenance.profile_fitting import LEARNABLE_FEATURES
from newton.cognition.scoring.score import check_expression
from newton.cognition.scoring.weight_fit import WeightFit
from newton.content.profiles import Decay, Profile, get_profile, load_profiles
from newton.errors import ConfigError
from newton.runtime.bootstrap import open_newton
from newton.runtime.cli import formatting
from newton.runtime.cli.options import AgentOption, JsonOption, load_settings
from newton.runtime.cli.printing import say


def list_profiles(*, json: JsonOption = False) -> None:
    """List the profiles. A profile decides which memories come first, what is left out, and in which order they stand.

    Example: newton profiles list
    """
    known = _load_all_profiles()
    if json:
        formatting.print_json([profile.model_dump(mode="json") for profile in known.values()])
    else:
        say("\n".join(f"{profile.name:<12}{profile.description}" for profile in known.values()))


def show_profile(name: Annotated[str, Parameter(help="The profile.")], *, json: JsonOption = False) -> None:
    """Show how a profile scores.

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
        Parameter(name="--from", help="The profile whose contexts are learnt from; without it, the one most used."),
    ] = None,
    save: Annotated[str | None, Parameter(help="Write the weights as a profile of this name.")] = None,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Learn weights from which memories of a context the replies used, and compare them with those that there are.

    It learns from the older contexts and compares on the younger ones. Nothing is switched: a saved profile is used
    when a frame, --profile or the setting `profile` names it.

    Example: newton profiles fit --save mine
    """
    chosen = load_settings(agent)
    folder = chosen.profiles_dir
    if save is not None and folder is None:
        raise ConfigError("There is no folder of your own profiles.", hint="Set NEWTON_PROFILES_DIR to one.")
    async with open_newton(chosen) as newton:
        learning = newton.profile_fitter()
        base = base or await learning.find_profile_in_use()
        made = await learning.fit(base)
    if json:
        formatting.print_json({"from": base, **_fit_to_json(made)})
    else:
        say("\n".join(_format_fit(made, base, newton.profiles[base])))
    if save is not None and folder is not None:
        formatting.print_notice(f"Written to {learning.save(made, base, save, folder)}.")


def _load_all_profiles() -> dict[str, Profile]:
    return load_profiles(load_settings().profiles_dir, check_expression)


def _format_profile(profile: Profile) -> list[str]:
    return [
        *_format_score(profile),
        f"  recency   {_format_decay(profile.recency)}",
        f"  fill      {profile.fill}",
        f"  order     {profile.order}",
        f"  floor     {profile.floor:g}",
        f"  near      {profile.near:g}",
    ]


def _format_score(profile: Profile) -> list[str]:
    if profile.expression is not None:
        return [f"  score     {profile.expression}"]
    if profile.by_frame:
        chosen = [f"  {frame:<10}{named}" for frame, named in profile.by_frame.items()]
        return [*chosen, f"  otherwise {profile.otherwise}"]
    sign = " × " if profile.combine == "product" else " + "
    given = profile.weights.nonzero.items()
    said = (f"{name} ^ {w:g}" if profile.combine == "product" else f"{w:g} {name}" for name, w in given)
    return [f"  score     {sign.join(said)}"]


def _format_decay(decay: Decay) -> str:
    if (half := decay.half_life) is None:
        return "nothing decays"
    return f"{decay.kind} by {decay.clock}: half is left after {half.total_seconds() / 3_600:,.1f} hours"


def _format_fit(result: WeightFit, base: str, profile: Profile) -> list[str]:
    whole = sum(profile.weights.nonzero.values())
    verdict = "better than chance allows" if result.is_better else "no improvement that could not be chance"
    return [
        f"learnt from {result.training_count} contexts, compared on {result.validation_count} younger ones",
        "",
        f"{'':<15}{base:>10}{'learnt':>10}",
        *(
            f"{name:<15}{profile.weights.nonzero.get(name, 0.0) / whole:>10.3f}{float(weight):>10.3f}"
            for name, weight in zip(LEARNABLE_FEATURES, result.weights, strict=True)
        ),
        "",
        f"{'precision':<15}{result.before.precision:>10.3f}{result.after.precision:>10.3f}",
        f"{'log loss':<15}{result.before.log_loss:>10.3f}{result.after.log_loss:>10.3f}",
        "",
        (
            f"gain in precision {result.gain:+.3f}, 95 % between {result.gain_low:+.3f} "
            f"and {result.gain_high:+.3f}: {verdict}."
        ),
    ]


def _fit_to_json(result: WeightFit) -> dict[str, object]:
    return {
        "weights": {
            name: round(float(weight), 4) for name, weight in zip(LEARNABLE_FEATURES, result.weights, strict=True)
        },
        "learnt_from": result.training_count,
        "held_out": result.validation_count,
        "before": {"precision": result.before.precision, "log_loss": result.before.log_loss},
        "after": {"precision": result.after.precision, "log_loss": result.after.log_loss},
        "gain": result.gain,
        "low": result.gain_low,
        "high": result.gain_high,
        "better": result.is_better,
    }
