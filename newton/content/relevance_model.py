"""The relevance model: coefficients that turn search scores into the probability that a memory is relevant."""

import functools
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from newton.content.package_data import data_folder
from newton.content.yaml_models import StrictModel
from newton.errors import ConfigError

RELEVANCE_FILE = "relevance.json"  # beside the profiles

# The features of the probability that a memory answers a question. Those that begin with `best_`, `close_count`,
# `has_names`, `known_share`, `margin` and `size` are the same for all memories of a question.
AnswerFeature = Literal[
    "cosine",
    "lexical",
    "relative",
    "log_rank",
    "cosine_gap",
    "lexical_gap",
    "cosine_z",
    "plain_cosine",
    "name_share",
    "word_share",
    "only_question",
    "is_fact",
    "is_message",
    "best_cosine",
    "best_plain",
    "best_lexical",
    "known_share",
    "size",
    "margin",
    "best_name_share",
    "best_word_share",
    "close_count",
    "has_names",
    "best_logit",
]


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


class AnswerRegression(StrictModel):
    """A logistic regression over the features of an answer."""

    intercept: float
    coefficients: Mapping[AnswerFeature, float]


class TreeSplit(StrictModel):
    """A node of a tree: values up to `threshold` continue at the node `low`, others at `high`."""

    feature: AnswerFeature
    threshold: float
    low: int
    high: int


class BoostedTrees(StrictModel):
    """Gradient-boosted trees: the log-odds are the sum of `base` and of one leaf of each tree. The root is node 0."""

    base: float
    trees: tuple[tuple[TreeSplit | float, ...], ...]


class AnswerCoefficients(StrictModel):
    """Two models: `question` for whether memory answers a question at all, `memory` for whether a given one does.

    `sufficiency` turns the first into the probability that memory has everything that the question needs.
    """

    question: BoostedTrees
    memory: AnswerRegression
    sufficiency: tuple[float, float] = Field(description="Intercept, and coefficient of the log-odds of the question.")


class RelevanceModel(StrictModel):
    """Coefficients for the embedding model they were fitted to, for other ones, and for a search by words only.

    `answers` belongs to the same embedding model as `fitted`; with another one, or none, it is not used.
    """

    embedding_model: str = Field(
        description="The identity of the embedding model to which `fitted` and `answers` belong."
    )
    fitted: RelevanceCoefficients
    other: RelevanceCoefficients
    words_only: RelevanceCoefficients
    answers: AnswerCoefficients

    @functools.cached_property
    def answer_fingerprint(self) -> str:
        """Identify the coefficients of answers. A correction for one agent belongs to them."""
        return hashlib.sha256(self.answers.model_dump_json().encode()).hexdigest()[:16]


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
    path.write_text(f"{model.model_dump_json(indent=1)}\n", encoding="utf-8")
    return path
