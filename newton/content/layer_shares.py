"""Default shares of the token budget by layer: decisions, facts, procedures and episodes. Frames in
`frames/*.yaml` set their own; these defaults apply to a frame without `budget`.
"""

from typing import Annotated

from pydantic import Field, model_validator

from newton.content.yaml_models import StrictModel

Share = Annotated[int, Field(ge=0, le=1_000_000)]


class LayerShares(StrictModel):
    """The shares of the layers in the flexible part of a context. Only their ratios matter."""

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
