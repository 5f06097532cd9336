"""Decisions of an agent: check, record and review them, and verify the hash chain of their records."""

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from newton.agent.loop.action_gate import ActionGate, CensorCheck
from newton.agent.scope import AgentScope
from newton.brain import decisions, ledger, queries
from newton.brain.calibration import snapshots
from newton.brain.decision_codec import (
    DecisionReview,
    NewDecision,
    ReviewMethod,
    to_embedding_text,
    validate_draft,
)
from newton.brain.decisions import DecisionAmendment, ManualLink
from newton.brain.drafts import (
    BaseRate,
    DecisionDraft,
    DecisionPreview,
    GuardrailResult,
    MatchingCensor,
    RecordedDecision,
    ReviewedDecision,
    SimilarDecision,
    TrackRecord,
    Verdict,
    score_parts,
)
from newton.brain.hash_chain import BrokenLink, ChainHead, ChainHeadFiles, JsonObject
from newton.brain.queries import CategoryCount, DecisionDetail, DecisionFilter, DecisionOutcome, DecisionSummary
from newton.db.pool import Tx, after_commit
from newton.errors import CensorError, ConfigError, ConflictError, GuardrailError
from newton.heart.lifecycle.engine import LifecycleContext
from newton.memory.lookup import resolve_id, short_id
from newton.memory.memory import own_ref
from newton.memory.recall import recall
from newton.memory.search_types import MemorySearch, SearchLimits

SEARCH_LIMIT, MAX_PRECEDENTS = 20, 5
MIN_PRECEDENT_SIMILARITY = 0.35  # minimum vector or lexical similarity of a precedent

ID_PLACEHOLDER = "{decision}"  # in a verifier: the id; the text of the decision is never passed
EXIT_STATUS_VERDICTS: dict[int, Verdict] = {0: "success", 1: "failure"}

GuardrailEvaluator = Callable[[Tx, DecisionDraft, TrackRecord], Awaitable[Sequence[GuardrailResult]]]


