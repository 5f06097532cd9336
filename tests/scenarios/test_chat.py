"""A conversation in the terminal, from its first input to its end."""

import asyncio
import re
from collections.abc import Sequence
from contextlib import aclosing
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest
from prompt_toolkit.history import FileHistory

from newton.agent.services.memories import FactDraft
from newton.client import Client
from newton.errors import DatabaseError, NotFoundError
from newton.memory.vectors import read_backlog
from newton.providers.embedding import Vector
from newton.providers.fakes import HashEmbedder, ScriptedChat
from newton.runtime.chat_backend.local import LocalAgent
from newton.runtime.chat_backend.protocol import ChatBackend, run_named
from newton.runtime.chat_backend.remote import RemoteAgent
from newton.runtime.cli.talk.chat import RedactingFileHistory
from newton.runtime.cli.talk.chat_conversation import ChatConversation
from newton.runtime.cli.talk.operation_lines import SLASH_COMMANDS
from newton.runtime.cli.talk.slash_commands import run_slash_command
from tests.endpoint import Wire, endpoint
from tests.scenarios.conftest import Meet, Mind, newton
from tests.scenarios.handy import StagedChat
from tests.scenarios.test_turn import log
from tests.support import apart, until

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


def conversation(mind: Mind, partner: ChatBackend, *said: str, begin: asyncio.Event | None = None) -> ChatConversation:
    lines = iter(said)

    async def read() -> str:
        if begin:
            await begin.wait()
        mind.clock.advance(timedelta(seconds=1))
        for line in lines:
            return line
        raise EOFError

    return ChatConversation(backend=partner, read_line=read, run_command=run_slash_command, name="s1")


async def titles(mind: Mind) -> list[str]:
    return [row["title"] for row in await mind.fetch("select title from heart.episodes")]


async def test_a_conversation_becomes_an_episode_when_it_ends(mind: Mind, meet: Meet) -> None:
    async with meet(None) as partner:
        await run_named(partner, "create_session", session="s1")
        await conversation(mind, partner, *TOLD, "/quit", "Never said.").run()
    assert [content for role, content in await log(mind, await mind.session()) if role == "user"] == [*TOLD]
    assert await titles(mind) == [TOLD[0]]


async def test_it_becomes_one_too_when_the_work_in_the_background_fails(mind: Mind) -> None:
    mind.embedder = None
    await mind.verbs.remember(FactDraft(content="What waits for its vector"))
    lost = Lost()
    own = newton(mind, lost)
    talk = conversation(mind, LocalAgent(newton=own, turn_runner=own.turn_runner(None)), *TOLD, begin=lost.lost)
    with pytest.raises(DatabaseError):
        await talk.run()
    assert await titles(mind) == [TOLD[0]]
    async with mind.db.transaction(mind.agent_id) as tx:
        assert (await read_backlog(tx, agent_id=mind.agent_id)).waiting == 0


async def test_what_is_private_is_answered_and_not_stored(
    mind: Mind, meet: Meet, capsys: pytest.CaptureFixture[str]
) -> None:
    await mind.know("The ferry is called Artemis.")
    model = ScriptedChat("At nine.", "Artemis.", "Artemis, as I said.", "Fine.")
    secret = ("What is the ferry called? I fear it.", "What did I just ask?")
    said = ("When is tea?", "/private", *secret, "/context", "/why 1", "/private", "Thanks.")
    async with meet(model) as partner:
        await run_named(partner, "create_session", session="s1")
        await conversation(mind, partner, *said, "/quit").run()
    spoken = [content for _, content in await log(mind, await mind.session())]
    assert spoken == ["When is tea?", "At nine.", "Thanks.", "Fine."]
    (known, second), (_, third), (_, last) = (apart(asked) for asked in model.received[1:4])
    assert [text for _, text in second] == ["When is tea?", "At nine.", secret[0]] and "is called Artemis" in known
    assert [text for _, text in third][2:] == [secret[0], "Artemis.", secret[1]]
    assert not any("I fear it" in one.text or "Artemis, as" in one.text for one in model.received[3])
    assert [text for _, text in last] == ["When is tea?", "At nine.", "Thanks."]
    assert await mind.fetchval("select count(*) from cognition.bundles where input = any($1)", list(secret)) == 0
    out, err = capsys.readouterr()
    assert "Private: nothing of the next inputs" in out and "is called Artemis" in out
    assert "The items of a private answer's context cannot be explained" in err


def test_neither_what_is_private_nor_a_secret_is_kept_in_the_history(tmp_path: Path) -> None:
    paused, path = [False], tmp_path / "history"
    history = RedactingFileHistory(str(path), lambda: paused[0])
    history.append_string("/remember the key is AKIAIOSFODNN7EXAMPLE")
    history.append_string("half a \ud800 character")
    paused[0] = True
    history.append_string("my secret")
    kept = list(FileHistory(str(path)).load_history_strings())
    assert kept == ["half a ? character", "/remember the key is [REDACTED:aws-key]"]


async def test_context_says_whether_the_context_stood_and_why(
    mind: Mind, meet: Meet, capsys: pytest.CaptureFixture[str]
) -> None:
    # S002-14
    await mind.know(*TOLD)
    said = ("What is the ferry called?", "/context", "Why?", "/context")
    async with meet(ScriptedChat("Artemis.", "It is her name.")) as partner:
        await run_named(partner, "create_session", session="s1")
        await conversation(mind, partner, "/frame question", *said).run()
    shown = capsys.readouterr().out
    assert "\nbuilt: the session has no context yet\n" in shown
    assert "\nstood: the input is a follow-up\n" in shown


