"""Fit of the correction of answer probabilities to the memories that replies used, and a report on the agreement."""

from dataclasses import dataclass, replace

import numpy as np
from pydantic import computed_field

from newton.agent.scope import AgentScope
from newton.brain.calibration.scores import CalibrationScores, ForecastSeries, compute_scores
from newton.cognition import relevance_model
from newton.cognition.bundles.training_data import load_judged_contexts
from newton.cognition.relevance_model import (
    NO_CORRECTION,
    AnswerCorrection,
    CorrectionFit,
    StoredCorrection,
    compute_probabilities,
    fit_correction,
    load_relevance_model,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RelevanceReport:
    """The agreement of the predicted probability that a memory answers an input with whether replies used the memory.

    `shipped` are the scores of the shipped model, `corrected` those with the `correction` that is in use. Both are None
    without judged items. The correction was fitted to a part of the same items.
    """

    contexts: int
    shipped: CalibrationScores | None
    corrected: CalibrationScores | None
    correction: StoredCorrection | None

    @computed_field
    @property
    def items(self) -> int:
        return self.shipped.n if self.shipped else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RelevanceFitter:
    """Fits, stores and removes the correction of one agent: of the probability that a memory answers an input."""

    scope: AgentScope

    async def fit(self, *, keep: bool) -> CorrectionFit:
        """Fit a correction to the memories that replies used or not; with `keep`, store it if it is better.

        It is better if the log loss of the newer contexts is lower.
        """
        agent_id, model = self.scope.agent_id, load_relevance_model().answer_fingerprint
        async with self.scope.transaction() as tx:
            contexts = await load_judged_contexts(tx, agent_id=agent_id)
            current = await relevance_model.find_correction(tx, agent_id=agent_id, model=model)
            fit = fit_correction(contexts, current)
            if keep and fit.verdict == "better":
                await relevance_model.add_correction(tx, fit, agent_id=agent_id, model=model, now=self.scope.now())
                fit = replace(fit, is_stored=True)
        return fit

    async def reset(self) -> bool:
        """Return to the shipped probabilities; return True if a correction was in use."""
        async with self.scope.transaction() as tx:
            return await relevance_model.remove_corrections(tx, agent_id=self.scope.agent_id, now=self.scope.now())

    async def report(self) -> RelevanceReport:
        """Compare the predicted probabilities, with and without the correction, with what replies used."""
        agent_id, model = self.scope.agent_id, load_relevance_model().answer_fingerprint
        async with self.scope.transaction() as tx:
            contexts = await load_judged_contexts(tx, agent_id=agent_id)
            stored = await relevance_model.find_stored_correction(tx, agent_id=agent_id, model=model)
        probabilities = np.concatenate([np.zeros(0), *(one.probabilities for one in contexts)])
        used = np.concatenate([np.zeros(0), *(one.is_used.astype(np.float64) for one in contexts)])

        def score(correction: AnswerCorrection) -> CalibrationScores | None:
            return compute_scores(ForecastSeries(compute_probabilities(probabilities, correction), used))

        return RelevanceReport(
            contexts=len(contexts),
            shipped=score(NO_CORRECTION),
            corrected=score(stored) if stored else None,
            correction=stored,
        )
