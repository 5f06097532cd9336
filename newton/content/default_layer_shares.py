"""Default shares of a context's token budget for decisions, facts, procedures and episodes (its layers).

A frame in `frames/*.yaml` may set its own shares in the field `budget`.
"""

from typing import Annotated

from pydantic import Field, model_validator

from newton.content.yaml_models import StrictModel

Share = Annotated[int, Field(ge=0, le=1_000_000)]


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
