"""What was known at a past moment is what a replay of everything told up to then comes to.

Planted and seen to fail: `as_they_were` that takes the last change before the moment for the state after it, that
leaves out releases, or that counts a change made at the moment itself as a later one.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

import pytest

from newton.db.pool import Database
from newton.errors import ConflictError
from newton.heart.facts.fact_edits import set_core
from newton.heart.facts.fact_store import confirm, disprove, retract, supersede
from newton.heart.lifecycle import engine
from newton.memory.memory import PERSON_TIERS, TRUST_TIERS, Trust
from newton.memory.memory_reader import read_as_of
from newton.memory.recall import SQL as RECALL
from tests.db.telling import day, known, on, says, tell

DAYS = 40
CURRENT = ("NEW", "CONFIRMED", "CORE")
TRUSTS: Sequence[Trust] = ("user", "user", "user", "agent", "tool", "web")
DOORS = ("chat", "import", "shell")


@dataclass(frozen=True, slots=True)
class Said:
    """One telling: when it was told, of what time, by whom, and where."""

    told: float
    of: float
    trust: Trust
    door: str
    source: str

    @property
    def outside(self) -> bool:
        return self.trust in ("tool", "web")


@dataclass(slots=True)
class Fact:
    """Everything that was ever said about one fact, in days."""

    topic: str
    until: float | None
    said: list[Said]
    marked: float = 1e9
    wrong: float = 1e9
    insisted: list[float] = field(default_factory=list[float])
    replaced: list[tuple[float, "Fact"]] = field(default_factory=list[tuple[float, "Fact"]])
    replacing: list[tuple[float, "Fact"]] = field(default_factory=list[tuple[float, "Fact"]])

    def quarantined(self, at: float) -> bool:
        first, *later = [said for said in self.said if said.told <= min(at, self.wrong)]
        others = {said.door for said in later if said.outside} - {first.door}
        vouched = any(said.trust in ("user", "operator") for said in later)
        return first.outside and not vouched and len(others) < 2

    def since(self, at: float) -> float:
        return max(self.said[0].of, self.again(at))

    def over(self, at: float) -> bool:
        return self.until is not None and self.since(at) <= self.until <= at

    def ended(self, at: float) -> bool:
        """Whether it is over, or something that is not over was put in its place and was told after it."""
        standing = [(when, other) for when, other in self.replaced if when <= at < other.wrong and not other.over(at)]
        put = [max(when, other.again(at)) for when, other in standing]
        outlived = any(
            other.again(at) > max(when, self.again(at)) for when, other in self.replacing if when <= at < other.wrong
        )
        return self.over(at) or outlived or bool(put and max(put) >= self.again(at))

    def vouched(self, at: float) -> bool:
        """Whether a person said it again, or marked it."""
        return self.marked <= at or any(said.trust in PERSON_TIERS for said in self.said[1:] if said.told <= at)

    def may_follow(self, older: "Fact", at: float, *, was_core: bool) -> bool:
        """Whether it may be put in the place of an older one, which may be core already."""
        if was_core or older.marked <= at:
            return False
        said_again = any(said.trust in PERSON_TIERS for said in self.said[1:] if said.told <= at)
        if said_again or self.said[0].trust in PERSON_TIERS:
            return True
        ranks = [TRUST_TIERS.index(fact.said[0].trust) for fact in (self, older)]
        return not older.vouched(at) and ranks[0] <= ranks[1]

    def repeated(self, at: float) -> list[Said]:
        """Who told it again: of a person's fact only persons count."""
        is_own = self.said[0].trust in PERSON_TIERS
        return [said for said in self.said[1:] if said.told <= at and (said.trust in PERSON_TIERS or not is_own)]

    def again(self, at: float) -> float:
        """The latest time of which it was told again."""
        told = [said.of for said in self.repeated(at) if not said.outside]
        return max([*told, *(when for when in self.insisted if when <= at)], default=-1)

    def standing(self, at: float) -> str:
        first, later = self.said[0], self.repeated(at)
        # all that models state is one source
        sources = {
            "" if said.trust == "agent" else said.source
            for said in later
            if not (said.outside or said.source == first.source or said.trust == first.trust == "agent")
        }
        if self.marked <= at or len(sources) >= 3:
            return "CORE"
        return "CONFIRMED" if any(first.outside or not said.outside for said in later) else "NEW"


