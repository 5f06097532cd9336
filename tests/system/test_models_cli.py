"""Which model answers, as a person chooses it: at the command line, in a chat, and over a daemon."""

import base64
import json
import struct
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import openai
import pytest
from anyio.from_thread import start_blocking_portal
from structlog.testing import capture_logs

from newton.providers.fakes import HashEmbedder
from newton.runtime.api.routes.openai import embeddings
from newton.settings import load
from tests.endpoint import Endpoint, Wire, endpoint, says
from tests.system.scripted import newton_served
from tests.system.served import OPERATOR, Api
from tests.system.typed import chatted, ok, typed


@asynccontextmanager
async def offering(*names: str) -> AsyncGenerator[Endpoint]:
    """A server that offers these models; what it was asked for is without their listing."""

    async def respond(wire: Wire) -> None:
        if wire.path.endswith("/models"):
            await wire.send(200, {"object": "list", "data": [{"id": name, "object": "model"} for name in names]})
        else:
            await says([f"I am {wire.body['model']}."])(wire)

    async with endpoint(respond, lists=True) as server:
        yield server


@contextmanager
def offered(*names: str) -> Generator[Endpoint]:
    """Such a server in a thread of its own, for commands have the main thread, which receives the signals."""
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(offering(*names)) as server:
        yield server


@contextmanager
def daemon_within(home: Path, **settings: object) -> Generator[str]:
    """The address of the server of a daemon, in a thread of its own."""
    chosen = load(
        {"data_dir": home, "embedding_provider": "none", **settings}, env={"NEWTON_CONFIG": str(home / "newton.toml")}
    )
    with (
        capture_logs(),  # what a person sees is looked at
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(newton_served(chosen)) as url,
    ):
        yield url


def used(server: Endpoint) -> list[str]:
    return [body["model"] for body in server.asked if body]


@pytest.mark.slow
def test_a_model_is_chosen_for_a_question(home: Path) -> None:
    with offered("qwen3:8b", "llama3.2:latest") as server:
        address = {"OPENAI_BASE_URL": server.url}
        unsure = typed(home, "ask", "Hi.", **address)
        assert unsure.returncode == 1
        assert "several models: qwen3:8b, llama3.2:latest. Set OPENAI_MODEL" in unsure.stderr
        assert "I am llama3.2." in ok(typed(home, "ask", "Hi.", "--model", "llama3.2", **address))
        wrong = typed(home, "ask", "Hi.", "--model", "gpt-4o", **address, OPENAI_MODEL="qwen3:8b")
        assert (wrong.returncode, "The models are: qwen3:8b, llama3.2:latest." in wrong.stderr) == (1, True)
        told = typed(home, "doctor", **address, OPENAI_MODEL="qwen3:8b")
        assert "qwen3:8b answered in" in told.stdout
    assert used(server) == ["llama3.2", "qwen3:8b", "qwen3:8b"]  # `doctor` asks for facts and for a reply


@pytest.mark.slow
def test_the_only_model_is_named_when_a_chat_begins_and_another_is_chosen_in_it(
    home: Path,
) -> None:
    with offered("qwen3:8b") as server:
        done = chatted(home, "Hi.\n/model\n", OPENAI_BASE_URL=server.url)
    assert "model qwen3:8b" in done.stderr
    assert "I am qwen3:8b." in done.stdout and "Available models: qwen3:8b." in done.stdout
    with offered("large", "small") as server:
        text = "/model small\nHi.\n/model tiny\n/model\n"
        done = chatted(home, text, OPENAI_BASE_URL=server.url, OPENAI_MODEL="large")
    assert "Model: small (window: 128,000 tokens, assumed).\nI am small." in done.stdout
    assert "There is no model 'tiny'.\n  The models are: large, small." in done.stderr
    assert "Model: small (window: 128,000 tokens, assumed).\nAvailable models: large, small." in done.stdout


@pytest.mark.slow
def test_upstreams_of_the_settings_file_are_chosen_and_keys_are_not_shown(home: Path) -> None:
    usual, own = (home / "newton.toml").read_text(encoding="utf-8"), home / "own.toml"
    with offered("large") as first, offered("small") as second:
        tables = "\n".join(
            f'[models.{name}]\nbase_url = "{server.url}"\napi_key_env = "{name.upper()}_KEY"\n'
            for name, server in (("first", first), ("second", second))
        )
        own.write_text(f'{usual}\ndefault_model = "first"\n{tables}', encoding="utf-8")
        settings = {"NEWTON_CONFIG": str(own), "FIRST_KEY": "sk-first-secret", "SECOND_KEY": "sk-second-secret"}
        told = [typed(home, "ask", "Hi.", *words, **settings) for words in ((), ("--model", "second"))]
        assert ["I am large." in ok(told[0]), "I am small." in ok(told[1])] == [True, True]
        told.append(typed(home, "agents", "set-model", "default", "second", **settings))
        told.append(typed(home, "ask", "Hi.", **settings))
        assert "I am small." in ok(told[-1])
        told.append(typed(home, "agents", "list", "--json", **settings))
        assert {one["name"]: one["model"] for one in json.loads(ok(told[-1]))}["default"] == "second"
        told.append(typed(home, "agents", "set-model", "default", "third", **settings))
        assert "The models are: first, second" in told[-1].stderr
        told.append(typed(home, "agents", "set-model", "default", **settings))
        assert "uses the configured model" in ok(told[-1])
        told.append(typed(home, "doctor", "--json", **settings))
        shown = chatted(home, "/model second\nHi.\n/model\n", **settings)
    assert "Model: second/small (window:" in shown.stdout and "Available models: first, second" in shown.stdout
    assert "secret" not in "".join(one.stdout + one.stderr for one in (*told, shown)).replace("SecretStr", "")


