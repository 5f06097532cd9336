"""Several upstream models by name."""

from typing import Any

import pytest

from newton.errors import ModelNotFoundError, ProviderError
from newton.providers.chat import ChatMessage, ChatModel, ChatReply, IsolatableModel
from newton.providers.fakes import ScriptedChat
from newton.providers.model_endpoint import ANSWERS
from newton.providers.structured_output import EndpointKey
from newton.providers.upstreams import FAILURE_THRESHOLD, get_breaker
from newton.runtime.model_directory import ModelDirectory, ensure_offered
from newton.settings import load
from tests.endpoint import Endpoint, Wire, endpoint, fails, says

ASKED = [ChatMessage("user", "Hello")]


def directory(env: dict[str, str] | None = None, **settings: object) -> ModelDirectory:
    return ModelDirectory(load({"llm_timeout": 5.0, **settings}, env=env or {}))


async def offers(wire: Wire) -> None:
    if wire.path.endswith("/models"):
        await wire.send(200, {"object": "list", "data": [{"id": one, "object": "model"} for one in ("large", "small")]})
    else:
        await says([f"I am {wire.body['model']}."])(wire)


async def answer(model: ChatModel | None) -> ChatReply:
    assert model is not None
    *_, reply = [piece async for piece in model.stream(ASKED, max_tokens=50)]
    assert isinstance(reply, ChatReply)
    return reply


def used(server: Endpoint) -> list[Any]:
    return [body["model"] for body in server.asked if body]


async def test_upstreams_are_selected_by_name() -> None:
    async with endpoint(offers, lists=True) as first, endpoint(offers, lists=True) as second:
        fast = {"base_url": second.url, "model": "tiny"}
        models = directory(openai_base_url=first.url, openai_model="large", models={"fast": fast})
        default = models.get()
        assert default is not None and default.name == "large"
        for name, said in (("fast", "fast/tiny"), ("fast/small", "fast/small"), ("small", "small"), ("large", "large")):
            reply = await answer(await models.select(default, name))
            assert (reply.model, reply.text) == (said, f"I am {said.removeprefix('fast/')}.")
        assert (used(first), used(second)) == (["small", "large"], ["tiny", "small"])
        assert await models.list_names(default) == ["fast", "large", "small"]
        for unknown in ("gpt-9", "fast/gpt-9"):
            with pytest.raises(ModelNotFoundError, match=r"The models are: (fast, )?large, small"):
                await models.select(default, unknown)


async def test_an_agent_may_have_an_upstream_as_its_default() -> None:
    async with endpoint(offers, lists=True) as first, endpoint(offers, lists=True) as second:
        models = directory(openai_base_url=first.url, openai_model="large", models={"fast": {"base_url": second.url}})
        assert (await answer(models.get("fast/small"))).model == "fast/small"
        assert (await answer(models.get("small"))).model == "small"
        with pytest.raises(ProviderError, match=r"several models: large, small. Set model of \[models.fast\]"):
            await answer(models.get("fast"))
        chosen = directory(
            default_model="fast/large", openai_base_url=first.url, models={"fast": {"base_url": second.url}}
        )
        assert (await answer(chosen.get())).model == "fast/large"


async def test_the_only_upstream_is_the_default_and_of_several_one_must_be_chosen() -> None:
    async with endpoint(offers, lists=True) as server:
        one = {"fast": {"base_url": server.url, "model": "small"}}
        assert (await answer(directory(models=one).get())).text == "I am small."
        several = directory(models={**one, "large": {"base_url": server.url, "model": "large"}})
        with pytest.raises(ProviderError, match=r"none is the default: fast, large\. Set default_model"):
            await answer(several.get())
        assert (await answer(await several.select(several.get(), "large"))).text == "I am large."
    assert directory().get() is None
    with pytest.raises(ModelNotFoundError, match="No model is set"):
        await directory().select(None, "fast")
    with pytest.raises(ModelNotFoundError, match="The models are: scripted"):
        await directory().select(ScriptedChat(), "fast")


