"""The report of growth on a told story, with every figure computed by hand."""

from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

import pytest

from newton.agent.growth.report import GrowthReport, PeriodMetric
from newton.agent.growth.rules import assess
from newton.agent.growth.service import GrowthService
from newton.brain import decisions
from newton.brain.codec import NewDecision
from newton.brain.draft import DecisionReason, ReasonKind
from newton.brain.outcomes import Verdict
from newton.clock import ManualClock
from newton.content.skills import SkillFile
from newton.db.pool import Database
from newton.errors import InputError
from newton.heart import activations, censors, episodes, procedures
from newton.heart.activations import ActivationResult, TrackedKind
from newton.heart.censors import CensorRule
from newton.heart.facts import fact_store
from newton.memory.lookup import short_id
from newton.memory.outbox import EmbeddingOutbox
from newton.providers.fakes import HashEmbedder
from newton.runtime.reports import growth as shown
from tests.db.deciding import choice, reviewed
from tests.db.telling import day, known, on, says, tell
from tests.db.world import told
from tests.support import NOON, agent_scope, teller


class Story:
    """Things that happen on days; day 0 is now."""

    def __init__(self, db: Database, agent: UUID) -> None:
        self.db, self.agent = db, agent
        self.growing = GrowthService(scope=agent_scope(agent_id=agent, db=db, clock=ManualClock(NOON)))

    async def decide(
        self,
        on: float,
        description: str,
        outcome: tuple[Verdict, float] | None = None,
        *,
        sure: float = 0.7,
        tags: tuple[str, ...] = (),
        category: str = "process",
        kinds: tuple[ReasonKind, ...] = ("intuition",),
        expected: str | None = None,
        look: datetime | None = None,
    ) -> UUID:
        made = replace(
            choice(description, confidence=sure, at=day(on)),
            tags=tags,
            category=category,
            reasons=tuple(DecisionReason(kind, "It has always been so") for kind in kinds),
            expected=expected,
            look_again_at=look,
        )
        review = reviewed(outcome[0], at=day(outcome[1])) if outcome else None
        async with self.db.transaction(self.agent) as tx:
            intent = NewDecision(draft=made, review=review)
            (recorded,) = await decisions.record(tx, [intent], ctx=teller(now=day(on)))
        return recorded.decision_id

    async def settle(self) -> None:
        await EmbeddingOutbox(self.db, HashEmbedder(), self.agent).drain()

    async def use(self, kind: TrackedKind, memory_id: UUID, at: float, result: ActivationResult | None = None) -> None:
        ctx = on(at)
        async with self.db.transaction(self.agent) as tx:
            (activation,) = await activations.record_activations(tx, kind, [memory_id], stage="input", ctx=ctx)
            if result:
                await activations.record_result(tx, kind, memory_id, result, activation=activation, ctx=ctx)

    async def week(self) -> GrowthReport:
        await self.settle()
        return await self.growing.report_weeks()


@pytest.fixture
def story(db: Database, agent: UUID) -> Story:
    return Story(db, agent)


def pair(figure: PeriodMetric) -> tuple[float | None, float | None, int, int]:
    return figure.now, figure.before, figure.n, figure.n_before


async def test_a_mistake_is_repeated_by_who_comes_near_it_and_takes_no_account_of_it(story: Story) -> None:
    failed = await story.decide(-30, "Use Redis for the session cache", ("failure", -20), tags=("cache",))
    await story.decide(-25, "Use Redis for the page cache")  # nobody knew then
    await story.decide(-10, "Use Redis for the page cache", tags=("former",))
    ignoring = await story.decide(-3, "Use Redis for the page cache", ("failure", -1), category="other")
    linking = await story.decide(-2, "Use Redis for the page cache", category="linked")
    thinking = await story.decide(-2, "Use Redis for the page cache", category="thought")
    await story.decide(-2, "Use Redis for the page cache", expected=f"Unlike {short_id(failed)}", category="named")
    await story.decide(-2, "Move Monday meetings", category="meetings")
    alike = await story.decide(-1, "Use Redis for sessions in the cluster")
    await story.decide(-1, "Use Redis for sessions in the cluster", kinds=("intuition", "empirical"))
    await story.decide(-1, "Use Redis for sessions in the cluster", kinds=())
    await story.decide(-1, "Use Redis for sessions in the cluster", category="elsewhere")
    async with story.db.transaction(story.agent) as tx:
        await decisions.link(tx, failed, "relates", linking, ctx=teller())
        await decisions.add_thought(tx, thinking, f"not like {str(failed).upper()}", ctx=teller())

    found = await story.week()
    assert pair(found.metrics.made) == (9, 1, 9, 1)
    assert pair(found.metrics.near) == (5, 1, 5, 1)
    assert pair(found.metrics.answered) == (3, 0, 3, 0)
    assert pair(found.metrics.repeated) == (2 / 9, 1.0, 9, 1)
    assert [(one.pair.decision_id, one.pair.failed_id) for one in found.repeats.repeated] == [
        (ignoring, failed),
        (alike, failed),
    ]
    assert [one.outcome for one in found.repeats.repeated] == ["failure", None]
    month = await story.growing.report_since(day(-28))
    assert pair(month.metrics.repeated) == (3 / 11, 0.0, 11, 1)


