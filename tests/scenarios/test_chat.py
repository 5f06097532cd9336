"""A conversation in the terminal, from its first input to its end."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from prompt_toolkit.history import FileHistory

from newton.agent.verbs import Remark
from newton.content.frames import load_frames
from newton.content.profiles import load_profiles
from newton.errors import DatabaseError
from newton.memory.outbox import backlog
from newton.providers import tokens
from newton.providers.chat import ChatModel
from newton.providers.embedding import Embedder, Vector
from newton.providers.offline import HashEmbedder, ScriptedChat
from newton.runtime.cli.chat import Conversation, History
from newton.runtime.talk.here import Here
from newton.runtime.wiring import Newton
from newton.settings import load
from tests.scenarios.conftest import Mind
from tests.scenarios.test_turn import log

TOLD = ("The ferry is called Artemis.", "It leaves at nine.")


class Lost(HashEmbedder):
    """Loses the database while it embeds the first time."""

    def __init__(self) -> None:
        self.lost = asyncio.Event()

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        if not self.lost.is_set():
            self.lost.set()
            raise DatabaseError("The database cannot be reached.", hint="Start it.")
        return await super().embed(texts)


def newton(mind: Mind, embedder: Embedder) -> Newton:
    return Newton(
        settings=load(env={}),
        agent_id=mind.agent_id,
        db=mind.db,
        clock=mind.clock,
        count=tokens.count,
        embedder=embedder,
        configured=embedder,
        frames=load_frames(),
        profiles=load_profiles(),
        contexts=mind.contexts,
    )


def here(mind: Mind, embedder: Embedder, model: ChatModel | None = None) -> Here:
    return Here(newton=newton(mind, embedder), turns=mind.turns(model))


async def conversation(mind: Mind, embedder: Embedder, *said: str) -> Conversation:
    lines = iter(said)

    async def read() -> str:
        if isinstance(embedder, Lost):
            await embedder.lost.wait()
        mind.clock.advance(timedelta(seconds=1))
        for line in lines:
            return line
        raise EOFError

    return Conversation(partner=here(mind, embedder), read=read, name="s1")


async def titles(mind: Mind) -> list[str]:
    async with mind.db.work(mind.agent_id) as tx:
        return [row["title"] for row in await tx.fetch("select title from heart.episodes")]


async def test_a_conversation_becomes_an_episode_when_it_ends(mind: Mind) -> None:
    talk = await conversation(mind, HashEmbedder(), *TOLD, "/quit", "Never said.")
    await talk.hold()
    assert [content for role, content in await log(mind, await mind.session()) if role == "user"] == [*TOLD]
    assert await titles(mind) == [TOLD[0]]


async def test_it_becomes_one_too_when_the_work_in_the_background_fails(mind: Mind) -> None:
    mind.embedder = None
    await mind.verbs.remember(Remark(content="What waits for its vector"))
    talk = await conversation(mind, Lost(), *TOLD)
    with pytest.raises(DatabaseError):
        await talk.hold()
    assert await titles(mind) == [TOLD[0]]
    async with mind.db.work(mind.agent_id) as tx:
        assert (await backlog(tx, agent_id=mind.agent_id)).waiting == 0


def test_no_secret_that_was_typed_is_kept_in_the_history(tmp_path: Path) -> None:
    path = tmp_path / "history"
    history = History(str(path))
    history.append_string("/remember the key is AKIAIOSFODNN7EXAMPLE")
    history.append_string("half a \ud800 character")
    kept = list(FileHistory(str(path)).load_history_strings())
    assert kept == ["half a ? character", "/remember the key is [REDACTED:aws-key]"]


async def test_context_says_whether_the_context_stood_and_why(mind: Mind, capsys: pytest.CaptureFixture[str]) -> None:
    # S002-14
    await mind.know(*TOLD)
    said = ("What is the ferry called?", "/context", "Why?", "/context")
    talk = await conversation(mind, HashEmbedder(), "/frame question", *said)
    talk.partner = here(mind, HashEmbedder(), ScriptedChat("Artemis.", "It is her name."))
    await talk.hold()
    shown = capsys.readouterr().out
    assert "\nbuilt: the session has no context yet\n" in shown
    assert "\nstood: the input leans on what was said before\n" in shown


async def test_a_frame_is_shown_forced_and_let_go(mind: Mind, capsys: pytest.CaptureFixture[str]) -> None:
    said = ("/frame", "/frame debug", "hello", "/frame", "/frame auto", "Should we use tabs or spaces?", "/frame")
    await (await conversation(mind, HashEmbedder(), *said, "/quit")).hold()
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith(("Frame", "The last answer"))]
    assert told[:4] == [
        "Frame: chosen for each input.",
        "Frame: debug.",
        "Frame: debug.",
        "The last answer: frame debug (forced), because it was asked for.",
    ]
    assert told[4:6] == ["Frame: chosen for each input."] * 2
    assert told[6].startswith("The last answer: frame decision (")
    assert "because it says 'Should we'" in told[6]
