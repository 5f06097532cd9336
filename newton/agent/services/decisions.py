"""Decisions of an agent: preview, record, review, verify."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

from newton.agent.loop import action_gate as gate
from newton.agent.loop.action_gate import ActionGate
from newton.agent.scope import AgentScope
from newton.agent.services import outcome_verifier
from newton.brain import decisions, ledger, queries
from newton.brain.calibration import snapshots
from newton.brain.chain_heads import ChainHeadFiles
from newton.brain.codec import DecisionReview, NewDecision, ReviewMethod, validate_draft
from newton.brain.decision_text import to_embedding_text
from newton.brain.decisions import DecisionAmendment, ManualLink
from newton.brain.draft import DecisionDraft, ReviewedDecision, TrackRecord, Verdict
from newton.brain.hash_chain import BrokenLink, ChainHead, JsonObject
from newton.brain.quality import score_parts
from newton.brain.queries import CategoryCount, DecisionDetail, DecisionFilter, DecisionSummary
from newton.db.pool import Tx, after_commit
from newton.errors import CensorError, ConfigError, ConflictError, GuardrailError
from newton.memory.lookup import resolve_id
from newton.memory.recall import recall
from newton.memory.search_types import MemorySearch, RetrievedMemory, SearchLimits

if TYPE_CHECKING:
    # loading CEL takes 0.2 s, and most commands evaluate no guardrail
    from newton.brain.guardrail_engine import GuardrailResult

T = TypeVar("T")

SEARCH_LIMIT, MAX_PRECEDENTS = 20, 5
MIN_PRECEDENT_SIMILARITY = 0.35  # from this similarity, vector or lexical, a decision is a precedent


GuardrailEvaluator = Callable[[Tx, DecisionDraft, TrackRecord], Awaitable[Sequence["GuardrailResult"]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionPreview:
    """The checks of a draft. `missing` maps each part that could not be computed to the reason."""

    draft: DecisionDraft
    precedents: Sequence[RetrievedMemory]
    track_record: TrackRecord
    censor_check: gate.CensorCheck
    guardrail_results: "Sequence[GuardrailResult]"
    quality: dict[str, float]
    missing: dict[str, str]

    @property
    def blocks(self) -> bool:
        return self.censor_check.blocks or any(ruling.blocks for ruling in self.guardrail_results)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionResult:
    """A recorded decision with its preview. `is_new` is False if it was recorded before."""

    decision_id: UUID
    is_new: bool
    preview: DecisionPreview


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionService:
    """Decisions of one agent. A decision is named by its id or the end of it."""

    scope: AgentScope
    gate: ActionGate
    chain_heads: ChainHeadFiles
    evaluate_guardrails: GuardrailEvaluator
    verifiers: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    verifier_timeout_seconds: float = 60.0

    async def preview(self, draft: DecisionDraft) -> DecisionPreview:
        """Check a draft without recording or counting anything. Raises InputError."""
        return await self._preview(validate_draft(draft), dry_run=True)

    async def decide(self, draft: DecisionDraft, *, supersedes: Sequence[str] = ()) -> DecisionResult:
        """Evaluate a draft and record it. Raises as `evaluate` and `record`."""
        return await self.record(await self.evaluate(draft), supersedes=supersedes)

    async def evaluate(self, draft: DecisionDraft) -> DecisionPreview:
        """Check a draft before it is recorded; matching censors are counted.

        Raises InputError for an invalid draft, CensorError or GuardrailError for a forbidden one.
        """
        outlook = await self._preview(validate_draft(draft), dry_run=False)
        _enforce(outlook)
        return outlook

    async def record(self, preview: DecisionPreview, *, supersedes: Sequence[str] = ()) -> DecisionResult:
        """Record an evaluated draft with its guardrail and censor results. Calls no model."""

        async def work(tx: Tx) -> decisions.RecordResult:
            choice = await decisions.restore_original_time(tx, preview.draft, agent_id=self.scope.agent_id)
            intent = NewDecision(draft=choice, rulings=_results_to_json(preview))
            (made,) = await decisions.record(tx, [intent], ctx=self.scope.write_context())
            for given in supersedes:
                old = await self._resolve(tx, given)
                await decisions.supersede(tx, made.decision_id, old, ctx=self.scope.write_context())
                self._publish("superseded", old, superseded_by=str(made.decision_id))
            if made.is_new:
                self._publish("recorded", made.decision_id, stakes=choice.stakes)
                alike = {found.memory_id: found.similarity for found in preview.precedents}
                await decisions.relate(tx, made.decision_id, alike, ctx=self.scope.write_context())
            return made

        made = await self._commit(work)
        if supersedes:
            await self.refresh_snapshot()
        return DecisionResult(decision_id=made.decision_id, is_new=made.is_new, preview=preview)

    async def add_thought(self, decision_ref: str, text: str) -> None:
        """Add a thought to an open decision."""
        await self._change(
            decision_ref,
            "deliberated",
            lambda tx, one: decisions.add_thought(tx, one, text, ctx=self.scope.write_context()),
        )

    async def amend(self, decision_ref: str, amendment: DecisionAmendment) -> None:
        await self._change(
            decision_ref, "amended", lambda tx, one: decisions.amend(tx, one, amendment, ctx=self.scope.write_context())
        )

    async def mark_done(self, decision_ref: str) -> None:
        """Mark a decision as done, awaiting its outcome."""
        await self._change(
            decision_ref, "done", lambda tx, one: decisions.mark_done(tx, one, ctx=self.scope.write_context())
        )

    async def review(
        self,
        decision_ref: str,
        verdict: Verdict,
        *,
        lesson: str | None = None,
        reviewed_at: datetime | None = None,
        how: ReviewMethod = "hand",
    ) -> None:
        """Record the outcome of a decision, once. `reviewed_at` defaults to now."""
        ctx = self.scope.write_context()
        outcome = DecisionReview(verdict=verdict, at=reviewed_at or ctx.now, how=how, lesson=lesson)

        async def work(tx: Tx, one: UUID) -> None:
            await decisions.review(tx, one, outcome, ctx=ctx)

        await self._change(decision_ref, "reviewed", work, outcome=verdict)
        await self.refresh_snapshot()

    async def refresh_snapshot(self) -> None:
        """Recompute the calibration snapshot after new outcomes."""
        async with self.scope.transaction() as tx:
            await snapshots.take_snapshot(
                tx, agent_id=self.scope.agent_id, now=self.scope.now(), count_tokens=self.scope.count_tokens
            )

    async def run_verifier(self, decision_ref: str) -> Verdict | None:
        """Run the verifier of the decision's category and record the outcome it reports, if any.

        Raises ConfigError when no verifier is set, and ConflictError when the decision is reviewed.
        """
        whole = await self.get(decision_ref)
        category = whole.category
        if category not in self.verifiers:
            raise ConfigError(
                f"No verifier is configured for {category}.", hint="Set it under [verifiers] in newton.toml."
            )
        if whole.review:
            raise ConflictError("The decision was reviewed already.", hint="An outcome is given once.")
        command, decision_id = self.verifiers[category], whole.memory.memory_id
        said = await outcome_verifier.run_verifier(command, decision_id, timeout_seconds=self.verifier_timeout_seconds)
        if said:
            await self.review(str(decision_id), said, how="verifier")
        return said

    async def supersede(self, new_ref: str, old_ref: str) -> None:
        async def work(tx: Tx) -> None:
            one, other = await self._resolve(tx, new_ref), await self._resolve(tx, old_ref)
            await decisions.supersede(tx, one, other, ctx=self.scope.write_context())
            self._publish("superseded", other, superseded_by=str(one))

        await self._commit(work)
        await self.refresh_snapshot()

    async def link(self, decision_ref: str, link_type: ManualLink, other_ref: str) -> None:
        async def work(tx: Tx, decision_id: UUID) -> None:
            await decisions.link(
                tx, decision_id, link_type, await self._resolve(tx, other_ref), ctx=self.scope.write_context()
            )

        await self._change(decision_ref, "linked", work)

    async def erase(self, decision_ref: str, *, reason: str) -> bool:
        """Permanently delete the text of a decision. Return False if there was none."""
        return await self._change(
            decision_ref,
            "erased",
            lambda tx, one: decisions.erase(tx, one, reason=reason, ctx=self.scope.write_context()),
        )

    async def list_decisions(self, criteria: DecisionFilter) -> list[DecisionSummary]:
        now = self.scope.now()
        async with self.scope.transaction() as tx:
            return await queries.list_decisions(tx, criteria, agent_id=self.scope.agent_id, now=now)

    async def list_reviewed_decisions(self) -> list[ReviewedDecision]:
        """Return every reviewed decision, for calibration."""
        async with self.scope.transaction() as tx:
            return await queries.list_reviewed_decisions(tx, agent_id=self.scope.agent_id)

    async def check_guardrails(self, draft: DecisionDraft) -> "tuple[TrackRecord, Sequence[GuardrailResult]]":
        """Return the current track record and the guardrail results of a draft."""
        now = self.scope.now()
        async with self.scope.transaction() as tx:
            standing = await queries.get_track_record(
                tx, agent_id=self.scope.agent_id, category=draft.category, now=now
            )
            return standing, await self.evaluate_guardrails(tx, draft, standing)

    async def list_categories(self) -> list[CategoryCount]:
        async with self.scope.transaction() as tx:
            return await queries.list_categories(tx, agent_id=self.scope.agent_id)

    async def get(self, decision_ref: str) -> DecisionDetail:
        """Return a decision in full."""
        async with self.scope.transaction() as tx:
            return await queries.get_decision(tx, await self._resolve(tx, decision_ref), agent_id=self.scope.agent_id)

    async def verify_chain(self) -> BrokenLink | ChainHead:
        """Return the first broken link of the ledger, or its head if it is intact.

        The head is also compared with the chain head file.
        """
        noted = self.chain_heads.load(self.scope.agent_id)
        async with self.scope.transaction() as tx:
            return await ledger.verify_chain(tx, agent_id=self.scope.agent_id, external_head=noted)

    async def _preview(self, draft: DecisionDraft, *, dry_run: bool) -> DecisionPreview:
        text = "\n".join(filter(None, [draft.description, draft.context, draft.expected]))
        censors = await self.gate.check(text, "action", dry_run=dry_run)
        search = MemorySearch(
            db=self.scope.db,
            agent_id=self.scope.agent_id,
            limits={"decision": SearchLimits(SEARCH_LIMIT, SEARCH_LIMIT)},
        )
        recalled = await recall(to_embedding_text(draft), embedder=self.scope.embedder, search=search)
        standing, rulings = await self.check_guardrails(draft)
        alike = [
            found for found in recalled.memories if max(found.similarity, found.lexical) >= MIN_PRECEDENT_SIMILARITY
        ]
        return DecisionPreview(
            draft=draft,
            precedents=alike[:MAX_PRECEDENTS],
            track_record=standing,
            censor_check=censors,
            guardrail_results=rulings,
            quality=score_parts(draft),
            missing={**recalled.missing, **({"censors by meaning": censors.unchecked} if censors.unchecked else {})},
        )

    async def _change(
        self, decision_ref: str, event: str, operation: Callable[[Tx, UUID], Awaitable[T]], **more: str
    ) -> T:
        async def found(tx: Tx) -> T:
            decision_id = await self._resolve(tx, decision_ref)
            done = await operation(tx, decision_id)
            self._publish(event, decision_id, **more)
            return done

        return await self._commit(found)

    async def _commit(self, operation: Callable[[Tx], Awaitable[T]]) -> T:
        """Run an operation in a transaction, and save the chain head after the commit."""
        seen = await asyncio.to_thread(self.chain_heads.load_or_none, self.scope.agent_id)
        async with self.scope.transaction() as tx:
            result = await operation(tx)
            head = await ledger.get_extended_head(tx, seen, agent_id=self.scope.agent_id)
            after_commit(lambda: asyncio.to_thread(self.chain_heads.save, self.scope.agent_id, head))
        return result

    def _publish(self, event: str, decision_id: UUID, **more: str) -> None:
        self.scope.publish(f"decision.{event}", {"decision_id": str(decision_id), **more})

    async def _resolve(self, tx: Tx, decision_ref: str) -> UUID:
        return await resolve_id(tx, decision_ref, agent_id=self.scope.agent_id, kind="decision")


def _enforce(preview: DecisionPreview) -> None:
    if preview.censor_check.blocks:
        raise CensorError(f"A censor forbids it: {preview.censor_check.message}.", hint="Choose another option.")
    if stopped := [ruling.message for ruling in preview.guardrail_results if ruling.blocks]:
        raise GuardrailError(
            "; ".join(stopped), hint="Nothing was recorded. Change the decision, or see `newton guard list`."
        )


def _results_to_json(preview: DecisionPreview) -> list[JsonObject]:
    """Return guardrail and censor results as stored."""
    ruled: list[JsonObject] = [
        {"guardrail": ruling.rule.name, "verdict": ruling.verdict} for ruling in preview.guardrail_results
    ]
    return ruled + [{"censor": str(censor.memory_id), "verdict": "warned"} for censor in preview.censor_check.matches]