async def test_a_reason_that_also_led_to_success_is_no_mistake(story: Story) -> None:
    await story.decide(-30, "Use Redis for the session cache", ("failure", -20))
    again = await story.decide(-3, "Use Redis for the page cache", ("failure", -1))
    assert [one.pair.decision_id for one in (await story.week()).repeats.repeated] == [again]
    await story.decide(-28, "Use Redis for the cache of pages", ("success", -10))
    assert (await story.week()).repeats.near == 0
    assert await forecasts_that_repeat(story) == 0


async def forecasts_that_repeat(story: Story) -> int:
    """How many of a hundred forecasts, alike in wording, repeat a mistake by the report."""
    for number in range(100):
        outcome: Verdict = "success" if number % 5 < 3 else "failure"
        made = -6 + number / 20
        await story.decide(
            made, f"Team {number} wins the game", (outcome, made + 0.01), kinds=("empirical",), category="forecast"
        )
    return len((await story.week()).repeats.repeated)


async def test_who_was_shown_a_failure_is_counted_apart(story: Story) -> None:
    failed = await story.decide(-30, "Use Redis for the session cache", ("failure", -20))
    new = await story.decide(-2, "Use Redis for the page cache")
    async with story.db.transaction(story.agent) as tx:
        await decisions.relate(tx, new, {failed: 0.8}, ctx=teller())
    found = await story.week()
    figures = found.metrics
    assert [figure.now for figure in (figures.near, figures.answered, figures.shown)] == [1, 0, 1]
    assert (found.repeats.repeated, assess(found).strengths) == ((), ())
    async with story.db.transaction(story.agent) as tx:
        await decisions.add_thought(tx, new, f"unlike {short_id(failed)} it may be lost", ctx=teller())
    figures = (await story.week()).metrics
    assert [figure.now for figure in (figures.near, figures.answered, figures.shown)] == [1, 1, 0]


async def test_who_answers_one_of_several_failures_repeats_none(story: Story) -> None:
    await story.decide(-30, "Use Redis for the session cache", ("failure", -20))
    other = await story.decide(-29, "Use Redis for the page cache", ("failure", -20))
    third = await story.decide(-2, "Use Redis for the page cache", category="new")
    found = await story.week()
    assert [one.pair.failed_id for one in found.repeats.repeated] == [other]
    async with story.db.transaction(story.agent) as tx:
        await decisions.link(tx, third, "contradicts", other, ctx=teller())
    assert (await story.week()).repeats.repeated == ()


async def test_what_has_no_vector_is_not_compared_and_that_is_said(story: Story) -> None:
    await story.decide(-30, "Use Redis for the session cache", ("failure", -20))
    await story.settle()
    await story.decide(-2, "Use Redis for the page cache")
    found = await story.growing.report_weeks()
    assert pair(found.metrics.repeated) == (None, None, 0, 0)
    said = assess(found)
    assert any("1 decision has no embedding vector" in sentence for sentence in said.recommendations)
    assert "no vector: 1." in shown.render_markdown(found, said, agent="ana")


async def test_decisions_are_scored_in_the_period_in_which_their_outcome_came(story: Story) -> None:
    await story.decide(-3, "a plan", ("failure", -1), sure=0.9)
    await story.decide(-3, "some plan", ("success", -2), sure=0.8)
    await story.decide(-2, "another plan", ("partial", -1), sure=0.6)
    await story.decide(-25, "the old plan", ("success", -6), sure=0.5, look=day(-15))
    await story.decide(-10, "the former plan", ("success", -8))
    late = await story.decide(-4, "the late plan", look=day(-1))
    await story.decide(-4, "the open plan", look=day(1))
    found = await story.week()
    figures = found.metrics
    assert pair(figures.made) == (5, 1, 5, 1)
    assert pair(figures.judged) == (4, 1, 4, 1)
    assert pair(figures.accuracy) == (2.5 / 4, 1.0, 4, 1)
    assert pair(figures.brier) == (pytest.approx((0.81 + 0.04 + 0.01 + 0.25) / 4), pytest.approx(0.09), 4, 1)
    assert pair(figures.bias) == (pytest.approx((2.8 - 2.5) / 4), pytest.approx(-0.3), 4, 1)
    assert pair(figures.slope) == (None, None, 5, 1)
    assert pair(figures.overdue) == (1, 1, 1, 1)
    assert [one.decision_id for one in found.overdue] == [late]
    assert "1 decision waits for an outcome: `newton decisions list --due`." in assess(found).recommendations