@dataclass(slots=True)
class Log:
    """A mind as a log of what it was told, with the states after each telling, change and start of a day."""

    facts: dict[str, Fact] = field(default_factory=dict[str, Fact])
    states: list[tuple[float, dict[str, str]]] = field(default_factory=lambda: [(-1.0, {})])

    def tell(self, words: str, *, topic: str, said: Said, until: float | None) -> None:
        self.facts.setdefault(words, Fact(topic, until, [])).said.append(said)

    def replace(self, old: str, new: str, now: float) -> None:
        if any(other is self.facts[new] for _, other in self.facts[old].replaced):
            self.facts[new].insisted.append(now)  # said once more, so now
        self.facts[old].replaced.append((now, self.facts[new]))
        self.facts[new].replacing.append((now, self.facts[old]))

    def review(self, now: float) -> None:
        """Keep the states that follow from the log so far, and from which facts were core before."""
        before = self.states[-1][1]
        core = [fact for words, fact in self.facts.items() if before.get(words) == "CORE"]
        holding = [fact for fact in self.facts.values() if self._may_hold(fact, now)]
        self.states.append((now, {words: self._state(fact, holding, core, now) for words, fact in self.facts.items()}))

    def at(self, moment: float) -> dict[str, tuple[str, bool]]:
        """State and quarantine of every fact there was, from the log up to the moment alone."""
        _, states = max((one for one in self.states if one[0] <= moment), key=lambda one: one[0])
        return {words: (state, self.facts[words].quarantined(moment)) for words, state in states.items()}

    def _may_hold(self, fact: Fact, moment: float) -> bool:
        return not fact.quarantined(moment) and fact.wrong > moment and not fact.ended(moment)

    def _state(self, fact: Fact, holding: list[Fact], core: list[Fact], moment: float) -> str:
        if fact.wrong <= moment:
            return "INACTIVE"
        place = (fact.since(moment), fact.said[0].told)
        was_core = any(other is fact for other in core)
        followed = any(one is fact for one in holding) and any(
            (other.since(moment), other.said[0].told) > place and other.may_follow(fact, moment, was_core=was_core)
            for other in holding
            if other.topic == fact.topic and not fact.topic.endswith("likes")
        )
        return "SUPERSEDED" if fact.ended(moment) or followed else fact.standing(moment)


