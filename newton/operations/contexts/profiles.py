"""Operations on profiles (named ways to score memories), and on the correction of relevance by use."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from newton.agent.field_types import Name
from newton.cognition.relevance_model import MIN_CONTEXTS, MIN_ITEMS, MIN_USED, CorrectionFit
from newton.content.profiles import Profile, RecencyDecay, get_profile
from newton.operations.declaration import operation
from newton.operations.results import ItemList

if TYPE_CHECKING:
    from newton.operations.caller import OperationCaller

NOT_FOR_MODELS = "A model does not need this: Newton does it by itself, or a person does it."
COMMAND = "Run the command in a terminal beside the chat."


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedCorrection:
    """The result of removing the correction of relevance. `removed` is false if none was in use."""

    removed: bool


def _format_profile(profile: Profile) -> str:
    lines = [
        *_format_score(profile),
        f"  recency   {_format_decay(profile.recency)}",
        f"  fill      {profile.fill}",
        f"  order     {profile.order}",
        f"  floor     {profile.floor:g} of the best evidence is the minimum for memories other than messages",
        f"  near      {profile.near:g} of the best relevance is the minimum for messages, if no size is set",
    ]
    return "\n".join([f"{profile.name}: {profile.description}", "", *lines])


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


def _format_fit(fit: CorrectionFit) -> str:
    head = f"relevance: {fit.items:,} items of {fit.contexts:,} contexts judged, {fit.used:,} used"
    if fit.verdict == "too few":
        needed = (
            f"a correction needs {MIN_ITEMS} items of {MIN_CONTEXTS} contexts, {MIN_USED} used and {MIN_USED} unused"
        )
        return f"{head}; {needed}."
    outcome = "in use from now on (`newton profiles reset` removes it)" if fit.is_stored else "nothing was changed"
    lines = [
        head,
        f"log loss of {fit.validation_items:,} items of newer contexts: {fit.loss_before:.4f} before,"
        f" {fit.loss_after:.4f} with slope {fit.correction.slope:g} and intercept {fit.correction.intercept:+g}",
        f"{'a significant improvement' if fit.verdict == 'better' else 'no significant improvement'}: {outcome}.",
    ]
    return "\n".join(lines)


@operation(
    "GET /v1/profiles",
    "reads",
    name="profiles",
    command="profiles list",
    text=lambda profile: f"{profile.name:<12}{profile.description}",
    absent={"mcp": NOT_FOR_MODELS, "chat": COMMAND},
)
async def list_profiles(caller: "OperationCaller") -> ItemList[Profile]:
    """List the profiles. A profile scores memories, drops weak ones and orders the rest.

    Example: newton profiles list
    """
    return ItemList(items=list(caller.newton.profiles.values()))


@operation(
    "GET /v1/profiles/{name}",
    "reads",
    name="profile",
    command="profiles show",
    text=_format_profile,
    absent={"mcp": NOT_FOR_MODELS, "chat": COMMAND},
)
async def show_profile(
    caller: "OperationCaller", name: Annotated[Name, Field(description="The name of the profile.")]
) -> Profile:
    """Show how a profile scores memories.

    Example: newton profiles show newton
    """
    return get_profile(caller.newton.profiles, name)


@operation(
    "POST /v1/calibration/relevance/fit",
    "changes",
    act="govern",
    command="profiles fit",
    scope="admin",
    text=_format_fit,
    absent={"mcp": NOT_FOR_MODELS},
)
async def fit_relevance(
    caller: "OperationCaller",
    *,
    dry_run: Annotated[bool, Field(description="Show the fit without using it.")] = False,
) -> CorrectionFit:
    """Correct the probability that a memory answers a question by the memories that replies used.

    The older contexts are the training set, the newer ones the validation set. The correction is in use for this agent
    from then on, if the newer contexts show a significantly lower log loss.

    Example: newton profiles fit --dry-run
    """
    return await caller.newton.relevance_fitter().fit(keep=not dry_run)


@operation(
    "POST /v1/calibration/relevance/reset",
    "changes",
    act="govern",
    command="profiles reset",
    scope="admin",
    text=lambda one: (
        "The shipped relevance is used again." if one.removed else "No correction was in use; nothing changed."
    ),
    absent={"mcp": NOT_FOR_MODELS},
    is_idempotent=True,
)
async def reset_relevance(caller: "OperationCaller") -> RemovedCorrection:
    """Remove the correction of relevance that was fitted to the replies of this agent.

    The shipped probabilities are used again.

    Example: newton profiles reset
    """
    return RemovedCorrection(removed=await caller.newton.relevance_fitter().reset())
