"""Which model answers, as a person chooses it: at the command line, in a chat, and over a daemon."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.endpoint import Endpoint, Wire, endpoint, says
from tests.system.daemons import daemon
from tests.system.typed import Done, ok, typed


@asynccontextmanager
async def offering(*names: str) -> AsyncGenerator[Endpoint]:
    """A server that offers these models; what it was asked for is without their listing."""

    async def respond(wire: Wire) -> None:
        if wire.path.endswith("/models"):
            await wire.send(200, {"object": "list", "data": [{"id": name, "object": "model"} for name in names]})
        else:
            await says([f"I am {wire.body['model']}."])(wire)

    async with endpoint(respond) as server:
        yield server


async def command(home: Path, *words: str, **settings: str) -> Done:
    return await asyncio.to_thread(typed, home, *words, **settings)


async def chat(home: Path, text: str, *words: str, **settings: str) -> "subprocess.CompletedProcess[str]":
    """A chat, which needs a process of its own for its signals."""
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("NEWTON_", "OPENAI_"))}
    shown = {**bare, "NEWTON_DATA_DIR": str(home), "NEWTON_EMBEDDING_PROVIDER": "none", **settings}
    called = [sys.executable, "-m", "newton", "chat", *words]
    return await asyncio.to_thread(
        subprocess.run, called, input=text, cwd=home, env=shown, capture_output=True, text=True, check=True, timeout=60
    )


def used(server: Endpoint) -> list[str]:
    return [body["model"] for body in server.asked if body]


async def test_a_model_is_chosen_for_a_question(home: Path) -> None:
    async with offering("qwen3:8b", "llama3.2:latest") as server:
        address = {"OPENAI_BASE_URL": server.url}
        unsure = await command(home, "ask", "Hi.", **address)
        assert unsure.returncode == 1
        assert "several models: qwen3:8b, llama3.2:latest. Set OPENAI_MODEL" in unsure.stderr
        assert "I am llama3.2." in ok(await command(home, "ask", "Hi.", "--model", "llama3.2", **address))
        wrong = await command(home, "ask", "Hi.", "--model", "gpt-4o", **address, OPENAI_MODEL="qwen3:8b")
        assert (wrong.returncode, "The models are: qwen3:8b, llama3.2:latest." in wrong.stderr) == (1, True)
        told = await command(home, "doctor", **address, OPENAI_MODEL="qwen3:8b")
        assert "qwen3:8b answered in" in told.stdout
    assert used(server) == ["llama3.2", "qwen3:8b", "qwen3:8b"]  # `doctor` asks for facts and for a reply


async def test_the_only_model_is_named_when_a_chat_begins_and_another_is_chosen_in_it(
    home: Path,
) -> None:
    async with offering("qwen3:8b") as server:
        done = await chat(home, "Hi.\n/model\n", OPENAI_BASE_URL=server.url)
    assert "model qwen3:8b" in done.stderr
    assert "I am qwen3:8b." in done.stdout and "Available models: qwen3:8b." in done.stdout
    async with offering("large", "small") as server:
        text = "/model small\nHi.\n/model tiny\n/model\n"
        done = await chat(home, text, OPENAI_BASE_URL=server.url, OPENAI_MODEL="large")
    assert "Model: small.\nI am small." in done.stdout
    assert "There is no model 'tiny'.\n  The models are: large, small." in done.stderr
    assert "Model: small.\nAvailable models: large, small." in done.stdout


async def test_upstreams_of_the_settings_file_are_chosen_and_keys_are_not_shown(home: Path) -> None:
    usual, own = (home / "newton.toml").read_text(encoding="utf-8"), home / "own.toml"
    async with offering("large") as first, offering("small") as second:
        tables = "\n".join(
            f'[models.{name}]\nbase_url = "{server.url}"\napi_key_env = "{name.upper()}_KEY"\n'
            for name, server in (("first", first), ("second", second))
        )
        own.write_text(f'{usual}\ndefault_model = "first"\n{tables}', encoding="utf-8")
        settings = {"NEWTON_CONFIG": str(own), "FIRST_KEY": "sk-first-secret", "SECOND_KEY": "sk-second-secret"}
        told = [await command(home, "ask", "Hi.", *words, **settings) for words in ((), ("--model", "second"))]
        assert ["I am large." in ok(told[0]), "I am small." in ok(told[1])] == [True, True]
        told.append(await command(home, "agents", "set-model", "default", "second", **settings))
        told.append(await command(home, "ask", "Hi.", **settings))
        assert "I am small." in ok(told[-1])
        told.append(await command(home, "agents", "list", "--json", **settings))
        assert {one["name"]: one["model"] for one in json.loads(ok(told[-1]))}["default"] == "second"
        told.append(await command(home, "agents", "set-model", "default", "third", **settings))
        assert "The models are: first, second" in told[-1].stderr
        told.append(await command(home, "agents", "set-model", "default", **settings))
        assert "uses the configured model" in ok(told[-1])
        told.append(await command(home, "doctor", "--json", **settings))
        shown = await chat(home, "/model second\nHi.\n/model\n", **settings)
    assert "Model: second/small." in shown.stdout and "Available models: first, second" in shown.stdout
    assert "secret" not in "".join(one.stdout + one.stderr for one in (*told, shown)).replace("SecretStr", "")


async def test_a_model_is_chosen_behind_a_daemon(home: Path) -> None:
    models = {"OPENAI_MODEL": "large", "NEWTON_EMBEDDING_PROVIDER": "none"}
    async with offering("large", "small") as server:
        said = ok(await command(home, "agents", "set-model", "default", "small", OPENAI_BASE_URL=server.url, **models))
        assert "uses the model small" in said
        with daemon(home, OPENAI_BASE_URL=server.url, **models) as made:
            there = {"NEWTON_TOKEN": made.token}
            done = await command(home, "ask", "Hi.", "--daemon", made.url, "--json", **there)
            assert json.loads(ok(done))["text"] == "I am small."
            done = await command(home, "ask", "Hi.", "--daemon", made.url, "--model", "large", **there)
            assert "I am large." in ok(done)
            done = await command(home, "ask", "Hi.", "--daemon", made.url, "--model", "tiny", **there)
            assert (done.returncode, "There is no model 'tiny'" in done.stderr) == (1, True)
            shown = await chat(home, "/model\n", "--daemon", made.url, **there)
            assert "model small" in shown.stderr and "Available models: large, small." in shown.stdout
        ok(await command(home, "agents", "set-model", "default", **models))
