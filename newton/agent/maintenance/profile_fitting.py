"""Fitting of a profile's weights to usage data, with a comparison before the result is saved."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from newton.agent.scope import AgentScope
from newton.cognition.bundles import training_data
from newton.cognition.scoring.score import FEATURE_NAMES
from newton.cognition.scoring.weight_fit import MIN_CASES, WeightFit, fit_weights
from newton.content.frames import Frame
from newton.content.profiles import FEATURES as WEIGHABLE
from newton.content.profiles import FeatureWeights, Profile, get_profile, write_profile
from newton.errors import ConflictError, InputError

LEARNABLE_FEATURES = tuple(name for name in WEIGHABLE if name in FEATURE_NAMES)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileFitter:
    """Profile fitting for one agent."""

    scope: AgentScope
    profiles: Mapping[str, Profile]
    frames: Mapping[str, Frame]

    async def find_profile_in_use(self) -> str:
        """Return the profile with the most usage data; without any, the one that most frames name."""
        async with self.scope.transaction() as tx:
            used = await training_data.find_most_used_profile(tx, agent_id=self.scope.agent_id)
        named = Counter(frame.profile for frame in self.frames.values())
        return used or min(named, key=lambda name: (-named[name], name))

    async def fit(self, name: str) -> WeightFit:
        """Fit weights to the contexts built by a profile and compare them with its own. Changes nothing.

        Raises NotFoundError, InputError for a profile without weights, and ConflictError without enough usage data.
        """
        base = get_profile(self.profiles, name)
        if not base.weights.nonzero or base.combine != "sum":
            raise InputError(
                f"{name!r} has no weights to fit.", hint="Choose a profile with weights: see `newton profiles show`."
            )
        async with self.scope.transaction() as tx:
            known = await training_data.load_cases(
                tx, agent_id=self.scope.agent_id, profile=name, features=LEARNABLE_FEATURES
            )
        if len(known) < MIN_CASES:
            raise ConflictError(
                f"Only {len(known)} of the {MIN_CASES} contexts needed to fit {name!r} have usage data.",
                hint="Chat more with a model configured (`newton chat`).",
            )
        start = np.array([base.weights.nonzero.get(feature, 0.0) for feature in LEARNABLE_FEATURES])
        return fit_weights(known, start / start.sum())

    def save(self, result: WeightFit, base: str, name: str, folder: Path) -> Path:
        """Save the weights as a user profile. Raises ConflictError when the name exists, and ConfigError for an invalid
        name or folder."""
        like = get_profile(self.profiles, base)
        if name in self.profiles:
            raise ConflictError(f"There is a profile {name!r}, which this would replace.", hint="Choose another name.")
        weights = {feature: round(float(w), 3) for feature, w in zip(LEARNABLE_FEATURES, result.weights, strict=True)}
        described = (
            f"Learnt from {result.training_count} contexts by {base} until {self.scope.now():%Y-%m-%d}: precision"
            f" {result.after.precision:.3f} beside {result.before.precision:.3f} on {result.validation_count} others."
        )
        changed = {"name": name, "description": described, "weights": FeatureWeights(**weights)}
        return write_profile(like.model_copy(update=changed), folder)