def test_a_model_is_chosen_behind_a_daemon(home: Path) -> None:
    models = {"OPENAI_MODEL": "large", "NEWTON_EMBEDDING_PROVIDER": "none"}
    with offered("large", "small") as server:
        said = ok(typed(home, "agents", "set-model", "default", "small", OPENAI_BASE_URL=server.url, **models))
        assert "uses the model small" in said
        with daemon_within(home, openai_base_url=server.url, openai_model="large") as url:
            there = {"NEWTON_TOKEN": OPERATOR}
            done = typed(home, "ask", "Hi.", "--daemon", url, "--json", **there)
            assert json.loads(ok(done))["text"] == "I am small."
            done = typed(home, "ask", "Hi.", "--daemon", url, "--model", "large", **there)
            assert "I am large." in ok(done)
            done = typed(home, "ask", "Hi.", "--daemon", url, "--model", "tiny", **there)
            assert (done.returncode, "There is no model 'tiny'" in done.stderr) == (1, True)
            shown = chatted(home, "/model\n", "--daemon", url, **there)
            assert "model small" in shown.stderr and "Available models: large, small." in shown.stdout
        ok(typed(home, "agents", "set-model", "default", **models))


TEXTS = ["The kettle is blue.", "Ana reviews the migration.", "Tea is at four."]


def client(api: Api, token: str = OPERATOR, **headers: str) -> openai.AsyncOpenAI:
    http = openai.DefaultAsyncHttpxClient(verify=False)
    return openai.AsyncOpenAI(
        base_url=f"{api.url}/v1", api_key=token, default_headers=headers, max_retries=0, http_client=http
    )


async def test_texts_are_embedded_with_the_model_of_the_agent_and_nothing_is_stored(api: Api) -> None:
    expected = await HashEmbedder().embed(TEXTS)
    async with client(api, await api.token("ana", "read")) as ana:
        several = await ana.embeddings.create(model="hashed-words", input=TEXTS)  # the client asks for base64
        floats = await ana.embeddings.create(model="newton", input=TEXTS, encoding_format="float")
        one = await ana.embeddings.create(model="ana", input=TEXTS[1], dimensions=256)
    assert np.allclose([row.embedding for row in several.data], expected)
    assert np.allclose([row.embedding for row in floats.data], expected)
    assert np.allclose(one.data[0].embedding, expected[1])
    assert [row.index for row in several.data] == [0, 1, 2] and several.model == "hashed-words"
    assert several.usage.total_tokens == several.usage.prompt_tokens > 3 and several.object == "list"
    async with client(api, await api.token("ana")) as ana:
        with pytest.raises(openai.NotFoundError, match=r"'hashed-words' is an embedding model.*`POST /v1/embeddings`"):
            await ana.chat.completions.create(model="hashed-words", messages=[{"role": "user", "content": "Hi."}])
    assert await api.rows("ana", "memory.memories") == 0
    async with api.http(await api.token("ana")) as http:
        body = {"input": TEXTS[0], "encoding_format": "base64"}
        (row,) = (await http.post("/v1/embeddings", json=body)).json()["data"]
    assert np.allclose(struct.unpack("<256f", base64.b64decode(row["embedding"])), expected[0])


async def test_what_cannot_be_embedded_is_refused_and_named(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embeddings, "MAX_TOKENS", 100)
    refused: list[tuple[dict[str, Any], str, str]] = [
        ({"input": [3, 4, 5]}, "input", "Token arrays"),
        ({"input": [[3, 4], [5]]}, "input", "Token arrays"),
        ({"input": ""}, "input", "at least 1 character"),
        ({"input": []}, "input", "at least 1 item"),
        ({"input": ["tea", ""]}, "input[1]", "at least 1 character"),
        ({"input": ["tea", None]}, "input[1]", "valid string"),
        ({"input": ["tea"] * 2_049}, "input", "at most 2048 items"),
        ({"input": "tea " * 101}, "input", "several requests"),
        ({"input": "tea", "dimensions": 64}, "dimensions", "256 dimensions"),
        ({"input": "tea", "encoding_format": "int8"}, "encoding_format", "float"),
    ]
    async with api.http() as http:
        for body, param, message in refused:
            answer = await http.post("/v1/embeddings", json={"model": "newton", **body})
            error = answer.json()["error"]
            assert (answer.status_code, error["type"], error["param"]) == (400, "invalid_request_error", param), error
            assert message in error["message"]
    async with client(api) as operator:
        with pytest.raises(openai.NotFoundError, match="embedding model is hashed-words"):
            await operator.embeddings.create(model="text-embedding-ada-002", input="tea")
    async with client(api, "nwt_nonsense") as stranger:
        with pytest.raises(openai.AuthenticationError):
            await stranger.embeddings.create(model="newton", input="tea")


async def test_a_token_sees_its_own_agent_and_the_operator_all(api: Api) -> None:
    ana = await api.token("ana", "read")
    await api.token("bea")
    async with client(api, ana) as own, client(api) as operator:
        names = {one.id async for one in await own.models.list()}
        assert {"newton", "ana", "hashed-words"} <= names and "bea" not in names
        assert {"ana", "bea", "default"} <= {one.id async for one in await operator.models.list()}
        for name in ("newton", "ana", "hashed-words"):
            found = await own.models.retrieve(name)
            assert (found.id, found.object, found.owned_by) == (name, "model", "newton")
        assert (await operator.models.retrieve("bea")).id == "bea"
        for name in ("bea", "gpt-9"):
            with pytest.raises(openai.NotFoundError):
                await own.models.retrieve(name)
            with pytest.raises(openai.NotFoundError):
                await own.embeddings.create(model=name, input="tea")