class CheckedDraft(NamedTuple):
    """A draft of a decision with normalized fields, and the results of its checks."""

    draft: DecisionDraft
    preview: DecisionPreview


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionService:
    """Decisions of one agent, identified by id or the end of an id.

    `verifiers` maps a category to the command that finds out the outcome of a decision of this category.
    """

    scope: AgentScope
    gate: ActionGate
    chain_heads: ChainHeadFiles
    evaluate_guardrails: GuardrailEvaluator
    verifiers: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    verifier_timeout_seconds: float = 60.0

    async def preview(self, draft: DecisionDraft) -> DecisionPreview:
        """Check a draft of a decision without recording anything; return the results.

        Raises InputError for an invalid draft.
        """
        return (await self._preview(validate_draft(draft), dry_run=True))[1]

    async def decide(self, draft: DecisionDraft, *, supersedes: Sequence[str] = ()) -> RecordedDecision:
        """Check a draft of a decision, and record it unless a check blocks it. Raises as `evaluate` and `record`."""
        return await self.record(await self.evaluate(draft), supersedes=supersedes)

    async def evaluate(self, draft: DecisionDraft) -> CheckedDraft:
        """Check a draft of a decision before it is recorded; return it with the results. Censor matches are recorded.

        Raises InputError for an invalid draft, and CensorError or GuardrailError if one of these blocks the draft.
        """
        draft = validate_draft(draft)
        check, preview = await self._preview(draft, dry_run=False)
        if check.blocks:
            what = f"A censor forbids this decision: {check.message}."
            raise CensorError(what, hint=f"Choose another option. {check.remedy}")
        if messages := [result.message for result in preview.guardrails if result.blocks]:
            hint = "Nothing was recorded. Change the decision; `newton guard list` lists the guardrails."
            raise GuardrailError("; ".join(messages), hint=hint)
        return CheckedDraft(draft, preview)

    async def record(self, checked: CheckedDraft, *, supersedes: Sequence[str] = ()) -> RecordedDecision:
        """Record a draft that `evaluate` has checked, with the results of the checks. Calls no model.

        `supersedes` names the decisions that it replaces.
        """
        draft, preview = checked
        await self.scope.reserve_storage(to_embedding_text(draft), draft.context or "")
        async with self._write() as (tx, ctx):
            draft = replace(draft, ref=own_ref(draft.ref, ctx.trust)) if draft.ref else draft
            draft = await decisions.restore_original_time(tx, draft, agent_id=ctx.agent_id)
            decision = NewDecision(draft=draft, rulings=_results_to_json(preview))
            (recorded,) = await decisions.record(tx, [decision], ctx=ctx)
            for old_ref in supersedes:
                old_id = await self._resolve(tx, old_ref)
                await decisions.supersede(tx, recorded.decision_id, old_id, ctx=ctx)
                self._publish("superseded", old_id, superseded_by=str(recorded.decision_id))
            if recorded.is_new:
                self._publish("recorded", recorded.decision_id, stakes=draft.stakes)
                similar = {found.decision_id: found.cosine for found in preview.precedents}
                await decisions.relate(tx, recorded.decision_id, similar, ctx=ctx)
        if supersedes:
            await self.refresh_snapshot()
        results = {one.name: getattr(preview, one.name) for one in fields(preview)}
        return RecordedDecision(**results, decision_id=recorded.decision_id, is_new=recorded.is_new)

    async def add_thought(self, decision_ref: str, text: str) -> UUID:
        """Add a thought to a decision that has no outcome yet, and return the id of the decision."""
        async with self._change(decision_ref, "deliberated") as (tx, ctx, decision_id):
            await decisions.add_thought(tx, decision_id, text, ctx=ctx)
            return decision_id

    async def amend(self, decision_ref: str, amendment: DecisionAmendment) -> UUID:
        """Add text to a decision, and return the id of the decision."""
        async with self._change(decision_ref, "amended") as (tx, ctx, decision_id):
            await decisions.amend(tx, decision_id, amendment, ctx=ctx)
            return decision_id

    async def mark_done(self, decision_ref: str) -> UUID:
        """Mark a decision as carried out, and return its id. Its outcome can still be recorded later."""
        async with self._change(decision_ref, "done") as (tx, ctx, decision_id):
            await decisions.mark_done(tx, decision_id, ctx=ctx)
            return decision_id

    async def review(
        self,
        decision_ref: str,
        verdict: Verdict,
        *,
        lesson: str | None = None,
        reviewed_at: datetime | None = None,
        how: ReviewMethod = "hand",
        counts: bool = True,
    ) -> UUID:
        """Record the outcome of a decision, which is possible once, and once more for a person after a model.

        Return the id of the decision. `reviewed_at` defaults to the current time. A review that does not count is a
        report of a model: it is added to the decision as a text, and changes no outcome.
        """
        at, trust = reviewed_at or self.scope.now(), self.scope.trust
        outcome = DecisionReview(verdict=verdict, at=at, how=how, lesson=lesson, trust=trust)
        if not counts:
            return await self.amend(decision_ref, DecisionAmendment(text=outcome.report))
        async with self._change(decision_ref, "reviewed", outcome=verdict) as (tx, ctx, decision_id):
            await decisions.review(tx, decision_id, outcome, ctx=ctx)
        await self.refresh_snapshot()
        return decision_id

    async def refresh_snapshot(self) -> None:
        """Compute the calibration snapshot again from all recorded outcomes, and store it."""
        async with self.scope.write() as (tx, ctx):
            await snapshots.take_snapshot(tx, agent_id=ctx.agent_id, now=ctx.now, count_tokens=ctx.count_tokens)

    async def run_verifier(self, decision_ref: str) -> Verdict | None:
        """Run the command configured for the decision's category, and record the outcome that it reports, if any.

        Return this outcome, or None. Raises ConfigError if the category has no command, and ConflictError if the
        decision already has an outcome.
        """
        decision = await self.get(decision_ref)
        command, decision_id = self.verifiers.get(decision.category), decision.memory.memory_id
        if command is None:
            hint = "Set the command of the category under [verifiers] in newton.toml."
            raise ConfigError(f"No verifier is configured for the category {decision.category!r}.", hint=hint)
        if decision.review and decision.review.is_of_person:
            what = f"The decision {short_id(decision_id)} was already reviewed."
            raise ConflictError(what, hint="An outcome can be recorded only once.")
        verdict = await run_verifier(command, decision_id, timeout_seconds=self.verifier_timeout_seconds)
        if verdict:
            await self.review(str(decision_id), verdict, how="verifier")
        return verdict

    async def supersede(self, new_ref: str, old_ref: str) -> UUID:
        """Replace the decision `old_ref` by another, and return the id of the newer one."""
        async with self._write() as (tx, ctx):
            new_id, old_id = await self._resolve(tx, new_ref), await self._resolve(tx, old_ref)
            await decisions.supersede(tx, new_id, old_id, ctx=ctx)
            self._publish("superseded", old_id, superseded_by=str(new_id))
        await self.refresh_snapshot()
        return new_id

    async def link(self, decision_ref: str, link_type: ManualLink, other_ref: str) -> UUID:
        """Link a decision to another one, and return the id of the first."""
        async with self._change(decision_ref, "linked") as (tx, ctx, decision_id):
            await decisions.link(tx, decision_id, link_type, await self._resolve(tx, other_ref), ctx=ctx)
            return decision_id

    async def erase(self, decision_ref: str, *, reason: str) -> tuple[UUID, bool]:
        """Permanently delete the text of a decision; its record stays.

        Return the id of the decision, and False if the text was deleted before.
        """
        async with self._change(decision_ref, "erased") as (tx, ctx, decision_id):
            return decision_id, await decisions.erase(tx, decision_id, reason=reason, ctx=ctx)

    async def list_decisions(self, criteria: DecisionFilter) -> list[DecisionSummary]:
        """Return the decisions that meet the criteria."""
        async with self.scope.write() as (tx, ctx):
            return await queries.list_decisions(tx, criteria, agent_id=ctx.agent_id, now=ctx.now)

    async def list_outcomes(
        self, *, category: str | None = None, outcome: Verdict | None = None, limit: int = 20
    ) -> list[DecisionOutcome]:
        """Return the decisions that have an outcome, with outcomes and lessons, latest review first."""
        async with self.scope.transaction() as tx:
            return await queries.list_outcomes(
                tx, agent_id=self.scope.agent_id, category=category, outcome=outcome, limit=limit
            )

    async def list_reviewed_decisions(self) -> list[ReviewedDecision]:
        """Return all decisions that have an outcome, as calibration needs them."""
        async with self.scope.transaction() as tx:
            return await queries.list_reviewed_decisions(tx, agent_id=self.scope.agent_id)

    async def check_guardrails(self, draft: DecisionDraft) -> tuple[TrackRecord, Sequence[GuardrailResult]]:
        """Return past outcomes in the category of a draft, and the result of each guardrail for it."""
        async with self.scope.write() as (tx, ctx):
            record = await queries.get_track_record(tx, agent_id=ctx.agent_id, category=draft.category, now=ctx.now)
            return record, await self.evaluate_guardrails(tx, draft, record)

    async def list_categories(self) -> list[CategoryCount]:
        async with self.scope.transaction() as tx:
            return await queries.list_categories(tx, agent_id=self.scope.agent_id)

    async def get(self, decision_ref: str) -> DecisionDetail:
        """Return a decision with all its details."""
        async with self.scope.transaction() as tx:
            return await queries.get_decision(tx, await self._resolve(tx, decision_ref), agent_id=self.scope.agent_id)

    async def verify_chain(self) -> BrokenLink | ChainHead:
        """Return the first broken link of the hash chain of decisions; if it is intact, its last link (head).

        Each record of the chain has the hash of the one before it. The head is also compared with its copy in a file
        outside the database.
        """
        saved_head = self.chain_heads.load(self.scope.agent_id)
        async with self.scope.transaction() as tx:
            return await ledger.verify_chain(tx, agent_id=self.scope.agent_id, external_head=saved_head)

    async def _preview(self, draft: DecisionDraft, *, dry_run: bool) -> tuple[CensorCheck, DecisionPreview]:
        """Compare a draft with censors, similar decisions and guardrails. With `dry_run`, matches are not recorded."""
        text = "\n".join(filter(None, [draft.description, draft.context, draft.expected]))
        censors = await self.gate.check(text, "action", dry_run=dry_run)
        limits = SearchLimits(SEARCH_LIMIT, SEARCH_LIMIT)
        search = MemorySearch(db=self.scope.db, agent_id=self.scope.agent_id, limits={"decision": limits})
        recalled = await recall(
            to_embedding_text(draft), embedder=self.scope.embedder, search=search, is_question=False
        )
        record, results = await self.check_guardrails(draft)
        similar = [hit for hit in recalled.memories if max(hit.similarity, hit.lexical) >= MIN_PRECEDENT_SIMILARITY]
        preview = DecisionPreview(
            blocked=censors.blocks or any(result.blocks for result in results),
            quality_parts=score_parts(draft),
            precedents=[
                SimilarDecision(decision_id=one.memory_id, outcome=one.outcome, cosine=one.similarity, text=one.summary)
                for one in similar[:MAX_PRECEDENTS]
            ],
            base_rate=BaseRate(
                category=draft.category, reviewed=record.category_judged, success_rate=record.category_success_rate
            ),
            overdue=record.overdue,
            censors=[
                MatchingCensor(memory_id=one.memory_id, blocks=one.is_blocking, text=one.context_line)
                for one in censors.matches
            ],
            guardrails=results,
            missing={**recalled.missing, **({"censors by meaning": censors.unchecked} if censors.unchecked else {})},
        )
        return censors, preview

    @asynccontextmanager
    async def _change(
        self, decision_ref: str, event: str, **details: str
    ) -> AsyncGenerator[tuple[Tx, LifecycleContext, UUID]]:
        """Open a transaction for a change of one decision, as `_write` does; publish `event` at its end."""
        async with self._write() as (tx, ctx):
            decision_id = await self._resolve(tx, decision_ref)
            yield tx, ctx, decision_id
            self._publish(event, decision_id, **details)

    @asynccontextmanager
    async def _write(self) -> AsyncGenerator[tuple[Tx, LifecycleContext]]:
        """Open a transaction; yield it with a write context.

        After the commit, save the head of the hash chain to its file.
        """
        saved_head = await asyncio.to_thread(self.chain_heads.load_or_none, self.scope.agent_id)
        async with self.scope.write() as (tx, ctx):
            yield tx, ctx
            head = await ledger.get_extended_head(tx, saved_head, agent_id=ctx.agent_id)
            after_commit(lambda: asyncio.to_thread(self.chain_heads.save, ctx.agent_id, head))

    def _publish(self, event: str, decision_id: UUID, **details: str) -> None:
        self.scope.publish(f"decision.{event}", {"decision_id": str(decision_id), **details})

    async def _resolve(self, tx: Tx, decision_ref: str) -> UUID:
        return await resolve_id(tx, decision_ref, agent_id=self.scope.agent_id, kind="decision")


