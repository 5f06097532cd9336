"""Another embedding model takes over: the old one answers until then, and nothing that was taken away comes back."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from uuid import UUID

from newton.db.pool import Database
from newton.dialogue import sessions
from newton.dialogue.messages import Message
from newton.ids import derive_model_id
from newton.memory import vectors
from newton.memory.forgetting import forget
from newton.memory.recall import recall
from newton.memory.search_types import MemorySearch, SearchLimits
from newton.memory.vectors import EmbeddingOutbox, ReembedResult, reembed
from newton.providers.embedding import Embedder, Vector
from newton.providers.fakes import BrokenEmbedder
from tests.db.test_outbox import Picky, know
from tests.support import NOON, teller


class Other(Picky):
    identity = "hashed-words/other"


async def test_after_a_change_of_model_every_memory_gets_a_vector_of_the_new_one(db: Database, agent: UUID) -> None:
    await know(db, agent, "Oslo is cold", "Rome  is\nwarm")
    async with db.transaction(agent) as tx:
        session_id = await sessions.ensure_session(tx, agent_id=agent, ref="s", now=NOON)
        said = [
            Message(role="user", content="I like  it here", said_at=NOON),
            Message(role="user", name="Ana", content="So do I", said_at=NOON),
        ]
        await sessions.append(tx, said, session_id=session_id, ctx=teller(agent))
    first, other = Picky(), Other()
    await EmbeddingOutbox(db, first, agent).drain()
    assert (await reembed(db, first, agent_id=agent, now=NOON)) == ReembedResult(0, is_active=True), (
        "nothing to do for the model that made them"
    )
    async with db.transaction(agent) as tx:
        assert await vectors.count_embedded_elsewhere(tx, agent_id=agent, model_id=derive_model_id(first.identity)) == 0
        assert await vectors.count_embedded_elsewhere(tx, agent_id=agent, model_id=derive_model_id(other.identity)) == 4
    assert "newton reembed" in ((await EmbeddingOutbox(db, other, agent).drain()).stopped_by or "")
    assert await reembed(db, other, agent_id=agent, now=NOON) == ReembedResult(4, is_active=True)
    assert sorted(other.asked) == sorted(first.asked), "the same words stand for each"
    assert "newton reembed" in ((await EmbeddingOutbox(db, first, agent).drain()).stopped_by or "")
    async with db.transaction(agent) as tx:
        assert await tx.fetchval("select count(*) from memory.embeddings") == 4, "the old ones are gone"


class Forgetful(Other):
    """A model that is at work for so long that something else happens meanwhile."""

    def __init__(self, meanwhile: Callable[[], Awaitable[object]]) -> None:
        super().__init__()
        self._meanwhile = meanwhile

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        made = await super().embed(texts)
        await self._meanwhile()
        return made


async def found_by(db: Database, agent: UUID, embedder: Embedder, text: str) -> tuple[set[str], Mapping[str, str]]:
    """What is found by meaning alone, and what is said to be missing."""
    search = MemorySearch(db=db, agent_id=agent, limits={"fact": SearchLimits(10, 10)})
    recalled = await recall(text, embedder=embedder, search=search)
    return {found.micro for found in recalled.memories if found.similarity}, recalled.missing


async def test_the_old_model_answers_until_the_new_one_takes_over_under_load(db: Database, agent: UUID) -> None:
    # "recall keeps working; identity stored; resumable"
    await know(db, agent, *(f"Cup {n} is white" for n in range(20)))
    first = Picky()
    await EmbeddingOutbox(db, first, agent).drain()
    said = list[int]()

    async def more() -> None:
        """Somebody asks, and writes, and the model that was there embeds it."""
        found, missing = await found_by(db, agent, first, "a white cup")
        assert len(found) >= 10 and not missing
        if len(said) < 3:
            said.append(len(said))
            await know(db, agent, f"Saucer {len(said)} is blue")
            await EmbeddingOutbox(db, first, agent).drain()

    stopped = await reembed(db, Forgetful(more), agent_id=agent, now=NOON, limit=5)
    assert stopped == ReembedResult(5, is_active=False), "killed here, it goes on below"
    async with db.transaction(agent) as tx:
        assert await vectors.read_active_model(tx, agent_id=agent) == first.identity
    assert (await reembed(db, Forgetful(more), agent_id=agent, now=NOON)) == ReembedResult(18, is_active=True)
    async with db.transaction(agent) as tx:
        assert await vectors.read_active_model(tx, agent_id=agent) == Other.identity
        assert await tx.fetchval("select count(*) from memory.embeddings") == 23
    assert len((await found_by(db, agent, Other(), "a white cup"))[0]) >= 10
    found, missing = await found_by(db, agent, first, "a white cup")
    assert (found, missing) == (set(), {"embeddings": f"the active embedding model is {Other.identity}"})


async def test_what_is_forgotten_while_the_new_model_works_leaves_no_vector(db: Database, agent: UUID) -> None:
    await know(db, agent, "Oslo is cold", "Rome is warm")
    await EmbeddingOutbox(db, Picky(), agent).drain()

    async def forgotten() -> None:
        async with db.transaction(agent) as tx:
            rows = await tx.fetch("select memory_id from memory.memories where full_text like 'Oslo%'")
            for row in rows:
                await forget(tx, [row[0]], derived=True, reason="asked for", ctx=teller(agent))

    assert (await reembed(db, Forgetful(forgotten), agent_id=agent, now=NOON)).is_active
    async with db.transaction(agent) as tx:
        assert await tx.fetchval("select count(*) from memory.embeddings") == 1


async def test_a_model_that_does_not_answer_does_not_take_over(db: Database, agent: UUID) -> None:
    await know(db, agent, "Oslo is cold")
    await EmbeddingOutbox(db, Picky(), agent).drain()
    done = await reembed(db, BrokenEmbedder(identity="other"), agent_id=agent, now=NOON)
    assert (done.is_active, done.stopped_by) == (False, "The embedding endpoint does not answer.")
    assert (await found_by(db, agent, Picky(), "cold Oslo"))[0] == {"Oslo is cold"}
