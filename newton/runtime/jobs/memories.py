"""Jobs that keep memories in order: vectors, summaries, states, and what a model is asked for off the hot path."""

from collections import Counter
from collections.abc import Sequence

from newton.agent.extraction import Harvest
from newton.db.pool import Tx
from newton.dialogue import abridging, conversations
from newton.errors import SpendError
from newton.heart.lifecycle.engine import Living
from newton.memory import outbox
from newton.memory.outbox import Backlog, Drained
from newton.memory.reembedding import reembed as made_anew
from newton.memory.transitions import Step
from newton.runtime.jobs.job import Act, Job, counted
from newton.runtime.jobs.queue import Outcome
from newton.runtime.jobs.schedule import daily, minutely
from newton.runtime.wiring import Newton

REEMBED = "reembed"
EMBEDDED_ANEW = 5_000  # memories a run: some minutes with the model that ships
NO_MODEL = "no model is set to ask"
SPENT = "the model's tokens of today are spent"

STATES: dict[Living, str] = {
    "fact": "Moves facts to the states that their record asks for.",
    "episode": "Shortens and archives episodes that are old.",
    "procedure": "Judges procedures by how they went.",
    "censor": "Retires and restores censors by how often they were right.",
    "caps": "Archives what is beyond the most of a kind, and brings back what has room.",
}


async def embed(newton: Newton) -> Outcome:
    """A model that is away is no failure: what waits is tried again at the next slot."""
    drained = await newton.upkeep("job embed").settle(most=None)
    async with newton.scope.transaction() as tx:
        left = await outbox.backlog(tx, agent_id=newton.scope.agent_id)
    return embedded(drained, left)


def embedded(drained: Drained, left: Backlog) -> Outcome:
    """What came of it. Pure."""
    tried = drained.embedded + drained.failed
    did = {"embedded": drained.embedded, "refused": drained.failed, "waiting": left.waiting, "given_up": left.given_up}
    if drained.down and left.waiting:
        waiting = counted(left.waiting, "memory waits", "memories wait")
        return Outcome(because=f"{waiting} for a vector: {drained.down}", did=did if tried else None)
    if tried:
        return Outcome(because=f"{counted(tried, 'memory', 'memories')} waited for a vector", did=did)
    return Outcome(because="nothing waited for a vector")


async def reembed(newton: Newton) -> Outcome:
    """The model of the settings takes over from the one by which memories are found, at most so many at a time."""
    if newton.configured is None or newton.scope.embedder is newton.configured:
        return Outcome(because="every vector is of the model that is set")
    done = await made_anew(
        newton.scope.db, newton.configured, agent_id=newton.scope.agent_id, now=newton.scope.now(), most=EMBEDDED_ANEW
    )
    why = "another model is set" if done.down is None else f"another model is set, and {done.down}"
    return Outcome(because=why, did={"memories": done.embedded, "taken_over": int(done.active)})


async def summarise(newton: Newton) -> Outcome:
    late = await newton.upkeep("job summarise").summarise()
    if not late:
        return Outcome(because="every summary is up to date")
    return Outcome(because=f"{counted(late, 'session')} had said enough for a new summary", did={"sessions": late})


async def generalise(newton: Newton) -> Outcome:
    told = await newton.upkeep("job generalise").generalise()
    most = newton.scope.thresholds.facts_per_attribute
    if not told:
        return Outcome(because=f"no attribute has more than {most} current facts")
    because = f"{counted(told, 'fact')} were of attributes with more than {most}"
    return Outcome(because=because, did={"facts": told})


def living(kind: Living) -> Job:
    """The job that moves memories of one kind. What is due, and why, is decided by the rules of the lifecycle."""

    async def act(newton: Newton) -> Outcome:
        return stepped(await newton.upkeep(f"job {name}").live(kind))

    name = f"lifecycle-{kind}"
    return Job(name=name, does=STATES[kind], schedule=daily(3, 20), act=act)


def stepped(steps: Sequence[Step]) -> Outcome:
    """How many took which step. Why each did is kept with its memory. Pure."""
    events = Counter(step.event for step in steps)
    if not events:
        return Outcome(because="every state is what the record asks for")
    said = ", ".join(f"{number:,} {event}" for event, number in events.most_common())
    return Outcome(because=f"the record asked for {counted(len(steps), 'step')}: {said}", did=dict(events))


async def extract(newton: Newton) -> Outcome:
    upkeep = newton.upkeep("job extract")
    if upkeep.asking is None:
        return Outcome(because=NO_MODEL)
    async with newton.scope.transaction() as tx:
        unread = await conversations.unread(tx, agent_id=newton.scope.agent_id, most=1)
    if not unread:
        return Outcome(because="a model has read every conversation")
    try:
        return harvested(await upkeep.extract())
    except SpendError:
        return Outcome(because=SPENT)


def harvested(harvest: Harvest) -> Outcome:
    did = {
        "conversations": harvest.conversations,
        "facts": harvest.facts,
        "procedures": harvest.procedures,
        "censors": harvest.censors,
    }
    return Outcome(because=f"{counted(harvest.conversations, 'conversation')} no model had read", did=did)


async def compress(newton: Newton) -> Outcome:
    upkeep = newton.upkeep("job compress")
    if upkeep.asking is None:
        return Outcome(because=NO_MODEL)
    if not await _cut(newton):
        return Outcome(because="no line is longer than its short form")
    told = await upkeep.shorten()
    return Outcome(because="lines were longer than their short forms hold", did={"lines": told})


async def _cut(newton: Newton) -> bool:
    async def read(tx: Tx) -> bool:
        return bool(await abridging.cut(tx, agent_id=newton.scope.agent_id, most=1))

    return await newton.scope.db.retried(newton.scope.agent_id, read)


def _job(name: str, act: Act, does: str) -> Job:
    return Job(name=name, does=does, schedule=SCHEDULES[name], act=act)


SCHEDULES = {
    "embed": minutely(2),
    "summarise": minutely(10),
    "extract": minutely(30),
    "compress": minutely(60),
    REEMBED: minutely(10),
    "generalise": daily(3, 10),
}

JOBS = (
    _job("embed", embed, "Gives vectors to memories that wait for them, and compares new facts with what is known."),
    _job("summarise", summarise, "Brings the summaries of sessions up to date."),
    _job("extract", extract, "Has the model read conversations that none has read."),
    _job("compress", compress, "Has the model tell long lines shorter."),
    _job(REEMBED, reembed, "Has the embedding model that is set take over from another one."),
    _job("generalise", generalise, "Tells in few what has grown too many."),
    *(living(kind) for kind in STATES),
)