async def test_a_frame_is_shown_forced_and_let_go(mind: Mind, meet: Meet, capsys: pytest.CaptureFixture[str]) -> None:
    said = ("/frame", "/frame debug", "hello", "/frame", "/frame auto", "Should we use tabs or spaces?", "/frame")
    async with meet(None) as partner:
        await conversation(mind, partner, *said, "/quit").run()
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith(("Frame", "Last answer"))]
    assert told[:4] == [
        "Frame: selected for each input.",
        "Frame: debug.",
        "Frame: debug.",
        "Last answer: frame debug (requested); reason: the caller requested it.",
    ]
    assert told[4:6] == ["Frame: selected for each input."] * 2
    assert told[6].startswith("Last answer: frame decision (")
    assert "reason: the input says 'Should we'" in told[6]


async def test_every_command_does_and_says_the_same_through_either_door(
    mind: Mind, meet: Meet, capsys: pytest.CaptureFixture[str]
) -> None:
    said = [
        *("/remember The ferry is called Artemis", "/remember The ferry is called Artemis", "/why 1"),
        *("What is the ferry called?", "/why 1", "/why nothing", "/frame nope", "/remember"),
        *("/tasks push Ship it", "/tasks push Test it", "/tasks block no key", "/tasks resume 9", "/tasks resume 2"),
        *("/tasks pop done", "/tasks", "/branch other 1", "/switch", "/switch third", "half a \udcff", "/nope"),
        *("/recal ferry", "/supersede 000000", "/help"),
    ]
    async with meet(None) as partner:
        await run_named(partner, "create_session", session="s1")
        await conversation(mind, partner, *said, "/quit").run()
        with pytest.raises(NotFoundError):
            await run_named(partner, "messages", session="fourth")
    out, err = capsys.readouterr()
    for part in (
        *(
            "Remembered. (",
            "The memory is already stored; ",
            "From memory:\n- The ferry is called Artemis\n",
            "trust user\n",
        ),
        "+1.0000  similarity 1.000 × 1\n",
        *("▸ 1. Ship it  ← current\n   ‖ 2. Test it\n        no key\n", "▸ 2. Test it  ← current"),
        "▸ 1. Ship it  ← current\n   ✓ 2. Test it\n        done\n",
        *("Session other.\nSession other.\n", "Session third. It is new; /switch other returns to the previous one."),
    ):
        assert part in out
    for part in (
        *("no context yet", "matches 'nothing'", "frame 'nope'", "no task 9", "lone surrogate", "/nope"),
        *(
            "Did you mean '/recall'?",
            "requires CONTENT.\n  Its arguments are [--at AT] [--line LINE] MEMORY_ID",
        ),
    ):
        assert part in err
    assert all(name in out for name in SLASH_COMMANDS)
    assert [content for role, content in await log(mind, await mind.session("third")) if role == "user"] == []


async def test_who_leaves_stops_the_answer_and_what_was_said_is_kept(mind: Mind, meet: Meet) -> None:
    # S002-16
    asked = {"Which ferry?": "Artemis", "And the other?": "Boreas"}
    logged = [line for text, name in asked.items() for line in (("user", text), ("assistant", name))]

    async def kept() -> bool:
        return await log(mind, await mind.session()) == logged

    async with meet(StagedChat(*asked.values(), end=asyncio.Event().wait)) as partner:
        for question, name in asked.items():
            async with aclosing(partner.run_turn("s1", question)) as pieces, asyncio.timeout(60):
                assert name in str(await anext(pieces))
        await until(kept)


async def test_a_daemon_that_goes_away_in_an_answer_ends_that_alone(
    mind: Mind, capsys: pytest.CaptureFixture[str]
) -> None:
    async def ends(wire: Wire) -> None:
        await wire.begin_stream()
        await wire.event("{}")
        wire.writer.write(b'event: delta\ndata: {"text": "It is"}\n\n')

    async def breaks(wire: Wire) -> None:
        await ends(wire)
        await wire.writer.drain()
        wire.writer.transport.abort()

    async with (
        endpoint(ends, breaks, lambda wire: wire.send(200, {"items": [], "session_id": str(UUID(int=1))})) as server,
        Client(server.url.removesuffix("/v1"), token="x") as client,
    ):
        there = RemoteAgent(client=client, token_info={"agent": "ana", "scope": "write", "model": None})
        await conversation(mind, there, "Which ferry?", "And the other?").run()
    out, err = capsys.readouterr()
    assert (out, err.count("was lost during the reply")) == ("It isIt is", 2)


async def test_why_on_an_empty_context_says_that_it_is_empty(
    mind: Mind, meet: Meet, capsys: pytest.CaptureFixture[str]
) -> None:
    async with meet(ScriptedChat("Hello.")) as partner:
        await run_named(partner, "create_session", session="s1")
        await conversation(mind, partner, "Which alphabet does Georgian use?", "/why 1", "/quit").run()
    assert "This context has no memories: nothing was found for its input." in capsys.readouterr().err


async def test_a_memory_is_forgotten_in_two_steps(mind: Mind, meet: Meet, capsys: pytest.CaptureFixture[str]) -> None:
    stored = await mind.verbs.remember(FactDraft(content="The ferry is called Artemis."))
    short = stored.memory_id.hex[-8:]
    async with meet(None) as partner:
        await run_named(partner, "create_session", session="s1")
        await conversation(mind, partner, f"/forget {short}").run()
        token = re.findall(r"--token (\w+)", capsys.readouterr().out)[0]
        assert await mind.verbs.recall("ferry"), "it is only shown"
        await conversation(mind, partner, f"/forget --token {token} {short}", f"/expand {short}").run()
    shown = capsys.readouterr()
    assert short in shown.out and "was forgotten" in shown.err
