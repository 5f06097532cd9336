"""Learns how memories should be weighed from how they were used, and says whether that is better before it is taken."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from newton.agent.scope import AgentScope
from newton.cognition import experience
from newton.cognition.fitting import FEWEST, Fit, fit
from newton.cognition.score import FEATURES
from newton.content.frames import Frame
from newton.content.profiles import FEATURES as WEIGHABLE
from newton.content.profiles import Profile, Weights, profile_named, write_profile
from newton.errors import ConflictError, InputError

LEARNABLE = tuple(name for name in WEIGHABLE if name in FEATURES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Learning:
    """For one agent."""

    scope: AgentScope
    profiles: Mapping[str, Profile]
    frames: Mapping[str, Frame]

    async def in_use(self) -> str:
        """The profile by which most of what can be learnt from was made; without any, the one that most frames name."""
        async with self.scope.transaction() as tx:
            used = await experience.most_used(tx, agent_id=self.scope.agent_id)
        named = Counter(frame.profile for frame in self.frames.values())
        return used or min(named, key=lambda name: (-named[name], name))

    async def fit(self, name: str) -> Fit:
        """Weights learnt from the contexts that this profile made, beside its own. Nothing is changed.

        Raises NotFoundError, InputError for a profile that adds up no weights, and ConflictError when too little is
        known yet.
        """
        base = profile_named(self.profiles, name)
        if not base.weights.given or base.combine != "sum":
            raise InputError(
                f"{name!r} adds up no weights, so none can be learnt.",
                hint="Fit one that does: `newton profiles show` tells.",
            )
        async with self.scope.transaction() as tx:
            known = await experience.cases(tx, agent_id=self.scope.agent_id, profile=name, features=LEARNABLE)
        if len(known) < FEWEST:
            raise ConflictError(
                f"Of {len(known)} contexts by {name!r} it is known what a reply used of them, and what not.",
                hint=f"Fitting takes {FEWEST}: go on talking with a model set (`newton chat`).",
            )
        start = np.array([base.weights.given.get(feature, 0.0) for feature in LEARNABLE])
        return fit(known, start / start.sum())

    def save(self, made: Fit, base: str, name: str, folder: Path) -> Path:
        """Writes the weights as a profile of the person's own; it is used when it is named. Raises ConflictError when
        there is one, and ConfigError for a name or a folder that cannot be."""
        like = profile_named(self.profiles, base)
        if name in self.profiles:
            raise ConflictError(f"There is a profile {name!r}, which this would replace.", hint="Take another name.")
        weights = {feature: round(float(w), 3) for feature, w in zip(LEARNABLE, made.weights, strict=True)}
        described = (
            f"Learnt from {made.learnt_from} contexts by {base} until {self.scope.now():%Y-%m-%d}: precision"
            f" {made.after.precision:.3f} beside {made.before.precision:.3f} on {made.held_out} others."
        )
        changed = {"name": name, "description": described, "weights": Weights(**weights)}
        return write_profile(like.model_copy(update=changed), folder)
