"""Operations that compare stated probabilities with what came true: the calibration of decisions and of relevance."""

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from newton.agent.field_types import Timestamp
from newton.agent.maintenance.relevance_fitter import RelevanceReport
from newton.brain.calibration.report import CalibrationReport, build_calibration, filter_decisions
from newton.operations.decisions.calibration_text import render_calibration
from newton.operations.decisions.decisions import CategoryFilter
from newton.operations.decisions.relevance_text import render_relevance
from newton.operations.declaration import operation

if TYPE_CHECKING:
    from newton.operations.caller import OperationCaller


@operation("GET /v1/calibration", "reads", name="calibration", command="calibration", text=render_calibration)
async def show_calibration(
    caller: "OperationCaller",
    category: CategoryFilter = None,
    *,
    since: Annotated[Timestamp | None, Field(description="Only decisions made at or after this time.")] = None,
) -> CalibrationReport:
    """Compare the confidence stated in decisions with their outcomes: Brier score, reliability, bias and trend.

    The report also has the confidence to state instead. Only reviewed decisions are counted. A score with too few of
    them is null.

    Example: newton calibration --category cost
    """
    reviewed = await caller.decisions.list_reviewed_decisions()
    return build_calibration(filter_decisions(reviewed, category=category, since=since))


@operation(
    "GET /v1/calibration/relevance",
    "reads",
    name="relevance_calibration",
    command="profiles relevance",
    text=render_relevance,
    absent={"mcp": "A model does not need this: Newton does it by itself, or a person does it."},
)
async def show_relevance(caller: "OperationCaller") -> RelevanceReport:
    """Compare the probability that a memory answers a question with which memories replies used.

    `shipped` has the scores of the shipped model, `corrected` those of the agent's own correction, null without one.

    Example: newton profiles relevance
    """
    return await caller.newton.relevance_fitter().report()
