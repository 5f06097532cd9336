"""`newton profiles`: how memories are scored, and how they would be if it were learnt from use."""

from typing import Annotated

from cyclopts import Parameter

from newton.agent.learning import LEARNABLE
from newton.cognition.fitting import Fit
from newton.cognition.score import check_expression
from newton.content.profiles import Decay, Profile, load_profiles, profile_named
from newton.errors import ConfigError
from newton.runtime.cli import show
from newton.runtime.cli.options import Agent, AsJson, settings
from newton.runtime.cli.printing import say
from newton.runtime.opening import opened


def list_(*, json: AsJson = False) -> None:
    """List the profiles. A profile decides which memories come first, what is left out, and in which order they stand.

    Example: newton profiles list
    """
    known = _known()
    if json:
        show.as_json([profile.model_dump(mode="json") for profile in known.values()])
    else:
        say("\n".join(f"{profile.name:<12}{profile.description}" for profile in known.values()))


def show_(name: Annotated[str, Parameter(help="The profile.")], *, json: AsJson = False) -> None:
    """Show how a profile scores.

    Example: newton profiles show newton
    """
    profile = profile_named(_known(), name)
    if json:
        show.as_json(profile.model_dump(mode="json"))
    else:
        say("\n".join([f"{profile.name}: {profile.description}", "", *_told(profile)]))


async def fit(
    *,
    base: Annotated[
        str | None,
        Parameter(name="--from", help="The profile whose contexts are learnt from; without it, the one most used."),
    ] = None,
    save: Annotated[str | None, Parameter(help="Write the weights as a profile of this name.")] = None,
    agent: Agent = None,
    json: AsJson = False,
) -> None:
    """Learn weights from which memories of a context the replies used, and compare them with those that there are.

    It learns from the older contexts and compares on the younger ones. Nothing is switched: a saved profile is used
    when a frame, --profile or the setting `profile` names it.

    Example: newton profiles fit --save mine
    """
    chosen = settings(agent)
    folder = chosen.profiles_dir
    if save is not None and folder is None:
        raise ConfigError("There is no folder of your own profiles.", hint="Set NEWTON_PROFILES_DIR to one.")
    async with opened(chosen) as newton:
        learning = newton.learning()
        base = base or await learning.in_use()
        made = await learning.fit(base)
    if json:
        show.as_json({"from": base, **_plain(made)})
    else:
        say("\n".join(_compared(made, base, newton.profiles[base])))
    if save is not None and folder is not None:
        show.notice(f"Written to {learning.save(made, base, save, folder)}.")


def _known() -> dict[str, Profile]:
    return load_profiles(settings().profiles_dir, check_expression)


def _told(profile: Profile) -> list[str]:
    return [
        *_score(profile),
        f"  recency   {_decay(profile.recency)}",
        f"  fill      {profile.fill}",
        f"  order     {profile.order}",
        f"  floor     {profile.floor:g}",
        f"  near      {profile.near:g}",
    ]


def _score(profile: Profile) -> list[str]:
    if profile.expression is not None:
        return [f"  score     {profile.expression}"]
    if profile.by_frame:
        chosen = [f"  {frame:<10}{named}" for frame, named in profile.by_frame.items()]
        return [*chosen, f"  otherwise {profile.otherwise}"]
    sign = " × " if profile.combine == "product" else " + "
    given = profile.weights.given.items()
    said = (f"{name} ^ {w:g}" if profile.combine == "product" else f"{w:g} {name}" for name, w in given)
    return [f"  score     {sign.join(said)}"]


def _decay(decay: Decay) -> str:
    if (half := decay.half_life) is None:
        return "nothing decays"
    return f"{decay.kind} by {decay.clock}: half is left after {half.total_seconds() / 3_600:,.1f} hours"


def _compared(made: Fit, base: str, profile: Profile) -> list[str]:
    whole = sum(profile.weights.given.values())
    verdict = "better than chance allows" if made.better else "no improvement that could not be chance"
    return [
        f"learnt from {made.learnt_from} contexts, compared on {made.held_out} younger ones",
        "",
        f"{'':<15}{base:>10}{'learnt':>10}",
        *(
            f"{name:<15}{profile.weights.given.get(name, 0.0) / whole:>10.3f}{float(weight):>10.3f}"
            for name, weight in zip(LEARNABLE, made.weights, strict=True)
        ),
        "",
        f"{'precision':<15}{made.before.precision:>10.3f}{made.after.precision:>10.3f}",
        f"{'log loss':<15}{made.before.log_loss:>10.3f}{made.after.log_loss:>10.3f}",
        "",
        f"gain in precision {made.gain:+.3f}, 95 % between {made.low:+.3f} and {made.high:+.3f}: {verdict}.",
    ]


def _plain(made: Fit) -> dict[str, object]:
    return {
        "weights": {name: round(float(weight), 4) for name, weight in zip(LEARNABLE, made.weights, strict=True)},
        "learnt_from": made.learnt_from,
        "held_out": made.held_out,
        "before": {"precision": made.before.precision, "log_loss": made.before.log_loss},
        "after": {"precision": made.after.precision, "log_loss": made.after.log_loss},
        "gain": made.gain,
        "low": made.low,
        "high": made.high,
        "better": made.better,
    }