async def test_each_upstream_has_its_own_circuit_breaker_and_what_it_learnt() -> None:
    async with endpoint(fails(500, retry_after="0"), lists=True) as server:
        one = {"base_url": server.url, "model": "same"}
        models = directory(models={"broken": one, "other": one})
        for _ in range(6):
            with pytest.raises(ProviderError):
                await answer(models.get("broken"))
        with pytest.raises(ProviderError, match=r"has failed several times.* with the HTTP status 500\. Newton"):
            await answer(models.get("broken"))
        with pytest.raises(ProviderError, match="answered with the HTTP status 500"):
            await answer(models.get("other"))
    broken, other = (get_breaker(EndpointKey(name, server.url, "same"), ANSWERS) for name in ("broken", "other"))
    assert (broken.failures >= 5, other.failures < 5) == (True, True)


async def test_the_failures_of_background_work_pause_no_answers() -> None:
    # R8
    async with endpoint(fails(500, retry_after="0"), lists=True) as server:
        model = directory(models={"one": {"base_url": server.url, "model": "same"}}).get("one")
        assert isinstance(model, IsolatableModel)
        background = model.isolate("summaries")
        for _ in range(FAILURE_THRESHOLD + 1):
            with pytest.raises(ProviderError):
                await answer(background)
        with pytest.raises(ProviderError, match="has failed several times"):
            await answer(background)
        asked = len(server.asked)
        with pytest.raises(ProviderError, match="answered with the HTTP status 500"):
            await answer(model)
        assert len(server.asked) > asked


async def test_a_key_is_read_from_its_variable_and_sent_to_its_own_server_only() -> None:
    keys: list[str | None] = []

    async def respond(wire: Wire) -> None:
        await says(["Yes."])(wire)

    async with endpoint(respond, lists=True) as server:
        configured = {
            "mine": {"base_url": server.url, "model": "m", "api_key_env": "MY_KEY"},
            "open": {"base_url": server.url, "model": "m"},
            "unset": {"base_url": server.url, "model": "m", "api_key_env": "NOT_SET"},
            "itself": {"provider": "anthropic", "model": "claude-opus-5-5"},
        }
        env = {"MY_KEY": "sk-mine-secret", "OPENAI_API_KEY": "sk-open-secret", "ANTHROPIC_API_KEY": "sk-ant-secret"}
        settings = load({"models": configured}, env=env)
        models = ModelDirectory(settings)
        for name in ("mine", "open", "itself"):
            built: Any = models.get(name)
            keys.append(built.upstream.key)
        assert keys == ["sk-mine-secret", None, "sk-ant-secret"]
        with pytest.raises(ProviderError, match=r"model server unset has no API key. Set NOT_SET"):
            await answer(models.get("unset"))
        told = (
            repr(settings)
            + str(dict(settings))
            + repr([getattr(models.get(name), "upstream", "") for name in configured])
        )
        assert "secret" not in told.replace("SecretStr", "").replace("secret_str", "")


def test_both_providers_may_be_set_and_names_need_no_listing() -> None:
    models = directory({"OPENAI_API_KEY": "sk-x", "ANTHROPIC_API_KEY": "sk-ant-x"})
    assert [getattr(models.get(name), "name", "") for name in (None, "anthropic", "anthropic/claude-opus-5-5")] == [
        "gpt-4o-mini",
        "claude-haiku-5-5",
        "claude-opus-5-5",
    ]
    chosen = directory({"ANTHROPIC_API_KEY": "sk-ant-x", "ANTHROPIC_BASE_URL": "https://proxy.example/"})
    upstream = getattr(chosen.get(), "upstream", None)
    assert upstream and upstream.address == "https://proxy.example/v1"
    ensure_offered("fast/anything", ["fast", "large"])
    with pytest.raises(ModelNotFoundError):
        ensure_offered("slow/anything", ["fast", "large"])


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"a/b": {}}, "models.a/b"),
        ({"a": {"provider": "gemini"}}, "'openai' or 'anthropic'"),
        ({"a": {"base_url": "http://u:p@host/v1"}}, "must not contain credentials"),
        ({"a": {"key": "x"}}, "models.a.key"),
    ],
)
def test_an_invalid_upstream_is_told(table: object, said: str) -> None:
    with pytest.raises(ProviderError.__mro__[1], match=said.replace("[", "\\[")):
        directory(models=table)
