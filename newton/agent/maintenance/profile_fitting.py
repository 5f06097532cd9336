"""Fitting of the weights of a profile to usage data, so that the memories that replies used rank higher."""

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
    """Fits the weights of profiles for one agent."""

    scope: AgentScope
    profiles: Mapping[str, Profile]
    frames: Mapping[str, Frame]

    async def find_profile_in_use(self) -> str:
        """Return the name of the profile with the most usage data or, without such data, of the one most frames
        select.
        """
        async with self.scope.transaction() as tx:
            used = await training_data.find_most_used_profile(tx, agent_id=self.scope.agent_id)
        named = Counter(frame.profile for frame in self.frames.values())
        return used or min(named, key=lambda name: (-named[name], name))

    async def fit(self, name: str) -> WeightFit:
        """Compute weights from the contexts built with a profile, and compare them with its current weights.

        Changes nothing.

        Raises NotFoundError for an unknown profile, InputError for one without weights, and ConflictError for too
        little data.
        """
        base = get_profile(self.profiles, name)
        if not base.weights.nonzero or base.combine != "sum":
            hint = "Choose a profile with weights: see `newton profiles show`."
            raise InputError(f"The profile {name!r} has no weights to fit.", hint=hint)
        agent_id = self.scope.agent_id
        async with self.scope.transaction() as tx:
            cases = await training_data.load_cases(tx, agent_id=agent_id, profile=name, features=LEARNABLE_FEATURES)
        if len(cases) < MIN_CASES:
            raise ConflictError(
                f"The profile {name!r} has usage data of {len(cases)} contexts; fitting needs {MIN_CASES}.",
                hint="Each answer of a model, for example in `newton chat`, adds the data of one context.",
            )
        start = np.array([base.weights.nonzero.get(feature, 0.0) for feature in LEARNABLE_FEATURES])
        return fit_weights(cases, start / start.sum())

    def save(self, result: WeightFit, base: str, name: str, folder: Path) -> Path:
        """Write the fitted weights as the profile `name` to a file in `folder`; return its path.

        The other settings are those of the profile `base`. Raises ConflictError if the name exists, and ConfigError for
        an invalid name or folder.
        """
        base_profile = get_profile(self.profiles, base)
        if name in self.profiles:
            raise ConflictError(f"The profile {name!r} exists already.", hint="Choose another name for the profile.")
        weights = {feature: round(float(w), 3) for feature, w in zip(LEARNABLE_FEATURES, result.weights, strict=True)}
        description = (
            f"Fitted to {result.training_count} contexts built by {base} until {self.scope.now():%Y-%m-%d}: precision"
            f" {result.after.precision:.3f} instead of {result.before.precision:.3f} on {result.validation_count} newer"
            " contexts."
        )
        changed = {"name": name, "description": description, "weights": FeatureWeights(**weights)}
        return write_profile(base_profile.model_copy(update=changed), folder)