async def test_censors_and_procedures_are_told_with_what_changed(story: Story) -> None:
    async with story.db.transaction(story.agent) as tx:
        rule = CensorRule(trigger="push to main", reason="it is reviewed first")
        (censor,) = await censors.add_rules(tx, [rule], ctx=on(-12))
        skill = SkillFile(name="tea", description="Make tea.", core=("Boil water.",))
        await procedures.add_procedure(tx, skill, ctx=on(-12))
        tea = (await procedures.get_latest(tx, "tea", agent_id=story.agent)).memory_id
    for at in (-10, -3, -2):
        await story.use("censor", censor, at)
    await story.use("censor", censor, -1, "false_positive")
    await story.use("procedure", tea, -9, "success")
    for at in (-5, -4, -3):
        await story.use("procedure", tea, at, "failure")
    await story.use("procedure", tea, -2, "neutral")
    found = await story.week()
    figures = found.metrics
    assert pair(figures.met) == (3, 1, 3, 1)
    assert pair(figures.false_positives) == (1, 0, 1, 0)
    assert pair(figures.precision) == (pytest.approx(2 / 3), 1.0, 3, 1)
    assert (figures.precision.reliable_now, figures.escalated.now, figures.retired.now) == (None, 1, 0)
    assert pair(figures.uses) == (4, 1, 4, 1)
    assert pair(figures.succeeded) == (0.0, 1.0, 3, 1)
    assert (figures.ineffective.now, figures.effective.now) == (1, 0)
    assert [(one.kind, one.state) for one in found.state_changes] == [
        ("censor", "ESCALATED"),
        ("procedure", "INEFFECTIVE"),
    ]
    assert found.procedures == (("tea", 4, 0, 3, 1, 1, 0),)
    said = assess(found)
    assert "Procedures that became ineffective: tea." in said.concerns
    assert "Rewrite the procedure that does not work: `newton procedures show tea`." in said.recommendations


async def test_facts_are_confirmed_superseded_and_disproved(story: Story) -> None:
    async with story.db.transaction(story.agent) as tx:
        await tell(tx, says("tea", -20, attribute="likes"))
        await tell(tx, says("Oslo", -10))
        await tell(tx, says("jam", -9, attribute="likes"))
        await tell(tx, says("Bergen", -3))
        await tell(tx, says("tea", -2, attribute="likes"))
        jam = await known(tx, "jam")
        await fact_store.retract(tx, jam, ctx=on(-1))
        await episodes.add_episodes(tx, [told("e1")], ctx=teller(now=day(-8)))
        await episodes.add_episodes(tx, [replace(told("e2"), content="More.")], ctx=teller(now=day(-1)))
    figures = (await story.week()).metrics
    assert pair(figures.learnt) == (1, 2, 1, 2)
    assert pair(figures.confirmed) == (1 / 4, 0.0, 4, 3)
    assert pair(figures.superseded) == (1, 0, 1, 0)
    assert pair(figures.disproved) == (1, 0, 1, 0)
    assert pair(figures.episodes) == (1, 1, 1, 1)


async def test_an_agent_that_has_done_nothing_is_told_so(story: Story) -> None:
    found = await story.growing.report_weeks()
    said = assess(found)
    assert said == ((), (), ())
    for text in (shown.render_markdown(found, said, agent="ana"), shown.render_html(found, said, agent="ana")):
        assert "too few data for strengths or concerns" in text
    assert {figure["now"] for figure in figures_of(found)} == {0, None}


def figures_of(found: GrowthReport) -> list[dict[str, object]]:
    figures = shown.report_to_json(found, assess(found))["figures"]
    assert isinstance(figures, dict)
    return list(figures.values())  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]  # JSON


async def test_a_period_that_cannot_be_is_refused(story: Story) -> None:
    for weeks in (0, -1, 10**9):
        with pytest.raises(InputError, match="is not possible"):
            await story.growing.report_weeks(weeks)
    for start in (NOON, NOON + timedelta(days=1), NOON - timedelta(days=200 * 366)):
        with pytest.raises(InputError, match="is not possible"):
            await story.growing.report_since(start)
