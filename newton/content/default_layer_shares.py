"""Shares of a context's token budget for decisions, facts, procedures and episodes (its layers).

A frame in `frames/*.yaml` may set its own shares in the field `budget`; a pack and a request may set percentages.
"""

from typing import Annotated

from pydantic import Field, model_validator

from newton.content.yaml_models import StrictModel

SHARE_UNITS = 1_000  # the sum of the shares that correspond to percentages, as integers

Share = Annotated[int, Field(ge=0, le=1_000_000)]
Percent = Annotated[int, Field(ge=0, le=100)]


class LayerShares(StrictModel):
    """The shares of the token budget for each layer of a context. Only the ratios of the numbers matter."""

    decisions: Share = 2_000
    facts: Share = 1_500
    procedures: Share = 1_500
    episodes: Share = 1_000

    @model_validator(mode="after")
    def _check_sum(self) -> "LayerShares":
        if not sum(self.shares.values()):
            raise ValueError("gives no share to any layer")
        return self

    @property
    def shares(self) -> dict[str, int]:
        return dict(self)


class BudgetSplit(StrictModel):
    """The parts of a context's token budget, in percent, for memories found in four ways."""

    recent: Percent = Field(description="Percent of a context's tokens for recent events and episodes.")
    semantic: Percent = Field(
        description="Percent of a context's tokens for memories of any kind that are similar to the input."
    )
    entity: Percent = Field(
        description="Percent of a context's tokens for memories about the entities that the input mentions."
    )
    patterns: Percent = Field(description="Percent of a context's tokens for procedures that apply to the input.")

    @model_validator(mode="after")
    def _check_sum(self) -> "BudgetSplit":
        if (total := self.recent + self.semantic + self.entity + self.patterns) != 100:
            raise ValueError(f"must add up to 100, not {total}")
        return self

    def to_layer_shares(self, own: LayerShares) -> LayerShares:
        """Return the shares of decisions, facts, procedures and episodes that correspond to the percentages.

        The semantic part is divided between decisions and facts in the ratio of the frame's `own` shares.
        """
        unit, total = SHARE_UNITS // 100, own.decisions + own.facts
        decisions = round(self.semantic * unit * (own.decisions / total if total else 0.5))
        return LayerShares(
            decisions=decisions,
            facts=(self.semantic + self.entity) * unit - decisions,
            procedures=self.patterns * unit,
            episodes=self.recent * unit,
        )
