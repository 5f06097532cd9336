"""Values that replace, for one request, those of a context's frame and profile."""

from pydantic import Field, ValidationError

from newton.content.frames import BudgetSplit, LayerShares
from newton.content.profiles import FeatureWeights, GatherOptions, Profile, Weight
from newton.content.yaml_files import StrictModel
from newton.errors import InputError


class WeightOverrides(StrictModel):
    """Weights of features in the score of a memory; a feature that is left out keeps its weight."""

    similarity: Weight | None = None
    lexical: Weight | None = None
    type_priority: Weight | None = None
    recency: Weight | None = None
    importance: Weight | None = None
    salience: Weight | None = None
    outcome: Weight | None = None
    usage: Weight | None = None
    confidence: Weight | None = None
    success_rate: Weight | None = None
    depth: Weight | None = None


class ReachOverrides(StrictModel):
    """Limits of the memories to consider in addition to the results of the search; one that is left out stays."""

    depth: int | None = Field(None, ge=0, le=5, description="Relation steps from the entities in the input.")
    salient: int | None = Field(None, ge=0, le=100, description="Most salient entities to add.")
    events: int | None = Field(None, ge=0, le=200, description="Last events of the session to add.")
    sessions: int | None = Field(None, ge=0, le=50, description="Other sessions of which to add recent events.")
    failures: bool | None = Field(None, description="Whether memories of failures may be in the context.")


class ContextOverrides(StrictModel):
    """Values that replace those of the profile (`weights`, `reach`) and of the frame (`budget`) for one context."""

    weights: WeightOverrides | None = Field(None, description="Weights of features in the score of a memory.")
    reach: ReachOverrides | None = Field(
        None, description="Limits of the memories to consider in addition to the results of the search."
    )
    budget: BudgetSplit | None = Field(
        None,
        description="Percent of the flexible tokens for `recent`, `semantic`, `entity` and `patterns`, 100 in total.",
    )

    def apply_to_profile(self, profile: Profile) -> Profile:
        """Return the profile with the values of the overrides.

        Raises InputError if weights are given for a profile that has an expression, or if all weights become 0.
        """
        weights = self.weights.model_dump(exclude_none=True) if self.weights else {}
        reach = self.override_reach(profile.reach)
        if weights and profile.expression is not None:
            what = f"The profile {profile.name!r} scores by an expression, so it has no weights to override."
            raise InputError(what, hint="Choose a profile with weights, such as coding.")
        try:
            weighted = FeatureWeights.model_validate(profile.weights.model_dump() | weights) if weights else None
        except ValidationError:
            raise InputError("All weights are 0.", hint="Give a weight above 0 to one feature.") from None
        return profile.model_copy(update={"reach": reach} | ({"weights": weighted} if weighted else {}))

    def override_reach(self, reach: GatherOptions) -> GatherOptions:
        """Return the limits with the values of the overrides."""
        return reach.model_copy(update=self.reach.model_dump(exclude_none=True)) if self.reach else reach

    def select_shares(self, own: LayerShares) -> LayerShares:
        """Return the shares of the layers: those of `budget` if it is given, else the frame's `own`."""
        return self.budget.to_layer_shares(own) if self.budget else own

    def as_json(self) -> dict[str, dict[str, float]]:
        """Return the values that are set, as JSON."""
        return self.model_dump(exclude_none=True)


NO_OVERRIDES = ContextOverrides.model_validate({})
