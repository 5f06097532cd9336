"""A year that minds can live through: what is told, done and met on which day, the same for each of them."""

import random
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from newton.db.pool import Database, Tx
from newton.errors import ConflictError
from newton.heart.episodes import NewEpisode, add_episodes
from newton.heart.facts.fact_edits import set_core
from newton.heart.facts.fact_store import NewFact, confirm, disprove, retract, supersede
from newton.ids import new_id
from newton.memory import store
from newton.memory.memory import Kind, NewMemory, Trust, digest
from newton.memory.representations import make_short_forms
from newton.memory.store import MemoryConfirmation
from tests.db.telling import day, known, on, says, tell
from tests.support import count, part, teller

DAYS = 365
TRUSTS: Sequence[Trust] = ("user", "user", "user", "user", "agent", "tool", "web")
DOORS = ("chat", "import", "shell", "a.example")
TOPICS = ("lives in", "works at", "status", "likes", "knows", "drinks")
SINGLE = TOPICS[:3]

# What happens to an agent at a time, in days.
Act = Callable[[Tx, UUID, float], Awaitable[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How many of each kind."""

    facts: int
    episodes: int
    procedures: int = 50
    censors: int = 30


@dataclass(frozen=True, slots=True)
class Happening:
    at: float
    act: Act


class Year:
    """The happenings of each day, from a seed."""

    def __init__(self, size: Size, *, seed: int) -> None:
        self.size = size
        self.texts: dict[str, str] = {}
        self._chosen = random.Random(seed)
        self._days: defaultdict[int, list[Happening]] = defaultdict(list)
        happenings = [*self._facts(), *self._episodes(), *self._procedures(), *self._censors()]
        for happening in sorted(happenings, key=lambda happening: happening.at):
            self._days[int(happening.at)].append(happening)

    async def happen(self, db: Database, agent: UUID, number: int) -> None:
        """What happens on that day. What is refused does not."""
        if number in self._days:
            async with db.transaction(agent) as tx:
                for happening in self._days[number]:
                    with suppress(ConflictError):
                        async with part(tx):
                            await happening.act(tx, agent, happening.at)

    def _later(self, at: float) -> float:
        return self._chosen.uniform(at + 0.001, min(at + 120, DAYS))

    def _facts(self) -> Iterator[Happening]:
        told: defaultdict[str, list[tuple[float, str, str]]] = defaultdict(list)
        times = sorted(self._chosen.uniform(0, DAYS - 1) for _ in range(self.size.facts))
        for number, at in enumerate(times):
            subject, attribute = f"p{self._chosen.randrange(2 + self.size.facts // 25)}", self._chosen.choice(TOPICS)
            until = float(int(at) + self._chosen.randrange(1, 60)) if self._chosen.random() < 0.1 else None
            core = self._chosen.random() < 0.05
            of = at if self._chosen.random() < 0.8 else self._chosen.uniform(0, at)
            statement = says(f"v{number}", of, subject=subject, attribute=attribute, until=until, core=core)
            trust, door = self._chosen.choice(TRUSTS), self._chosen.choice(DOORS)
            yield Happening(at, partial(hear, statement=statement, trust=trust, door=door))
            yield from self._retold(at, statement)
            if earlier := told[f"{subject} {attribute}"]:
                yield from self._changed(at, f" v{number}", self._chosen.choice(earlier)[1])
            if attribute not in SINGLE:
                told[f"{subject} {attribute}"].append((at, f" v{number}", trust))
        for topic, facts in told.items():
            yield from self._summed_up(topic, facts)

    def _retold(self, at: float, told: NewFact) -> Iterator[Happening]:
        for _ in range(self._chosen.choice([0, 0, 1, 1, 3, 5])):
            later = self._later(at)
            again = says(told.content.split()[-1], later, subject=told.subject or "", attribute=told.attribute or "")
            trust, door = self._chosen.choice(TRUSTS), self._chosen.choice(DOORS)
            yield Happening(later, partial(hear, statement=again, trust=trust, door=door))

    def _changed(self, at: float, words: str, other: str) -> Iterator[Happening]:
        acts = [partial(act, words=words) for act in (take_back, call_core, agree, agree_unseen)]
        acts += [partial(act, words=words, other=other) for act in (replace, contradict, join)]
        for act, chance in zip(acts, (0.08, 0.05, 0.2, 0.2, 0.08, 0.06, 0.06), strict=True):
            if self._chosen.random() < chance:
                yield Happening(self._later(at), act)

    def _summed_up(self, topic: str, facts: Sequence[tuple[float, str, str]]) -> Iterator[Happening]:
        few = [(at, words) for at, words, trust in facts if trust in ("user", "agent")][:4]
        if len(few) >= 2:
            at = self._later(few[-1][0])
            yield Happening(at, partial(sum_up, topic=topic, words=[words for _, words in few]))

    def _episodes(self) -> Iterator[Happening]:
        for number in range(self.size.episodes):
            at = self._chosen.uniform(0, DAYS - 1)
            content = f"{' ' * self._chosen.choice([0, 3_000])}{'We talked on. ' * self._chosen.randrange(1, 400)}"
            self.texts[f"e{number}"] = content
            yield Happening(at, partial(live_through, number=number, content=content))

    def _procedures(self) -> Iterator[Happening]:
        for number in range(self.size.procedures):
            name, at = f"procedure {number}", self._chosen.uniform(0, 60)
            yield Happening(at, partial(learn_procedure, name=name))
            share = self._chosen.choice([0.1, 0.3, 0.5, 0.7, 0.9])
            for _ in range(self._chosen.randrange(0, 20)):
                result = "success" if self._chosen.random() < share else "failure"
                judged = self._chosen.choice([result, result, result, "neutral", None])
                yield Happening(
                    self._chosen.uniform(at, DAYS), partial(use, kind="procedure", name=name, result=judged)
                )
            if number % 4 == 0:
                out = self._later(at)
                yield Happening(out, partial(retire, name=name, retired=True))
                if number % 8 == 0:
                    yield Happening(self._later(out), partial(retire, name=name, retired=False))

    def _censors(self) -> Iterator[Happening]:
        for number in range(self.size.censors):
            name, at = f"censor {number}", self._chosen.uniform(0, 60)
            yield Happening(at, partial(learn_censor, name=name))
            share = self._chosen.choice([0.1, 0.4, 0.8])
            for _ in range(self._chosen.randrange(0, 12)):
                result = "false_positive" if self._chosen.random() < share else None
                yield Happening(self._chosen.uniform(at, DAYS), partial(use, kind="censor", name=name, result=result))
            if number % 6 == 0:
                yield Happening(self._later(at), partial(retire_censor, name=name))


async def hear(tx: Tx, agent: UUID, at: float, *, statement: NewFact, trust: Trust, door: str) -> None:
    await tell(tx, statement, ctx=on(at, agent, trust=trust, origin=door))


async def take_back(tx: Tx, agent: UUID, at: float, *, words: str) -> None:
    await retract(tx, await known(tx, words, agent), ctx=on(at, agent))


async def call_core(tx: Tx, agent: UUID, at: float, *, words: str) -> None:
    await set_core(tx, [await known(tx, words, agent)], is_core=True, ctx=on(at, agent))


async def agree(tx: Tx, agent: UUID, at: float, *, words: str) -> None:
    await confirm(tx, await known(tx, words, agent), ref=f"agree {at}", source=f"s{at}", ctx=on(at, agent))


async def agree_unseen(tx: Tx, agent: UUID, at: float, *, words: str) -> None:
    """Evidence that nobody reviews: the daily job has to see it."""
    telling = MemoryConfirmation(memory_id=await known(tx, words, agent), ref=f"unseen {at}", source=f"s{at}")
    await store.confirm(tx, [telling], ctx=on(at, agent))


async def replace(tx: Tx, agent: UUID, at: float, *, words: str, other: str) -> None:
    old, new = await known(tx, words, agent), await known(tx, other, agent)
    await supersede(tx, old, by_fact=new, ctx=on(at, agent))


async def contradict(tx: Tx, agent: UUID, at: float, *, words: str, other: str) -> None:
    wrong, right = await known(tx, words, agent), await known(tx, other, agent)
    await disprove(tx, wrong, by_fact=right, ctx=on(at, agent))


async def join(tx: Tx, agent: UUID, at: float, *, words: str, other: str) -> None:
    """Two facts turn out to say the same, and nobody reviews them."""
    await tx.execute(
        "update heart.facts as f set duplicate_of = k.memory_id from heart.facts as k"
        " where f.memory_id = $1 and k.memory_id = $2 and k.duplicate_of is null and f.duplicate_of is null"
        " and not exists (select from heart.facts as t where t.duplicate_of = f.memory_id)",
        await known(tx, words, agent),
        await known(tx, other, agent),
    )


async def sum_up(tx: Tx, agent: UUID, at: float, *, topic: str, words: Sequence[str]) -> None:
    subject, _, attribute = topic.partition(" ")
    told = NewFact(
        ref=f"general {topic}",
        content=f"{topic} all of{''.join(words)} and-so-on",
        valid_from=day(at),
        subject=subject,
        attribute=attribute,
        is_generalization=True,
        sources=tuple([await known(tx, one, agent) for one in words]),
    )
    await tell(tx, told, ctx=on(at, agent, trust="agent"))


async def live_through(tx: Tx, agent: UUID, at: float, *, number: int, content: str) -> None:
    told = NewEpisode(
        ref=f"e{number}", title=f"Talk {number}", content=content, started_at=day(at - 0.01), ended_at=day(at)
    )
    await add_episodes(tx, [told], ctx=on(at, agent))


async def learn_procedure(tx: Tx, agent: UUID, at: float, *, name: str) -> None:
    memory_id = await _written(tx, agent, at, "procedure", "ACTIVE", name)
    await tx.execute(
        "insert into heart.procedures values"
        " ($1, $2, $3, 1, 'how', 'any', '{}', '{}', '{}', '{}', '{do it}', 'details', false)",
        agent,
        memory_id,
        name,
    )


async def learn_censor(tx: Tx, agent: UUID, at: float, *, name: str) -> None:
    memory_id = await _written(tx, agent, at, "censor", "CREATED", name)
    await tx.execute(
        "insert into heart.censors values ($1, $2, 'phrase', $3, 'warn', 'because', null, 3, false)",
        agent,
        memory_id,
        name,
    )


async def _written(tx: Tx, agent: UUID, at: float, kind: Kind, state: str, name: str) -> UUID:
    ctx = teller(agent, now=day(at))
    draft = NewMemory(
        kind=kind,
        state=state,
        forms=make_short_forms(name, count_tokens=count),
        full_text=name,
        indexed_text=name,
        embedding_text=None,
        occurred_at=ctx.now,
        ctx=ctx,
        content_hash=digest(name),
    )
    await store.remember(tx, agent_id=agent, memories=[draft])
    return draft.memory_id


async def use(tx: Tx, agent: UUID, at: float, *, kind: Kind, name: str, result: str | None) -> None:
    """A procedure is followed or a censor met, and judged or not; the daily job has to see it."""
    await tx.execute(
        "insert into heart.activations (agent_id, memory_id, activation_id, activated_at, stage, result, evaluated_at)"
        " select agent_id, memory_id, $4, $5::timestamptz, 'action', $6, case when $6::text is not null then $5 end"
        " from memory.memories where agent_id = $1 and kind = $2 and full_text = $3",
        *(agent, kind, name, new_id(), day(at), result),
    )


async def retire(tx: Tx, agent: UUID, at: float, *, name: str, retired: bool) -> None:
    await tx.execute(
        "update heart.procedures set is_retired = $3 where agent_id = $1 and name = $2", agent, name, retired
    )


async def retire_censor(tx: Tx, agent: UUID, at: float, *, name: str) -> None:
    await tx.execute("update heart.censors set is_retired = true where agent_id = $1 and trigger = $2", agent, name)
