"""The relevance model: coefficients of the probability that a memory is relevant to an input, as data."""

import functools
from pathlib import Path

from pydantic import Field, ValidationError

from newton.content.package_data import data_folder
from newton.content.yaml_models import StrictModel
from newton.errors import ConfigError

RELEVANCE_FILE = "relevance.json"  # beside the profiles


class LogisticCoefficients(StrictModel):
    """The coefficients of a logistic regression over the evidence of a search."""

    intercept: float
    cosine: float = Field(default=0.0, description="Coefficient of the cosine similarity.")
    lexical: float = Field(
        default=0.0, description="Coefficient of the BM25 score relative to the maximum of all words."
    )
    relative: float = Field(default=0.0, description="Coefficient of the relevance relative to the best memory.")
    known_share: float = Field(
        default=0.0, description="Coefficient of the share of the input's words that memory has."
    )
    size: float = Field(
        default=0.0, description="Coefficient of the size of the memory: chance finds closer texts in a large one."
    )


class RelevanceCoefficients(StrictModel):
    """Two regressions: that memory has anything about an input, by the best evidence, and that a memory is part of it.

    Without `query`, memory is taken to have something about every input.
    """

    query: LogisticCoefficients | None
    memory: LogisticCoefficients


class RelevanceModel(StrictModel):
    """The coefficients for the embedding model of the fit, for other embedding models, and for search by words only."""

    embedding_model: str = Field(description="The identity of the embedding model of the fit.")
    fitted: RelevanceCoefficients
    other: RelevanceCoefficients
    words_only: RelevanceCoefficients


@functools.cache
def load_relevance_model() -> RelevanceModel:
    """Load the coefficients that ship with Newton. Raises ConfigError when they are damaged."""
    path = data_folder("profiles") / RELEVANCE_FILE
    try:
        return RelevanceModel.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise ConfigError(f"{path} is damaged: {error}", hint="Reinstall Newton.") from None


def write_relevance_model(model: RelevanceModel, folder: Path) -> Path:
    """Write the coefficients and return the path."""
    path = folder / RELEVANCE_FILE
    path.write_text(f"{model.model_dump_json(indent=2)}\n", encoding="utf-8")
    return path
