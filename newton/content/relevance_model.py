"""The relevance model: coefficients that turn search scores into the probability that a memory is relevant."""

import functools
from pathlib import Path

from pydantic import Field, ValidationError

from newton.content.package_data import data_folder
from newton.content.yaml_models import StrictModel
from newton.errors import ConfigError

RELEVANCE_FILE = "relevance.json"  # beside the profiles


class LogisticCoefficients(StrictModel):
    """The coefficients of a logistic regression over the scores of a search."""

    intercept: float
    cosine: float = Field(default=0.0, description="Coefficient of the cosine similarity.")
    lexical: float = Field(
        default=0.0, description="Coefficient of the BM25 score relative to the maximum of all words."
    )
    relative: float = Field(default=0.0, description="Coefficient of the relevance relative to the best memory.")
    known_share: float = Field(
        default=0.0, description="Coefficient of the share of the input's words that occur in the memory."
    )
    size: float = Field(
        default=0.0, description="Coefficient of the number of memories: among many, chance finds more similar texts."
    )


class RelevanceCoefficients(StrictModel):
    """Two regressions: `query` for whether any memory is relevant to an input, `memory` for whether a given one is.

    If `query` is None, every input is taken to have relevant memories.
    """

    query: LogisticCoefficients | None
    memory: LogisticCoefficients


class RelevanceModel(StrictModel):
    """Coefficients for the embedding model they were fitted to, for other ones, and for a search by words only."""

    embedding_model: str = Field(
        description="The identity of the embedding model to which the coefficients `fitted` belong."
    )
    fitted: RelevanceCoefficients
    other: RelevanceCoefficients
    words_only: RelevanceCoefficients


@functools.cache
def load_relevance_model() -> RelevanceModel:
    """Load the coefficients that ship with Newton. Raises ConfigError if the file is missing or damaged."""
    path = data_folder("profiles") / RELEVANCE_FILE
    try:
        return RelevanceModel.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise ConfigError(f"{path} is damaged: {error}", hint="Reinstall Newton.") from None


def write_relevance_model(model: RelevanceModel, folder: Path) -> Path:
    """Write the coefficients to a file in the folder; return its path."""
    path = folder / RELEVANCE_FILE
    path.write_text(f"{model.model_dump_json(indent=2)}\n", encoding="utf-8")
    return path
