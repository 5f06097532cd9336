"""Embeddings and the names of models, as OpenAI's own client speaks them with a daemon."""

import base64
import struct
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import openai
import pytest

from newton.db.pool import Database
from newton.providers.fakes import HashEmbedder
from newton.runtime.api.routes.openai import embeddings
from tests.system.served import OPERATOR, Api, served

TEXTS = ["The kettle is blue.", "Ana reviews the migration.", "Tea is at four."]


@pytest.fixture
async def api(db: Database, tmp_path: Path) -> AsyncIterator[Api]:
    async with served(db, tmp_path) as made:
        yield made


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
