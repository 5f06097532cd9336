"""Jobs about decisions: reminders, calibration, the weekly report, the chain."""

from collections.abc import Sequence

from newton.agent.appraising import Appraisal, appraised
from newton.agent.growth import Figures
from newton.brain import reading, snapshots
from newton.brain.chain import Fault
from newton.brain.reading import Filter, Listed
from newton.db.pool import Tx
from newton.errors import ConflictError
from newton.runtime.jobs.job import Job, counted
from newton.runtime.jobs.queue import Did, Outcome
from newton.runtime.jobs.schedule import daily, weekly
from newton.runtime.wiring import Newton

MOST_REMINDED = 50


async def remind(newton: Newton) -> Outcome:
    due = await newton.deciding("job remind").listed(Filter(due=True, most=MOST_REMINDED))
    return reminded(due)


def reminded(due: Sequence[Listed]) -> Outcome:
    """Which decisions wait for an outcome, by their ids; their words stay where they can be erased. Pure."""
    if not due:
        return Outcome(because="no decision is past its date to look again")
    since = min(one.look_again_at for one in due if one.look_again_at)
    because = f"{counted(len(due), 'decision')} past the date to look again, the first since {since:%Y-%m-%d}"
    return Outcome(because=because, did={"decisions": [str(one.decision_id) for one in due]})


async def calibrate(newton: Newton) -> Outcome:
    async with newton.scope.transaction() as tx:
        judged = await reading.judged(tx, agent_id=newton.scope.agent_id)
        noted = await snapshots.last_judged(tx, agent_id=newton.scope.agent_id)
    plan = unnoted(len(judged), noted)
    if plan is None:
        return Outcome(because="the last snapshot knows every outcome")

    async def write(tx: Tx) -> Did:
        await snapshots.take(
            tx, agent_id=newton.scope.agent_id, now=newton.scope.now(), count=newton.scope.count_tokens
        )
        return {"judged": len(judged)}

    return Outcome(because=plan, write=write)


def unnoted(judged: int, noted: int) -> str | None:
    """Why a snapshot is to be taken; None when it is not. Pure."""
    if judged == noted:
        return None
    return f"{counted(judged, 'outcome')} known, and the last snapshot was taken of {noted:,}"


async def grow(newton: Newton) -> Outcome:
    report = await newton.growing().weekly()
    return reported(report.figures, appraised(report))


def reported(figures: Figures, said: Appraisal) -> Outcome:
    """The figures of the week; what they mean may name procedures, so it is told when it is asked for. Pure."""
    counts = {
        "strengths": len(said.strengths),
        "concerns": len(said.concerns),
        "recommendations": len(said.recommendations),
    }
    week = {name: getattr(figures, name).now for name in ("made", "judged", "overdue", "learnt", "confirmed")}
    did: Did = {**counts, **{name: value for name, value in week.items() if value is not None}}
    told = ", ".join(counted(number, name.removesuffix("s")) for name, number in counts.items())
    return Outcome(because=f"a week is over: {told}; `newton growth` tells them", did=did)


async def verify(newton: Newton) -> Outcome:
    """Raises ConflictError for a chain that is broken: it is found among what was given up, and nothing mends it."""
    found = await newton.deciding("job verify").verify()
    if isinstance(found, Fault):
        raise ConflictError(
            f"The ledger of decisions is broken at record {found.seq}: {found.why}.",
            hint="Restore the database from a backup; what was decided since can be told again.",
        )
    if not found.seq:
        return Outcome(because="no decision was made yet")
    return Outcome(because=f"all {found.seq:,} records are as they were written", did={"records": found.seq})


JOBS = (
    Job(name="remind", does="Says which decisions wait for an outcome.", schedule=daily(7), act=remind),
    Job(name="calibrate", does="Works out what stated confidence is worth.", schedule=daily(4), act=calibrate),
    Job(name="growth", does="Reports how the agent has grown.", schedule=weekly("Monday", 6), act=grow),
    Job(name="verify", does="Verifies the ledger of decisions.", schedule=daily(4, 30), act=verify),
)