def _results_to_json(preview: DecisionPreview) -> list[JsonObject]:
    """Return the results of guardrails and censors as JSON, to store with the decision."""
    return [
        *({"guardrail": result.name, "verdict": result.verdict} for result in preview.guardrails),
        *({"censor": str(censor.memory_id), "verdict": "warned"} for censor in preview.censors),
    ]


async def run_verifier(command: Sequence[str], decision_id: UUID, *, timeout_seconds: float) -> Verdict | None:
    """Run a command that finds out the outcome of a decision, without a shell; return this outcome.

    Exit status 0 means success, 1 failure; for another one, or if the command runs longer than `timeout_seconds`,
    return None. Raises ConfigError if the command cannot be run.
    """
    if not command:
        raise ConfigError("The verifier command is empty.", hint="Correct [verifiers] in newton.toml.")
    args = [arg.replace(ID_PLACEHOLDER, str(decision_id)) for arg in command]
    try:
        process = await asyncio.create_subprocess_exec(
            *args, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, start_new_session=True
        )
    except (OSError, ValueError) as error:
        hint = "Correct [verifiers] in newton.toml."
        raise ConfigError(f"The verifier command {args[0]!r} cannot be run: {error}.", hint=hint) from None
    try:
        async with asyncio.timeout(timeout_seconds):
            return EXIT_STATUS_VERDICTS.get(await process.wait())
    except TimeoutError:
        return None
    finally:
        with suppress(ProcessLookupError):  # the whole process group
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