@dataclass(slots=True)
class Life:
    """Lives at random, and keeps the log."""

    db: Database
    agent: UUID
    chosen: random.Random
    log: Log = field(default_factory=Log)

    async def tell(self, now: float) -> None:
        subject, attribute = self.chosen.choice(["Ana", "Ben"]), self.chosen.choice(["lives in", "works at", "likes"])
        value, topic = f"v{self.chosen.randrange(12)}", f"{subject} {attribute}"
        of = self.chosen.choice([now, now, self.chosen.uniform(0, now)])
        until = float(int(of) + self.chosen.randrange(1, 9)) if self.chosen.random() < 0.2 else None
        trust, door = self.chosen.choice(TRUSTS), self.chosen.choice(DOORS)
        stated = self.log.facts.get(says(value, of, subject=subject, attribute=attribute).content)
        if stated and trust in PERSON_TIERS and stated.said[0].trust not in PERSON_TIERS:
            until = stated.until  # with another end, it would be a fact of its own
            of = of if until is None else min(of, until)
        told = says(value, of, subject=subject, attribute=attribute, until=until)
        async with self.db.transaction(self.agent) as tx:
            await tell(tx, told, ctx=on(now, self.agent, trust=trust, origin=door))
        said = Said(now, of, trust, door, f"{door} {day(of):%Y-%m-%d}")
        self.log.tell(told.content, topic=topic, said=said, until=until)

    async def change(self, now: float) -> None:
        """Something is said about a fact, or about two."""
        if len(self.log.facts) < 2:
            return
        one, two = self.chosen.sample(sorted(self.log.facts), 2)
        try:
            async with self.db.transaction(self.agent) as tx:
                ids = [await known(tx, words, self.agent) for words in (one, two)]
                match self.chosen.randrange(8):
                    case 0:
                        await retract(tx, ids[0], ctx=on(now, self.agent))
                        self.log.facts[one].wrong = min(self.log.facts[one].wrong, now)
                    case 1:
                        await disprove(tx, ids[0], by_fact=ids[1], ctx=on(now, self.agent))
                        self.log.facts[one].wrong = min(self.log.facts[one].wrong, now)
                    case 2:
                        await set_core(tx, [ids[0]], is_core=True, ctx=on(now, self.agent))
                        self.log.facts[one].marked = min(self.log.facts[one].marked, now)
                    case 3 | 4:
                        await supersede(tx, ids[0], by_fact=ids[1], ctx=on(now, self.agent))
                        self.log.replace(one, two, now)
                    case _:
                        door = self.chosen.choice(DOORS)
                        ctx = on(now, self.agent, origin=door)
                        await confirm(tx, ids[0], ref=str(now), source=f"{door} {now}", ctx=ctx)
                        self.log.facts[one].said.append(Said(now, now, "user", door, f"{door} {now}"))
        except ConflictError:
            return


async def lived(db: Database, agent: UUID, seed: int) -> tuple[Log, list[float]]:
    """A log of some weeks, and moments in them. The daily job runs at the start of each day, when facts end."""
    life = Life(db, agent, random.Random(seed))
    for number in range(DAYS):
        await engine.run_lifecycle(db, on(number, agent))
        life.log.review(number)
        for now in sorted(number + life.chosen.uniform(0.01, 0.99) for _ in range(4)):
            await (life.tell(now) if life.chosen.random() < 0.6 else life.change(now))
            life.log.review(now)
    return life.log, sorted(life.chosen.uniform(0, DAYS) for _ in range(20))


@pytest.mark.parametrize("seed", [1, 8, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 3, 4, 6, 7))])
async def test_the_states_at_a_past_moment_are_those_of_a_replay_up_to_it(db: Database, agent: UUID, seed: int) -> None:
    # S002-16
    log, moments = await lived(db, agent, seed)
    async with db.transaction(agent) as tx:
        ids = {words: await known(tx, words, agent) for words in log.facts}
        told = [said.told for fact in log.facts.values() for said in fact.said]
        for moment in [*moments, *told[:5], DAYS - 0.001]:
            were = await read_as_of(tx, agent_id=agent, memory_ids=list(ids.values()), moment=day(moment))
            at = {memory_id: (was.state, was.quarantined) for memory_id, was in were.items()}
            expected = log.at(moment)
            assert {words: at[ids[words]] for words in ids if ids[words] in at} == expected, moment
            rows = await RECALL["list_hidden_at"].fetch_all(
                tx, agent_id=agent, moment=day(moment), quarantined=[], past_states=["SUPERSEDED", "INACTIVE"]
            )
            hidden = {row["memory_id"] for row in rows}
            sought = {words for words, state in expected.items() if state[0] in CURRENT and not state[1]}
            assert {words for words in ids if ids[words] not in hidden} == sought
    seen = {state for moment in moments for state, _ in log.at(moment).values()}
    assert seen == {"NEW", "CONFIRMED", "CORE", "SUPERSEDED", "INACTIVE"}
